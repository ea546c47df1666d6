import { createHmac } from 'node:crypto'
import { Agent, request } from 'node:http'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { employeeRecord, logHead, report, reportBody, serviceTime, sign } from '../support/core.ts'
import { operate, payrollRow, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type SharedService, sharedService } from '../support/service.ts'

/**
 * Whatever callers send to the core API and the tool server, the answer is a documented refusal in
 * the documented body, nothing is stored, and others are answered as before.
 */

let service: SharedService
let tenant: SeededTenant
let foreign: SeededTenant
let connection: { connection_id: string; secret: string }
let fileId: string
let now: number
let head: string
const agent = new Agent({ keepAlive: true, maxSockets: 4 })

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  foreign = await seedTenant(service)
  connection = await operate(service, 'POST', '/inbound-connections', {
    tenant_id: tenant.tenantId,
    environment: 'live',
  })
  const accepted = await report(service, tenant)
  fileId = accepted.body.file_id
  now = await serviceTime(service)
  head = await logHead(service)
})
afterAll(async () => {
  agent.destroy()
})

afterEach(async () => {
  expect(await logHead(service), 'nothing was stored').toBe(head)
  const read = await exchange(`${service.coreUrl}/api/v1/files/status/${fileId}`, {
    method: 'GET',
    headers: tenant.clientHeaders,
  })
  expect(read.status, 'others are still answered').toBe(200)
  const ping = await rpc('{"jsonrpc":"2.0","id":1,"method":"ping"}')
  expect(ping.status, 'agents are still answered').toBe(200)
})

interface Exchanged {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly text: string
}

/** One request as it stands, byte for byte; a connection that breaks before the answer rejects. */
function exchange(
  url: string,
  options: {
    method?: string
    headers?: Record<string, string>
    body?: string | Uint8Array
    /** Announces more than it sends and hangs up after this many bytes. */
    hangUpAfter?: number
  } = {},
): Promise<Exchanged> {
  const { method = 'POST', headers = {}, hangUpAfter } = options
  const body = Buffer.from(options.body ?? '')
  return new Promise((resolve, reject) => {
    const length = hangUpAfter === undefined ? body.length : body.length + 1
    const sent = request(
      url,
      {
        method,
        agent,
        headers: { 'Content-Type': 'application/json', 'Content-Length': length, ...headers },
      },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            text: Buffer.concat(parts).toString(),
          }),
        )
      },
    )
    sent.on('error', reject)
    if (hangUpAfter === undefined) sent.end(body)
    else sent.write(body.subarray(0, hangUpAfter), () => sent.destroy())
  })
}

function core(
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = tenant.clientHeaders,
) {
  return exchange(`${service.coreUrl}${path}`, { headers, body })
}

function rpc(body: string | Uint8Array, headers?: Record<string, string>): Promise<Exchanged> {
  const authorization = { Authorization: `Bearer ${tenant.apiKey}` }
  return exchange(`${service.mcpUrl}/mcp`, { headers: headers ?? authorization, body })
}

const CORE_REFUSALS: Readonly<Record<number, readonly string[]>> = {
  400: [
    'Missing required fields',
    'employees must be non-empty',
    'Invalid employer_fein',
    'Invalid pay_period',
    'Invalid employees',
    'Invalid employee record',
    'Invalid JSON',
    'Invalid characters',
    'Invalid numbers',
    'Invalid Idempotency-Key',
    'Bad request',
  ],
  401: [
    'Missing authentication headers',
    'Invalid client_id',
    'Invalid client_secret',
    'Invalid signature',
    'Timestamp outside tolerance',
  ],
  404: ['Not found', 'Employer not found', 'Policy not found', 'File not found', 'Connection not found'],
  405: ['Method not allowed'],
  413: ['Payload too large'],
  415: ['Unsupported media type'],
}

/** A documented refusal in exactly the documented members, one of the given words if any are given. */
function expectRefused(answer: Exchanged, ...words: string[]): void {
  const documented = CORE_REFUSALS[answer.status]
  expect(documented, `status ${answer.status}: ${answer.text}`).toBeDefined()
  const body = JSON.parse(answer.text)
  const { details, ...members } = body
  expect(members).toEqual({ error: expect.any(String), message: expect.any(String) })
  expect(words.length > 0 ? words : documented).toContain(body.error)
  expect(details === undefined).toBe(body.error !== 'Invalid employee record')
  if (details !== undefined) {
    expect(details.length).toBeGreaterThan(0)
    expect(details.length).toBeLessThanOrEqual(100)
  }
}

