import fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { logHead, report, status } from '../../support/core.ts'
import { runs } from '../../support/generated.ts'
import { type Answer, payrollRow, type SeededTenant, seedTenant, sendRpc } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/**
 * Whatever callers send to the tool server, the answer is a documented refusal in the documented body, nothing is stored,
 * and others are answered as before. The APIs have described-refusals and properties/http/strict-json.
 */

let service: SharedService
let tenant: SeededTenant
let fileId: string
let head: string

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  const accepted = await report(service, tenant)
  fileId = accepted.body.file_id
  head = await logHead(service)
})

afterEach(async () => {
  expect(await logHead(service), 'nothing was stored').toBe(head)
  expect((await status(service, tenant, fileId)).status, 'others are still answered').toBe(200)
  const ping = await rpc('{"jsonrpc":"2.0","id":1,"method":"ping"}')
  expect(ping.status, 'agents are still answered').toBe(200)
})

const rpc = (body: string | Uint8Array) => sendRpc(service, tenant.apiKey, body)

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

const RPC_CODES = [-32700, -32600, -32601, -32602, -32001, -32002]

/** Errors of the tool server are documented ones, in the JSON-RPC body, with the right HTTP status. */
function expectRpcRefused(answer: Answer, ...codes: number[]): void {
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
