import { gzipSync } from 'node:zlib'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { payrollRow, type SeededTenant, seedTenant, send, sendRpc } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

const rpc = (message: unknown, headers?: Record<string, string>) =>
  sendRpc(service, seeded.apiKey, message, headers)
const call = (method: string, params?: unknown, id: unknown = 1) =>
  rpc({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) })
const code = (body: { error?: { code: number } }) => body.error?.code

describe('the official client', () => {
  it('connects, lists and calls the tools unchanged', async () => {
    const client = new Client({ name: 'acceptance', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(`${service.mcpUrl}/mcp`), {
      requestInit: { headers: { Authorization: `Bearer ${seeded.apiKey}` } },
    })
    await client.connect(transport)
    expect(client.getServerVersion()).toMatchObject({ version: '1.0.0' })
    expect(client.getServerCapabilities()).toEqual({ tools: { listChanged: false } })
    const { tools } = await client.listTools()
    expect(tools).toHaveLength(6)
    const { content } = await client.callTool({
      name: 'list_employer_policies',
      arguments: { employer_id: seeded.employerId },
    })
    const [{ text }] = content as [{ text: string }]
    expect(JSON.parse(text)).toMatchObject({ employer_id: seeded.employerId, policy_count: 1 })
    await expect(client.callTool({ name: 'list_employer_policies', arguments: {} })).rejects.toMatchObject({
      code: -32602,
      data: { field: 'employer_id' },
    })
    await client.ping()
    await client.close()
  })
})

describe('initialize, ping and tools/list', () => {
  it('answers one protocol revision whatever is asked', async () => {
    for (const params of [
      undefined,
      {},
      { protocolVersion: '2024-11-05' },
      { protocolVersion: '2099-01-01' },
    ]) {
      const { status, body } = await call('initialize', params)
      expect(status).toBe(200)
      expect(body).toEqual({
        jsonrpc: '2.0',
        id: 1,
        result: {
          protocolVersion: '2025-03-26',
          capabilities: { tools: { listChanged: false } },
          serverInfo: { name: 'payroll-reporting-tools', version: '1.0.0' },
        },
      })
    }
  })

  it('lists six tools with schemas and hints', async () => {
    const { tools } = (await call('tools/list')).body.result
    const required = Object.fromEntries(
      tools.map((tool: { name: string; inputSchema: { required: string[] } }) => [
        tool.name,
        tool.inputSchema.required,
      ]),
    )
    expect(required).toEqual({
      list_employer_policies: ['employer_id'],
      get_expected_fields: ['employer_id'],
      validate_payroll_submission: ['employer_id', 'policy_id', 'rows'],
      submit_payroll_data: ['employer_id', 'policy_id', 'rows'],
      get_submission_status: [],
      get_validation_errors: [],
    })
    for (const tool of tools) {
      expect(tool.description).not.toBe('')
      expect(tool.inputSchema.type).toBe('object')
      expect(tool.inputSchema.additionalProperties).toBe(false)
      expect(tool.annotations.readOnlyHint).toBe(tool.name !== 'submit_payroll_data')
    }
    const submit = tools.find((tool: { name: string }) => tool.name === 'submit_payroll_data')
    expect(submit.inputSchema.properties).toMatchObject({
      employer_id: { type: 'string', description: expect.any(String) },
      rows: {
        type: 'array',
        minItems: 1,
        maxItems: 50_000,
        items: {
          type: 'object',
          properties: {
            gross_wages: { type: 'number', minimum: 0, maximum: 10_000_000 },
            check_date: { type: 'string', format: 'date', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
          },
        },
      },
      dry_run: { type: 'boolean', default: false },
      idempotency_key: { type: 'string', minLength: 1, maxLength: 255 },
    })
  })
})

describe('the envelope', () => {
  it.each([
    ['{oops', -32700],
    ['', -32700],
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700],
    ['['.repeat(5000), -32700],
    ['"text"', -32600],
    ['17', -32600],
    ['null', -32600],
    ['[]', -32600],
    ['{"id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":-9007199254740993,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1e400,"method":"ping"}', -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600],
    [JSON.stringify(Array(101).fill({ jsonrpc: '2.0', id: 1, method: 'ping' })), -32600],
  ])('refuses %.60s', async (text, expected) => {
    const { status, body } = await rpc(text)
    expect(status).toBe(400)
    expect(code(body)).toBe(expected)
    expect(Object.keys(body).sort()).toEqual(['error', 'id', 'jsonrpc'])
    expect(body.error.data).toEqual({
      code: expect.stringMatching(/^invalid_/),
      doc_url: `${service.mcpUrl}/docs/errors#${body.error.data.code}`,
    })
  })

  it('names the argument that holds a number too long to be read, under the id of the call', async () => {
    const digits = '1'.repeat(200_000)
    const given = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"rows":[{"rate":0.${digits}}]}}}`
    expect((await rpc(given)).body).toMatchObject({
      id: 7,
      error: {
        code: -32602,
        data: {
          code: 'invalid_json',
          field: 'rows',
          doc_url: `${service.mcpUrl}/docs/errors#invalid_json`,
        },
        message: expect.stringMatching(/rows\[0\]\.rate is a number of more than 1000 /),
      },
    })
    const { status, body } = await rpc(`{"jsonrpc":"2.0","id":1,"method":"ping","a":${digits}}`)
    expect([status, body.id, body.error.code]).toEqual([400, null, -32600])
  })

  it('echoes ids, of numbers and strings, in results and errors', async () => {
    const largest = Number.MAX_SAFE_INTEGER
    for (const id of [4711, 0, -3, 1.5, -0.25, 1e-7, largest, -largest, 'a', '']) {
      expect((await call('ping', undefined, id)).body.id).toBe(id)
      expect((await call('tools/destroy', undefined, id)).body).toMatchObject({ id, error: { code: -32601 } })
    }
    expect((await rpc('{oops')).body.id).toBeNull()
    expect((await rpc({ jsonrpc: '1.0', id: 5, method: 'ping' })).body.id).toBe(5)
  })

  it('takes notifications and answers without a word', async () => {
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'ping' },
      { jsonrpc: '2.0', id: 3, result: {} },
      { jsonrpc: '2.0', id: 3, error: { code: 1, message: '' } },
      [{ jsonrpc: '2.0', method: 'notifications/initialized' }],
    ]) {
      const { status, text } = await rpc(message)
      expect([status, text]).toEqual([202, ''])
    }
  })

  it('answers every element of a batch but notifications', async () => {
    const { status, body } = await rpc([
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/progress' },
      7,
      { jsonrpc: '2.0', id: 'two', method: 'tools/destroy' },
      {
        jsonrpc: '2.0',
        id: 3,
        method: 'tools/call',
        params: { name: 'list_employer_policies', arguments: { employer_id: seeded.employerId } },
      },
    ])
    expect(status).toBe(200)
    expect(body).toMatchObject([
      { id: 1, result: {} },
      { id: null, error: { code: -32600 } },
      { id: 'two', error: { code: -32601 } },
      { id: 3, result: { content: [{ type: 'text' }] } },
    ])
    expect(body).toHaveLength(4)
  })

  it('refuses wrong parameters of tools/call by name', async () => {
    const refusal = async (params: unknown) => (await call('tools/call', params)).body.error
    expect(await refusal(undefined)).toMatchObject({ code: -32602, data: { field: 'params' } })
    expect(await refusal([])).toMatchObject({ code: -32602, data: { field: 'params' } })
    expect(await refusal({})).toMatchObject({ code: -32602, data: { field: 'name' } })
    expect(await refusal({ name: 'nope' })).toMatchObject({ code: -32602, data: { field: 'name' } })
    expect(await refusal({ name: '__proto__' })).toMatchObject({ code: -32602, data: { field: 'name' } })
    expect(await refusal({ name: 'get_expected_fields', arguments: [] })).toMatchObject({
      code: -32602,
      data: { field: 'arguments' },
    })
    expect(await refusal({ name: 'get_expected_fields' })).toMatchObject({
      code: -32602,
      data: { field: 'employer_id' },
    })
  })

  it('refuses a name that is not kept in whatever depth of the arguments, in a batch of the message that has it', async () => {
    const message = (id: number, more: string) =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"list_employer_policies","__proto__":1,"arguments":{"employer_id":"${seeded.employerId}"${more}}}}`
    const odd = ',"__proto__":{"employer_id":"x"}'
    const refusal = { code: -32602, data: { code: 'field_unknown', field: '__proto__' } }
    expect((await rpc(message(1, odd))).body).toMatchObject({ id: 1, error: refusal })
    const { body } = await rpc(`[${message(1, '')},${message(2, odd)},${message(3, '')}]`)
    expect(body).toMatchObject([
      { id: 1, result: { content: [{ type: 'text' }] } },
      { id: 2, error: refusal },
      { id: 3, result: { content: [{ type: 'text' }] } },
    ])
    const rows = '{"gross_wages":5,"more":[{"__proto__":1}]},'.repeat(100)
    const deep = `,"policy_id":"${seeded.policyId}","rows":[{},${rows}{}]`
    const report = (id: number) => message(id, deep).replace('list_employer_policies', 'submit_payroll_data')
    const [one, , two] = (await rpc(`[${report(1)},${message(2, '')},${report(3)}]`)).body
    const inRow = { code: 'field_unknown', field: 'rows[1].more[0].__proto__' }
    expect([one, two]).toMatchObject([{ error: { data: inRow } }, { error: { data: inRow } }])
  })

  it('checks key, JSON, envelope, method, arguments and scope in this order', async () => {
    expect((await sendRpc(service, 'wrong', '{oops')).status).toBe(401)
    expect(code((await sendRpc(service, null, { jsonrpc: '2.0', id: 1, method: 'nope' })).body)).toBe(-32001)
    expect(code((await rpc({ id: 1, method: 'nope' })).body)).toBe(-32600)
    const foreign = { employer_id: '0'.repeat(24), policy_id: '0'.repeat(24) }
    const name = 'validate_payroll_submission'
    expect(code((await call('tools/call', { name, arguments: foreign })).body)).toBe(-32602)
    const complete = { ...foreign, rows: [payrollRow()] }
    expect(code((await call('tools/call', { name, arguments: complete })).body)).toBe(-32002)
  })

  it('refuses an unusable Idempotency-Key header whatever the message', async () => {
    const ping = { jsonrpc: '2.0', id: 8, method: 'ping' }
    for (const key of ['', 'two words', 'k'.repeat(256), 'caf\u00e9']) {
      const one = await rpc(ping, { 'Idempotency-Key': key })
      expect([one.status, code(one.body), one.body.id]).toEqual([400, -32600, 8])
      expect(one.body.error.message).toContain('Idempotency-Key')
      const batch = await rpc([ping], { 'Idempotency-Key': key })
      expect([batch.status, code(batch.body), batch.body.id]).toEqual([400, -32600, null])
    }
    expect((await rpc(ping, { 'Idempotency-Key': 'k'.repeat(255) })).body.result).toEqual({})
    expect((await rpc('{oops', { 'Idempotency-Key': 'two words' })).body.error.code).toBe(-32700)
  })

  it.each([
    ['a refused character', '"A\\u0000"'],
    ['a number that reading would change', '1234.5600000000000001'],
  ])('names the argument that holds %s', async (_what, value) => {
    const given = `{"name":"validate_payroll_submission","arguments":{"rows":[{"gross_wages":${value}}]}}`
    expect(
      (await rpc(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":${given}}`)).body,
    ).toMatchObject({
      id: 9,
      error: { code: -32602, data: { field: 'rows' }, message: expect.stringContaining('rows[0]') },
    })
    const ping = await rpc(`{"jsonrpc":"2.0","id":1,"method":"ping","a":${value}}`)
    expect([ping.status, code(ping.body)]).toEqual([400, -32600])
  })
})