const SUBMISSIONS = ['/payroll/reports', '/employees/sync'] as const
const path = fc
  .tuple(fc.constantFrom('/api/v1', '/api/v2'), fc.constantFrom(...SUBMISSIONS))
  .map(([prefix, rest]) => ({ path: `${prefix}${rest}`, of: rest }))

/** Any text: control characters, NUL, halves of surrogate pairs. */
const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
})
/** Any JSON value as a parser may meet it, large numbers included. */
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  anyText,
  fc.constantFrom(Number.MAX_SAFE_INTEGER + 1, 1e308, -1e308, 5e-324, 2 ** 64),
)
/** Characters that JSON can carry and the service refuses to store. */
const refusedCharacter = fc.constantFrom('\\u0000', '\\ud800', '\\uDFFF', '\\udc00\\ud800')

function validBody(of: (typeof SUBMISSIONS)[number]): Record<string, unknown> {
  return of === '/payroll/reports'
    ? reportBody(tenant)
    : {
        employer_id: tenant.employerId,
        employees: [{ employee_id: 'E-1', action: 'update', gross_wages: 1 }],
      }
}

/** Bytes that are no JSON text, made of one that is. */
const brokenJson = (valid: string) => {
  const bytes = Buffer.from(valid)
  return fc.oneof(
    fc.nat(bytes.length - 1).map((end) => bytes.subarray(0, end)),
    fc.uint8Array({ maxLength: 200 }).map((tail) => Buffer.concat([bytes, Buffer.from('"'), tail])),
    // 0xff stands nowhere in UTF-8
    fc
      .nat(bytes.length - 1)
      .map((at) => Buffer.from(bytes.map((byte, index) => (index === at ? 0xff : byte)))),
    fc.integer({ min: 65, max: 200_000 }).map((depth) => Buffer.from('['.repeat(depth))),
    fc
      .integer({ min: 65, max: 5_000 })
      .map((depth) => Buffer.from(`{"employees":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`)),
    fc
      .constantFrom(...Object.keys(JSON.parse(valid)))
      .map((key) => Buffer.from(`{"${key}":1,${valid.slice(1)}`)),
    fc.constant(Buffer.from(`\ufeff${valid}`)),
    fc.constant(Buffer.from(valid.replaceAll('"', "'"))),
  )
}

const RUNS = { numRuns: 60 }

