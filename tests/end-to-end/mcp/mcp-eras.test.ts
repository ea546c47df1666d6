import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  operate,
  payrollRow,
  type SeededTenant,
  seedEmployer,
  seedTenant,
  sendRpc,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

const MODERN = '2026-07-28'
const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const META = { [VERSION]: MODERN, [CAPABILITIES]: {} }
const SERVER = { name: 'payroll-reporting-tools', version: '1.0.0' }

type Sent = Record<string, unknown>
const request = (method: string, params: Sent = {}, meta: unknown = META): Sent => ({
  jsonrpc: '2.0',
  id: 'm-1',
  method,
  params: { ...params, _meta: meta },
})
const headersOf = (method: string, name?: string): Record<string, string> => ({
  'MCP-Protocol-Version': MODERN,
  'Mcp-Method': method,
  ...(name !== undefined && { 'Mcp-Name': name }),
})
const rpc = (message: unknown, headers: Record<string, string>) =>
  sendRpc(service, seeded.apiKey, message, headers)
const ask = (method: string, params?: Sent) => rpc(request(method, params), headersOf(method))
/** A tool call of the modern era; its text is parsed. */
const call = async (name: string, given: unknown) => {
  const params = { name, arguments: given }
  const { body } = await rpc(request('tools/call', params), headersOf('tools/call', name))
  return { isError: body.result.isError === true, said: JSON.parse(body.result.content[0].text) }
}