describe('HTTP', () => {
  it('offers POST alone', async () => {
    for (const method of ['GET', 'DELETE', 'PUT', 'OPTIONS']) {
      const { status, headers } = await send(`${service.mcpUrl}/mcp`, { method })
      expect([status, headers.get('allow')]).toEqual([405, 'POST'])
    }
    expect((await send(`${service.mcpUrl}/nothing`)).status).toBe(404)
    expect((await send(`${service.mcpUrl}/api/v2/agents`)).status).toBe(404)
  })

  it('refuses a query parameter by its name, after the envelope and the method', async () => {
    const headers = { Authorization: `Bearer ${seeded.apiKey}` }
    const ask = async (body: unknown) => {
      const answer = await send(`${service.mcpUrl}/mcp?dry_run=true`, { method: 'POST', headers, body })
      return [answer.status, answer.body]
    }
    const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }
    const refused = { id: 7, error: { code: -32602, data: { field: 'dry_run' } } }
    expect(await ask(ping)).toMatchObject([200, refused])
    expect(await ask([ping])).toMatchObject([200, [refused]])
    expect(await ask({ ...ping, jsonrpc: '1.0' })).toMatchObject([400, { error: { code: -32600 } }])
    expect(await ask({ ...ping, method: 'none' })).toMatchObject([200, { error: { code: -32601 } }])
    expect((await ask({ jsonrpc: '2.0', method: 'notifications/initialized' }))[0]).toBe(202)
  })

  it('tells the request id, also one that the caller brought', async () => {
    expect((await call('ping')).headers.get('x-request-id')).toMatch(/^[0-9a-f]{24}$/)
    const { headers } = await rpc({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'X-Request-Id': 'trace-1' })
    expect(headers.get('x-request-id')).toBe('trace-1')
  })

  it('refuses other origins and hosts', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    for (const origin of ['https://evil.example', 'null', 'file://', 'http://127.0.0.1.evil.example']) {
      const { status, body } = await rpc(ping, { Origin: origin })
      expect([origin, status, code(body)]).toEqual([origin, 403, -32600])
    }
    for (const origin of [service.mcpUrl, 'http://localhost:6274']) {
      expect((await rpc(ping, { Origin: origin })).status).toBe(200)
    }
    // fetch does not let a Host header pass
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      const sent = request(
        `${service.mcpUrl}/mcp`,
        { method: 'POST', headers: { Host: 'rebound.example', Authorization: `Bearer ${seeded.apiKey}` } },
        (answer) => {
          answer.resume()
          resolve(answer.statusCode)
        },
      )
      sent.on('error', reject)
      sent.end(JSON.stringify(ping))
    })
    expect(status).toBe(403)
  })

  it('refuses bodies that are too large, compressed or in another charset', async () => {
    const large = await rpc(`"${'x'.repeat(10 * 1024 * 1024)}"`)
    expect([large.status, code(large.body), large.body.id]).toEqual([413, -32600, null])
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const compressed = await rpc(gzipSync(text), { 'Content-Encoding': 'gzip' })
    expect([compressed.status, code(compressed.body)]).toEqual([415, -32600])
    const utf16 = await rpc(text, { 'Content-Type': 'application/json; charset=utf-16' })
    expect([utf16.status, code(utf16.body)]).toEqual([415, -32600])
    expect((await rpc(text, { 'Content-Type': 'text/plain' })).status).toBe(200)
    expect((await rpc(text, { Accept: 'text/html' })).status).toBe(200)
  })
})