describe('submissions of the core API', () => {
  test('bodies that are no JSON', () =>
    fc.assert(
      fc.asyncProperty(
        path.chain((to) => brokenJson(JSON.stringify(validBody(to.of))).map((body) => ({ ...to, body }))),
        async (sent) => expectRefused(await core(sent.path, sent.body), 'Invalid JSON'),
      ),
      { numRuns: 150 },
    ))

  test('random bytes', () =>
    fc.assert(
      fc.asyncProperty(path, fc.uint8Array({ maxLength: 2_000 }), async ({ path: to }, bytes) =>
        expectRefused(await core(to, bytes)),
      ),
      RUNS,
    ))

  test('change records with any values', () =>
    fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string(), anyJson, { maxKeys: 5 }),
        anyJson,
        async (record, action) => {
          fc.pre(!['hire', 'terminate', 'update'].includes(action as string))
          const body = { employer_id: tenant.employerId, employees: [{ ...record, action }] }
          expectRefused(await core('/api/v1/employees/sync', JSON.stringify(body)))
        },
      ),
      RUNS,
    ))

  test('characters that cannot be stored, in values and keys', () =>
    fc.assert(
      fc.asyncProperty(path, refusedCharacter, fc.boolean(), async (to, character, inKey) => {
        const valid = JSON.stringify(validBody(to.of))
        const member = inKey ? `"k${character}":1` : `"k":"a${character}"`
        const text = valid.replace('"employees":[{', `"employees":[{${member},`)
        expectRefused(await core(to.path, text), 'Invalid characters')
      }),
      RUNS,
    ))

  test('employers and policies that are unknown or another tenant’s', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom<() => [string, Record<string, unknown>]>(
          () => ['/payroll/reports', reportBody(foreign)],
          () => ['/payroll/reports', reportBody({ ...tenant, policyNumber: foreign.policyNumber })],
          () => ['/payroll/reports', reportBody({ ...foreign, policyNumber: tenant.policyNumber })],
          () => ['/employees/sync', { ...validBody('/employees/sync'), employer_id: foreign.employerId }],
          () => ['/employees/sync', { ...validBody('/employees/sync'), employer_id: tenant.tenantId }],
        ),
        fc.option(fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 40 }), { nil: undefined }),
        async (make, key) => {
          const [to, body] = make()
          const headers = {
            ...tenant.clientHeaders,
            ...(key === undefined ? {} : { 'Idempotency-Key': key }),
          }
          expectRefused(
            await core(`/api/v1${to}`, JSON.stringify(body), headers),
            'Employer not found',
            'Policy not found',
            'Invalid Idempotency-Key',
          )
        },
      ),
      RUNS,
    ))

  test('bodies and lists beyond the limits', async () => {
    const mebibytes = 'x'.repeat(11 * 1024 * 1024)
    for (const to of SUBMISSIONS) {
      expectRefused(
        await core(`/api/v1${to}`, JSON.stringify({ ...validBody(to), mebibytes })),
        'Payload too large',
      )
      const employees = Array(50_001).fill({})
      const list = JSON.stringify({ ...validBody(to), employees })
      expectRefused(await core(`/api/v1${to}`, list), 'Payload too large')
      const record = { ...employeeRecord(), action: 'update', note: 'x'.repeat(40_000) }
      const large = JSON.stringify({ ...validBody(to), employees: [record] })
      expectRefused(await core(`/api/v1${to}`, large), 'Invalid employees', 'Invalid employee record')
    }
  })

  test('compressed bodies and other encodings', async () => {
    for (const encoding of ['gzip', 'br', 'x']) {
      const headers = { ...tenant.clientHeaders, 'Content-Encoding': encoding }
      expectRefused(await core('/api/v1/payroll/reports', JSON.stringify(reportBody(tenant)), headers))
    }
  })

  test('uploads that break off', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom('/api/v1/payroll/reports', '/api/v2/employees/sync', 'inbound', 'mcp'),
        fc.nat(100),
        async (to, percent) => {
          const body = JSON.stringify({ ...reportBody(tenant), filler: 'x'.repeat(100_000) })
          const url =
            to === 'mcp'
              ? `${service.mcpUrl}/mcp`
              : `${service.coreUrl}${to === 'inbound' ? `/api/v1/webhook/inbound/${connection.connection_id}` : to}`
          const headers = {
            ...tenant.clientHeaders,
            Authorization: `Bearer ${tenant.apiKey}`,
            'X-Webhook-Timestamp': String(now),
            'X-Webhook-Signature': sign(connection.secret, now, body),
          }
          const hangUpAfter = Math.floor((body.length * percent) / 100)
          await expect(exchange(url, { headers, body, hangUpAfter })).rejects.toThrow()
        },
      ),
      { numRuns: 30 },
    ))
})