describe('a request of the modern era', () => {
  it('discovers versions, capabilities and how to begin, without a handshake', async () => {
    const { status, body } = await ask('server/discover')
    expect([status, body]).toEqual([
      200,
      {
        jsonrpc: '2.0',
        id: 'm-1',
        result: {
          resultType: 'complete',
          supportedVersions: [MODERN, '2025-03-26'],
          capabilities: { tools: { listChanged: false } },
          instructions: expect.stringContaining('idempotency_key'),
          ttlMs: expect.any(Number),
          cacheScope: 'public',
          _meta: { 'io.modelcontextprotocol/serverInfo': SERVER },
        },
      },
    ])
  })

  it('lists the tools that the legacy era lists, and says how long the list may be kept', async () => {
    const { result } = (await ask('tools/list')).body
    const legacy = await rpc({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, {})
    expect(result).toEqual({
      ...legacy.body.result,
      resultType: 'complete',
      ttlMs: expect.any(Number),
      cacheScope: 'public',
      _meta: expect.any(Object),
    })
    expect(Object.keys(legacy.body.result)).toEqual(['tools'])
    const either = result.tools.filter((tool: Sent) => 'anyOf' in (tool.inputSchema as Sent))
    expect(either.map(({ name }: Sent) => name)).toEqual(['get_submission_status', 'get_validation_errors'])
    expect(either[0].inputSchema.anyOf).toEqual([{ required: ['submission_id'] }, { required: ['file_id'] }])
  })

  it('calls tools, with any client, log level and trace', async () => {
    const params = { name: 'list_employer_policies', arguments: { employer_id: seeded.employerId } }
    const meta = { ...META, 'io.modelcontextprotocol/logLevel': 'debug', progressToken: 1, traceparent: 'x' }
    const { status, body } = await rpc(
      request('tools/call', { ...params, inputResponses: {}, requestState: 'x' }, meta),
      { ...headersOf('tools/call', params.name), 'Mcp-Session-Id': 'old', 'Last-Event-ID': '7' },
    )
    expect(status).toBe(200)
    expect(body.result).toEqual({
      content: [{ type: 'text', text: expect.stringContaining(seeded.policyId) }],
      resultType: 'complete',
      _meta: { 'io.modelcontextprotocol/serverInfo': SERVER },
    })
  })

  it.each([
    ['no capabilities', { [VERSION]: MODERN }, {}, 400, -32602, CAPABILITIES],
    ['capabilities of another type', { ...META, [CAPABILITIES]: [] }, {}, 400, -32602, CAPABILITIES],
    ['a version of another type', { ...META, [VERSION]: 7 }, {}, 400, -32602, VERSION],
    ['no metadata', null, {}, 400, -32602, VERSION],
    ['metadata of another type', 'x', {}, 400, -32602, VERSION],
    [
      'a version header unlike the body',
      META,
      { 'MCP-Protocol-Version': '2025-03-26' },
      400,
      -32020,
      'MCP-Protocol-Version',
    ],
    [
      'an unknown version header',
      META,
      { 'MCP-Protocol-Version': 'new' },
      400,
      -32020,
      'MCP-Protocol-Version',
    ],
    ['a method header unlike the body', META, { 'Mcp-Method': 'tools/list' }, 400, -32020, 'Mcp-Method'],
    ['a method header in another case', META, { 'Mcp-Method': 'Tools/Call' }, 400, -32020, 'Mcp-Method'],
    ['a name header unlike the body', META, { 'Mcp-Name': 'submit_payroll_data' }, 400, -32020, 'Mcp-Name'],
    ['a name header that is no base64', META, { 'Mcp-Name': '=?base64?!!?=' }, 400, -32020, 'Mcp-Name'],
    ['a name header that is no UTF-8', META, { 'Mcp-Name': '=?base64?/w==?=' }, 400, -32020, 'Mcp-Name'],
  ])('with %s is refused by name', async (_what, meta, headers, status, code, field) => {
    const params = { name: 'list_employer_policies', arguments: {} }
    const answer = await rpc(request('tools/call', params, meta), {
      ...headersOf('tools/call', params.name),
      ...headers,
    })
    expect([answer.status, answer.body]).toMatchObject([
      status,
      { id: 'm-1', error: { code, data: { field } } },
    ])
  })

  it('needs its three headers, of which the name may be encoded', async () => {
    const params = { name: 'list_employer_policies', arguments: { employer_id: seeded.employerId } }
    const all = headersOf('tools/call', params.name)
    for (const header of Object.keys(all)) {
      const { [header]: _, ...others } = all
      const { status, body } = await rpc(request('tools/call', params), others)
      expect([status, body.error]).toMatchObject([
        400,
        { code: -32020, data: { code: 'field_missing', field: header } },
      ])
    }
    const encoded = `=?base64?${Buffer.from(params.name).toString('base64')}?=`
    const { body } = await rpc(request('tools/call', params), { ...all, 'Mcp-Name': ` ${encoded} ` })
    expect(body.result.isError).toBeUndefined()
  })

  it('of a version that is not served learns which are', async () => {
    for (const requested of ['2025-03-26', '2099-01-01', 'x']) {
      const message = request('server/discover', {}, { ...META, [VERSION]: requested })
      const headers = { ...headersOf('server/discover'), 'MCP-Protocol-Version': requested }
      const { status, body } = await rpc(message, headers)
      expect([status, body.error]).toMatchObject([
        400,
        { code: -32022, data: { supported: [MODERN, '2025-03-26'], requested } },
      ])
    }
  })

  it.each(['initialize', 'ping', 'logging/setLevel', 'resources/list', 'subscriptions/listen', 'nope'])(
    'finds no method %s',
    async (method) => {
      const { status, body } = await ask(method)
      expect([status, body.error.code, body.id]).toEqual([404, -32601, 'm-1'])
    },
  )

  it('is no handshake, and no batch', async () => {
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    for (const version of [MODERN, '2099-01-01']) {
      const { status, body } = await rpc(initialize, { 'MCP-Protocol-Version': version })
      expect([status, body.error.code]).toEqual([400, -32020])
    }
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const byHeader = await rpc([ping], headersOf('ping'))
    expect([byHeader.status, byHeader.body.error.code]).toEqual([400, -32600])
    expect(byHeader.body).not.toHaveProperty('id')
    const byElement = await rpc([ping, request('tools/list')], {})
    expect([byElement.status, byElement.body.error.code]).toEqual([400, -32600])
  })

  it('leaves out an id that cannot be told, and takes notifications, but no responses', async () => {
    const headers = headersOf('tools/list')
    for (const message of [
      '{oops',
      { ...request('tools/list'), id: null },
      { ...request('tools/list'), id: {} },
    ]) {
      const { status, body } = await rpc(message, headers)
      expect(status).toBe(400)
      expect(Object.keys(body).sort()).toEqual(['error', 'jsonrpc'])
    }
    const { id: _, ...notification } = request('notifications/cancelled')
    expect((await rpc(notification, headers)).status).toBe(202)
    const response = await rpc({ jsonrpc: '2.0', id: 3, result: {} }, headers)
    expect([response.status, response.body]).toMatchObject([400, { id: 3, error: { code: -32600 } }])
    const locked = await sendRpc(service, 'mcp_wrong', request('tools/list'), headers)
    expect([locked.status, locked.body]).toMatchObject([401, { id: 'm-1', error: { code: -32001 } }])
  })

  it('that is no call of a tool is a protocol error', async () => {
    const cases: Sent[] = [{}, { name: 'nope' }, { name: 'get_expected_fields', arguments: '{}' }]
    for (const params of cases) {
      const name = params.name as string | undefined
      const { status, body } = await rpc(request('tools/call', params), headersOf('tools/call', name))
      expect([status, body.error.code]).toEqual([200, -32602])
    }
  })
})

// mcp-tools refuses what else may be wrong, mcp-model-habits as a result
describe('a call that a model got wrong in the modern era', () => {
  it.each([
    ['a missing argument', 'get_expected_fields', {}, 'Invalid Params', 'field_missing', 'employer_id'],
    [
      'a foreign employer',
      'list_employer_policies',
      { employer_id: '0'.repeat(24) },
      'Scope Error',
      'employer_out_of_scope',
      'employer_id',
    ],
  ])('(%s) is a result that says what to mend', async (_what, name, given, error, code, field) => {
    const { isError, said } = await call(name, given)
    expect(isError).toBe(true)
    expect(said).toMatchObject({ error, code, field, message: expect.stringContaining(field) })
    expect(said.doc_url).toBe(`${service.mcpUrl}/docs/errors#${code}`)
  })

  it('(too many rows, an unknown policy, a used key) is one, too', async () => {
    const given = { employer_id: seeded.employerId, policy_id: seeded.policyId, rows: [payrollRow()] }
    const name = 'submit_payroll_data'
    const many = await call(name, { ...given, rows: Array(50_001).fill({}) })
    expect([many.isError, many.said.field]).toEqual([true, 'rows'])
    const foreign = await call(name, { ...given, policy_id: '0'.repeat(24) })
    expect([foreign.isError, foreign.said.code]).toEqual([true, 'policy_not_found'])
    const key = { idempotency_key: 'eras-1' }
    expect((await call(name, { ...given, ...key })).isError).toBe(false)
    const reused = await call(name, { ...given, ...key, rows: [payrollRow({ gross_wages: 2 })] })
    expect([reused.isError, reused.said.field]).toEqual([true, 'idempotency_key'])
  })
})

describe('the employers of a credential', () => {
  it('stand in the refusal of a missing or foreign employer_id, of both eras, while they are linked', async () => {
    const company = await seedTenant(service)
    const second = await seedEmployer(service, company, { legal_name: 'Second Bakery LLC' })
    await seedEmployer(service, { tenantId: company.tenantId })
    const unlinked = await seedEmployer(service, company)
    await operate(service, 'PATCH', `/employers/${unlinked.employerId}`, { payroll_company_ids: [] })
    const employers = [
      { employer_id: company.employerId, employer_name: company.employerName },
      { employer_id: second.employerId, employer_name: 'Second Bakery LLC' },
    ]
    const name = 'list_employer_policies'
    for (const given of [
      {},
      { employer_id: 7 },
      { employerId: second.employerId },
      { employer_id: seeded.employerId },
    ]) {
      const params = { name, arguments: given }
      const legacy = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      const { error } = (await sendRpc(service, company.apiKey, legacy)).body
      expect(error.data).toMatchObject({ employers, has_more: false })
      expect(error.code).toBe('employer_id' in given && given.employer_id !== 7 ? -32002 : -32602)
      const modern = await sendRpc(
        service,
        company.apiKey,
        request('tools/call', params),
        headersOf('tools/call', name),
      )
      expect(JSON.parse(modern.body.result.content[0].text)).toMatchObject({ employers, has_more: false })
    }
  })
})

describe('the rows that failed', () => {
  it('are led on by after_row until none is left', async () => {
    const rows = Array.from({ length: 205 }, (_, index) => payrollRow(index % 2 === 0 ? { state: 'TX' } : {}))
    const given = { employer_id: seeded.employerId, policy_id: seeded.policyId, rows }
    const { file_id } = (await call('submit_payroll_data', given)).said
    const first = (await call('get_validation_errors', { file_id })).said
    expect([first.errors.length, first.has_more, first.red_rows]).toEqual([100, true, 103])
    const after_row = first.errors.at(-1).row_number
    const next = (await call('get_validation_errors', { file_id, after_row })).said
    expect(next.errors.map((one: Sent) => one.row_number)).toEqual([201, 203, 205])
    expect([next.has_more, next.red_rows]).toEqual([false, 103])
    // a later page says as much as the first
    const saidOf = ({ reasons }: Sent) => reasons
    expect(saidOf(next.errors[0])).toEqual(saidOf(first.errors[0]))
    const end = (await call('get_validation_errors', { file_id, after_row: 50_000 })).said
    expect([end.errors, end.has_more]).toEqual([[], false])
  })
})

describe('the official client of both eras', () => {
  it.each([
    ['as it comes', undefined, '2025-03-26'],
    ['that asks which era it is', 'auto' as const, MODERN],
    ['that wants the modern era', { pin: MODERN }, MODERN],
  ])('(%s) connects, lists, calls and reads refusals', async (_what, mode, version) => {
    const client = new Client(
      { name: 'acceptance', version: '1.0.0' },
      mode === undefined ? {} : { versionNegotiation: { mode } },
    )
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${service.mcpUrl}/mcp`), {
        requestInit: { headers: { Authorization: `Bearer ${seeded.apiKey}` } },
      }),
    )
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.getServerVersion()).toMatchObject(SERVER)
    expect((await client.listTools()).tools).toHaveLength(6)
    const name = 'list_employer_policies'
    const { content } = await client.callTool({ name, arguments: { employer_id: seeded.employerId } })
    expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining(seeded.policyId) }])
    const refused = client.callTool({ name, arguments: {} })
    if (version === MODERN) expect(await refused).toMatchObject({ isError: true })
    else await expect(refused).rejects.toMatchObject({ code: -32602 })
    await client.close()
  })
})
