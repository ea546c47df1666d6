import { Agent, request } from 'node:http'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { logHead, report, reportBody } from '../../support/core.ts'
import { runs } from '../../support/generated.ts'
import { payrollRow, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/**
 * Whatever callers send to the core API and the tool server, the answer is a documented refusal in
 * the documented body, nothing is stored, and others are answered as before.
 */

let service: SharedService
let tenant: SeededTenant
let fileId: string
let head: string
const agent = new Agent({ keepAlive: true, maxSockets: 4 })

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  const accepted = await report(service, tenant)
  fileId = accepted.body.file_id
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

/** One request as it stands, byte for byte. */
function exchange(
  url: string,
  options: {
    method?: string
    headers?: Record<string, string>
    body?: string | Uint8Array
  } = {},
): Promise<Exchanged> {
  const { method = 'POST', headers = {} } = options
  const body = Buffer.from(options.body ?? '')
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method,
        agent,
        headers: { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers },
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
    sent.end(body)
  })
}

function core(path: string, body: string | Uint8Array) {
  return exchange(`${service.coreUrl}${path}`, { headers: tenant.clientHeaders, body })
}

function rpc(body: string | Uint8Array): Promise<Exchanged> {
  return exchange(`${service.mcpUrl}/mcp`, { headers: { Authorization: `Bearer ${tenant.apiKey}` }, body })
}

const CORE_REFUSALS: Readonly<Record<number, readonly string[]>> = {
  400: ['Invalid JSON', 'Bad request'],
  401: ['Missing authentication headers'],
  404: ['Not found', 'Connection not found'],
  405: ['Method not allowed'],
}

/** A documented refusal in exactly the documented members, one of the given words if any are given. */
function expectRefused(answer: Exchanged, ...words: string[]): void {
  const documented = CORE_REFUSALS[answer.status]
  expect(documented, `status ${answer.status}: ${answer.text}`).toBeDefined()
  const body = JSON.parse(answer.text)
  const { field, errors, ...always } = body
  expect(always).toEqual({
    error: expect.any(String),
    message: expect.any(String),
    code: expect.stringMatching(/^[a-z_]+$/),
    doc_url: `${service.coreUrl}/docs/errors#${body.code}`,
  })
  if (field !== undefined) expect(field).toEqual(expect.any(String))
  for (const fault of errors ?? []) expect(Object.keys(fault).sort()).toEqual(['code', 'field', 'message'])
  expect(words.length > 0 ? words : documented).toContain(body.error)
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

const RUNS = runs(20)

describe('submissions of the core API', () => {
  test('bodies that are no JSON', () =>
    fc.assert(
      fc.asyncProperty(
        path.chain((to) => brokenJson(JSON.stringify(validBody(to.of))).map((body) => ({ ...to, body }))),
        async (sent) => expectRefused(await core(sent.path, sent.body), 'Invalid JSON'),
      ),
      runs(50),
    ))
})

describe('everything else of the core API', () => {
  // described-refusals has the forms of each operation
  test('paths and methods of any form', { tags: 'long' }, () =>
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
    ),
  )
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
      runs(40),
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
})