/** Halves of surrogate pairs stand in no URL. */
function isEncodable(text: string): boolean {
  try {
    encodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

describe('everything else of the core API', () => {
  test('credentials of any form', () =>
    fc.assert(
      fc.asyncProperty(
        path,
        fc.constantFrom('X-Client-ID', 'X-Client-Secret'),
        fc.oneof(
          fc.string({ unit: 'grapheme-ascii' }),
          fc.constant('foreign'),
          fc.constant(`service_live_cli_${'0'.repeat(32)}`),
          fc.string({ unit: 'grapheme-ascii', minLength: 500, maxLength: 5_000 }),
        ),
        fc.uint8Array({ maxLength: 50 }),
        async ({ path: to }, name, value, body) => {
          // the id of one client with the secret of another, or the other way round
          const swapped = name === 'X-Client-ID' ? foreign.clientId : foreign.clientSecret
          const headers = { ...tenant.clientHeaders, [name]: value === 'foreign' ? swapped : value }
          expectRefused(
            await core(to, body, headers),
            'Missing authentication headers',
            'Invalid client_id',
            'Invalid client_secret',
          )
        },
      ),
      RUNS,
    ))

  test('file ids of any form', () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(
          anyText,
          fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 24, maxLength: 24 }),
          fc.constantFrom('..', '.', '__proto__', 'constructor', "' OR 1=1 --", '0'.repeat(10_000)),
        ),
        async (id) => {
          fc.pre(id !== '' && id !== '.' && id !== '..' && isEncodable(id))
          const url = `${service.coreUrl}/api/v1/files/status/${encodeURIComponent(id)}`
          const answer = await exchange(url, { method: 'GET', headers: tenant.clientHeaders })
          expectRefused(answer, 'File not found')
        },
      ),
      RUNS,
    ))

  test('the file of another tenant', async () => {
    const url = `${service.coreUrl}/api/v1/files/status/${fileId}`
    expectRefused(await exchange(url, { method: 'GET', headers: foreign.clientHeaders }), 'File not found')
  })

  test('paths and methods of any form', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE'),
        fc.oneof(
          fc.webPath(),
          fc.constantFrom(
            '/api/v1/payroll/reports/x',
            '/api/v1/payment-links',
            '/api/v2/webhooks',
            '/api/v1/files/status/%E0%A4%A',
            '/api/v1/files/status/%00%',
            '/api/v1//payroll/reports',
            '/%2e%2e/%2e%2e/etc/passwd',
          ),
        ),
        fc.uint8Array({ maxLength: 50 }),
        async (method, rest, body) => {
          expectRefused(await exchange(`${service.coreUrl}${rest || '/'}`, { method, body }))
        },
      ),
      RUNS,
    ))

  test('pushes with any signature, timestamp or connection', () =>
    fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            timestamp: fc.oneof(
              fc.string({ unit: 'grapheme-ascii' }),
              fc.integer().map(String),
              fc.constantFrom('1e13', 'NaN', '-1', '9'.repeat(400)),
            ),
            signature: fc.oneof(
              fc.string({ unit: 'grapheme-ascii' }),
              fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 }),
            ),
            connectionId: fc.constantFrom('0'.repeat(24), 'x', '__proto__', 'A'.repeat(24)),
          },
          { requiredKeys: [] },
        ),
        async (given) => {
          fc.pre(Object.keys(given).length > 0)
          const body = JSON.stringify(reportBody(tenant))
          const timestamp = given.timestamp ?? String(now)
          const headers = {
            'X-Webhook-Timestamp': timestamp,
            'X-Webhook-Signature': given.signature ?? sign(connection.secret, timestamp.trim(), body),
          }
          const id = given.connectionId ?? connection.connection_id
          expectRefused(
            await core(`/api/v1/webhook/inbound/${id}`, body, headers),
            'Missing authentication headers',
            'Invalid signature',
            'Timestamp outside tolerance',
            'Connection not found',
          )
        },
      ),
      RUNS,
    ))

  test('pushes that are signed right and hold garbage, sent twice', () =>
    fc.assert(
      fc.asyncProperty(
        brokenJson('{"employer_fein":"x","policy_number":"y","employees":[{}]}'),
        async (body) => {
          const signature = sign(connection.secret, now, '')
          const right = createHmac('sha256', connection.secret).update(`${now}.`).update(body).digest('hex')
          const to = `/api/v1/webhook/inbound/${connection.connection_id}`
          const headers = { 'X-Webhook-Timestamp': String(now), 'X-Webhook-Signature': right }
          expectRefused(await core(to, body, headers), 'Invalid JSON')
          expectRefused(await core(to, body, headers), 'Invalid JSON')
          if (body.length > 0) {
            const forged = { ...headers, 'X-Webhook-Signature': signature }
            expectRefused(await core(to, body, forged), 'Invalid signature')
          }
        },
      ),
      RUNS,
    ))
})

const RPC_CODES = [-32700, -32600, -32601, -32602, -32001, -32002]

/** Errors of the tool server are documented ones, in the JSON-RPC body, with the right HTTP status. */
function expectRpcRefused(answer: Exchanged, ...codes: number[]): void {
  if (answer.status === 413) codes.push(-32600)
  else expect([200, 400, 401], answer.text).toContain(answer.status)
  const body = JSON.parse(answer.text)
  for (const one of Array.isArray(body) ? body : [body]) {
    expect(Object.keys(one).sort()).toEqual(['error', 'id', 'jsonrpc'])
    expect(codes.length > 0 ? codes : RPC_CODES, answer.text).toContain(one.error.code)
    expect(one.error.message).toEqual(expect.any(String))
  }
}

describe('the tool server', () => {
  test('bodies that are no JSON', () =>
    fc.assert(
      fc.asyncProperty(brokenJson('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'), async (body) =>
        expectRpcRefused(await rpc(body), -32700),
      ),
      RUNS,
    ))

  test('any JSON in place of a message', () =>
    fc.assert(
      fc.asyncProperty(anyJson, async (message) => {
        const answer = await rpc(JSON.stringify(message))
        expectRpcRefused(answer, -32600, -32700)
      }),
      RUNS,
    ))

  test('keys of any form', () =>
    fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme-ascii' }), async (key) => {
        const answer = await rpc('{"jsonrpc":"2.0","id":7,"method":"tools/list"}', {
          Authorization: `Bearer ${key}`,
        })
        expect(answer.status).toBe(401)
        expectRpcRefused(answer, -32001)
      }),
      RUNS,
    ))

  test('unknown methods and any params', () =>
    fc.assert(
      fc.asyncProperty(fc.string(), anyJson, async (name, params) => {
        const method = `garbage/${name}`
        const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
        expectRpcRefused(await rpc(message), -32601, -32602, -32600, -32700)
      }),
      RUNS,
    ))

  const tools = [
    'list_employer_policies',
    'get_expected_fields',
    'validate_payroll_submission',
    'submit_payroll_data',
    'get_submission_status',
    'get_validation_errors',
  ]

  test('tools with any arguments', () =>
    fc.assert(
      fc.asyncProperty(fc.constantFrom(...tools, 'no_such_tool'), anyJson, async (name, given) => {
        const params = { name, arguments: given }
        const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
        expectRpcRefused(await rpc(message))
      }),
      { numRuns: 120 },
    ))

  test('tools with one wrong argument, or another tenant’s ids', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom('validate_payroll_submission', 'submit_payroll_data'),
        fc.constantFrom('employer_id', 'policy_id', 'rows'),
        anyJson,
        fc.boolean(),
        async (name, field, value, fromForeign) => {
          fc.pre(!(field === 'rows' && Array.isArray(value)))
          const ids: Record<string, unknown> = {
            employer_id: foreign.employerId,
            policy_id: foreign.policyId,
          }
          const wrong = fromForeign && field !== 'rows' ? ids[field] : value
          const given = {
            employer_id: tenant.employerId,
            policy_id: tenant.policyId,
            rows: [payrollRow()],
            [field]: wrong,
          }
          const params = { name, arguments: given }
          const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
          expectRpcRefused(await rpc(message), -32602, -32002, -32700)
        },
      ),
      { numRuns: 120 },
    ))

  test('dry runs over rows of any shape are answered and store nothing', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.dictionary(
            fc.oneof(fc.constantFrom(...Object.keys(payrollRow()), 'hours', 'rate', 'ssn'), fc.string()),
            fc.jsonValue({ maxDepth: 2 }),
          ),
          { minLength: 1, maxLength: 5 },
        ),
        async (rows) => {
          const params = {
            name: 'validate_payroll_submission',
            arguments: { employer_id: tenant.employerId, policy_id: tenant.policyId, rows },
          }
          const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
          const answer = await rpc(message)
          const body = JSON.parse(answer.text)
          if (body.error) expectRpcRefused(answer, -32602, -32700)
          else
            expect(JSON.parse(body.result.content[0].text)).toMatchObject({
              dry_run: true,
              row_count: rows.length,
            })
        },
      ),
      RUNS,
    ))

  test('messages beyond the limits', async () => {
    const huge = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'x'.repeat(11 * 1024 * 1024)}"}}`
    const answer = await rpc(huge)
    expect(answer.status).toBe(413)
    expectRpcRefused(answer)
    const batch = Array(101).fill({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expectRpcRefused(await rpc(JSON.stringify(batch)), -32600)
  })

  test('credential admin routes without the operator token', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'POST'),
        fc.constantFrom('/api/v1/agents', `/api/v1/agents/${'0'.repeat(24)}/revoke`),
        fc.option(fc.string({ unit: 'grapheme-ascii' }), { nil: undefined }),
        fc.uint8Array({ maxLength: 100 }),
        async (method, to, token, body) => {
          const headers: Record<string, string> =
            token === undefined ? {} : { Authorization: `Bearer ${token}` }
          const answer = await exchange(`${service.mcpUrl}${to}`, { method, headers, body })
          expect([401, 403, 404, 405]).toContain(answer.status)
          expect(JSON.parse(answer.text)).toEqual({ error: expect.any(String), message: expect.any(String) })
        },
      ),
      RUNS,
    ))

  test('agents that the operator describes wrongly', () =>
    fc.assert(
      fc.asyncProperty(
        anyJson,
        fc.constantFrom('agent_name', 'entity_type', 'entity_id', 'sandbox', ''),
        async (value, field) => {
          const valid = {
            agent_name: 'x',
            entity_type: 'employer',
            entity_id: tenant.employerId,
            sandbox: false,
            created_by: 'tests',
          }
          fc.pre(!(field === 'sandbox' && (typeof value === 'boolean' || value === null)))
          // a name is any text, and an entity that exists nowhere is accepted and grants nothing
          fc.pre(!(['agent_name', 'entity_id'].includes(field) && typeof value === 'string'))
          const body = field === '' ? value : { ...valid, [field]: value }
          const answer = await exchange(`${service.mcpUrl}/api/v1/agents`, {
            headers: { Authorization: `Bearer ${service.operatorToken}` },
            body: JSON.stringify(body),
          })
          expect([400, 404]).toContain(answer.status)
          expect(JSON.parse(answer.text)).toEqual({ error: expect.any(String), message: expect.any(String) })
        },
      ),
      RUNS,
    ))
})
