import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { importIdOf } from '../../../../application/banking/legacy/legacy-import.ts'
import { importedId } from '../../../../domain/banking/legacy/legacy-import.ts'
import { cli } from '../../../support/cli.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'

/** Records of the legacy service, taken over by the operator. */

let service: SharedService
let tenant: SeededTenant
let sandbox: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  sandbox = await seedTenant(service, { environment: 'sandbox' })
})

const record = (changes: object = {}) => ({
  employer_id: tenant.employerId,
  period_start: '2026-04-20',
  period_end: '2026-04-26',
  premium_cents: 12_345,
  status: 'at_sb',
  ...changes,
})
function ask(method: string, path: string, body?: unknown, headers = {}): Promise<Answer> {
  return send(`${service.opsUrl}/ops/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${service.operatorToken}`, ...headers },
    ...(body === undefined ? {} : { body }),
  })
}
const post = (body: object) => ask('POST', '/legacy-collections', body)
const NDJSON = { 'Content-Type': 'application/x-ndjson' }
const linesOf = (records: readonly unknown[]) =>
  records.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n')
const upload = (name: string, records: readonly unknown[]) =>
  ask('POST', `/legacy-collections/import?import_id=${name}`, linesOf(records), NDJSON)
let imports = 0
const newImport = () => {
  imports += 1
  return `import-${imports}-${tenant.tenantId}`
}

describe('one record', () => {
  test('is stored in the account of its employer, with the carrier of its policy', async () => {
    const { employerId, policyId, carrierId, tenantId } = sandbox
    const sent = record({ employer_id: employerId, policy_id: policyId })
    const { status, body } = await post(sent)
    const expected = {
      ...sent,
      transaction_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      tenant_id: tenantId,
      environment: 'sandbox',
      carrier_id: carrierId,
      status_group: 'in_flight',
      return_code: null,
      import: null,
      created_at: '2026-04-26T00:00:00.000Z',
      recorded_at: expect.any(String),
    }
    expect([status, body.data]).toEqual([201, expected])
    const shown = await ask('GET', `/legacy-collections/${body.data.transaction_id}`)
    expect([shown.status, shown.body.data]).toEqual([200, body.data])
  })

  test.for([
    [400, 'period_end must not lie before period_start', { period_end: '2026-04-19' }],
    [404, 'employer_id names no employer', { employer_id: 'f'.repeat(24) }],
    [404, 'policy_id names no policy of the employer', { policy_id: 'f'.repeat(24) }],
    [404, "carrier_id names no carrier of the employer's tenant", { carrier_id: 'f'.repeat(24) }],
  ] as const)('is refused with %i: %s', async ([status, message, changes]) => {
    const answer = await post(record(changes))
    expect([answer.status, answer.body.message]).toEqual([status, message])
  })

  test.for(['nothing', 'f'.repeat(24), `${'f'.repeat(16)}00000001`])('%s is none', async (id) => {
    expect((await ask('GET', `/legacy-collections/${id}`)).status).toBe(404)
  })
})

describe('an import', () => {
  const amounts = (count: number) => Array.from({ length: count }, (_, index) => 1_000 + index)

  test('stores good lines, refuses bad ones by line and reason, and takes them corrected', async () => {
    const name = newImport()
    const good = amounts(2_500).map((premium_cents) => record({ premium_cents }))
    const bad = new Map<number, unknown>([
      [2, record({ employer_id: 'f'.repeat(24) })],
      [3, ''],
      [4, record({ status: 'sent' })],
      [5, '{"employer_id"'],
      [1_500, '[]'],
      [2_399, `{"__proto__":1,${JSON.stringify(record({ premium_cents: 1 })).slice(1)}`],
      [2_400, '{"status":"at_sb","status":"returned"}'],
    ])
    const first = await upload(
      name,
      good.map((one, index) => bad.get(index + 1) ?? one),
    )
    expect(first.status).toBe(200)
    expect(first.body.data).toEqual({
      import_id: name,
      stored: 2_493,
      repeated: 0,
      refused_count: 6,
      refused: [
        { line: 2, reason: 'employer_id names no employer' },
        { line: 4, reason: expect.stringMatching(/^status must be one of/) },
        { line: 5, reason: expect.stringMatching(/not (valid )?JSON/) },
        { line: 1_500, reason: 'The line must be a JSON object' },
        { line: 2_399, reason: '__proto__ is a name that is not kept' },
        { line: 2_400, reason: expect.stringMatching(/^The key status stands there twice/) },
      ],
    })
    const again = await upload(name, good)
    expect(again.body.data).toEqual({
      import_id: name,
      stored: 7,
      repeated: 2_493,
      refused: [],
      refused_count: 0,
    })
    const changed = await upload(name, [good[0], { ...good[1], premium_cents: 7 }])
    expect(changed.body.data).toMatchObject({
      stored: 0,
      repeated: 1,
      refused: [{ line: 2, reason: 'the line was imported before, and said something else' }],
    })
    const progress = await ask('GET', `/legacy-collections/import?import_id=${name}`)
    expect(progress.body.data).toMatchObject({ import_id: name, stored: 2_500, last_line: 2_500 })
    expect((await ask('GET', '/legacy-collections/import?import_id=none')).status).toBe(404)
  })

  test('without a name gets one, and may hold nothing', async () => {
    const { status, body } = await ask('POST', '/legacy-collections/import', '', NDJSON)
    expect([status, body.data]).toEqual([
      200,
      { import_id: expect.any(String), stored: 0, repeated: 0, refused: [], refused_count: 0 },
    ])
  })

  test('is refused compressed, and without the token', async () => {
    const gzip = { ...NDJSON, 'Content-Encoding': 'gzip' }
    expect((await ask('POST', '/legacy-collections/import', 'x', gzip)).status).toBe(415)
    const nobody = { ...NDJSON, Authorization: 'Bearer nobody' }
    expect((await ask('POST', '/legacy-collections/import', 'x', nobody)).status).toBe(401)
  })

  test('stands in the log in chunks of the account that it is of', async () => {
    const name = newImport()
    const records = [record(), record({ employer_id: sandbox.employerId }), record({ premium_cents: 2 })]
    await upload(name, records)
    const [begun, ...events] = await operate(service, 'GET', `/streams/legacyImport-${importIdOf(name)}`)
    expect(begun.data.name).toBe(name)
    const told = events.map(({ data, metadata }: Event) => [
      ...[metadata.tenant_id, metadata.environment, data.rows.map(({ line }) => line)],
    ])
    expect(told).toEqual([
      [tenant.tenantId, 'live', [1, 3]],
      [sandbox.tenantId, 'sandbox', [2]],
    ])
  })
})

interface Event {
  readonly data: { readonly rows: readonly { readonly line: number }[] }
  readonly metadata: { readonly tenant_id: string; readonly environment: string }
}

describe('what the bank reports of a record', () => {
  const report = (id: string, verb: string, body: object = {}) =>
    ask('POST', `/bank-rail/${id}/${verb}`, body)

  async function importedRecord(changes: object, name = newImport()): Promise<string> {
    await upload(name, [record(changes)])
    return importedId(importIdOf(name), 1)
  }

  test.for(['one by one', 'imported'])('moves it: %s', async (how) => {
    const name = newImport()
    const id =
      how === 'imported'
        ? await importedRecord({ status: 'file_transmitted' }, name)
        : (await post(record({ status: 'file_transmitted' }))).body.data.transaction_id
    const shown = () => ask('GET', `/legacy-collections/${id}`)
    // as the operator calls it, before anything happened to the record and after
    const source = how === 'imported' ? { import_id: name, line: 1 } : null
    expect((await shown()).body.data).toMatchObject({ status: 'file_transmitted', import: source })
    const acknowledged = await report(id, 'acknowledge')
    expect([acknowledged.status, acknowledged.body.data]).toEqual([
      200,
      expect.objectContaining({ transaction_id: id, status: 'sb_remit', amount_cents: 12_345 }),
    ])
    expect((await report(id, 'acknowledge')).status).toBe(200)
    expect((await report(id, 'settle')).status).toBe(409)
    expect((await shown()).body.data).toMatchObject({ status: 'sb_remit', status_group: 'money_landed' })
    expect((await report(id, 'return', { return_code: 'R01' })).body.data.status).toBe('returned')
    expect((await report(id, 'return', { return_code: 'R02' })).status).toBe(409)
    expect((await shown()).body.data).toMatchObject({
      status: 'returned',
      status_group: 'failed',
      return_code: 'R01',
      import: source,
    })
  })

  test('that does not fit changes nothing', async () => {
    const id = await importedRecord({ status: 'pending' })
    expect((await report(id, 'acknowledge')).status).toBe(409)
    expect((await ask('GET', `/legacy-collections/${id}`)).body.data.status).toBe('pending')
  })
})

const directory = temporaryDirectory()
test('a file is imported from the command line, and again without effect', async () => {
  const file = join(directory, 'records.ndjson')
  await writeFile(file, linesOf([record({ premium_cents: 1 }), record({ premium_cents: 2 })]))
  const options = { env: { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: service.operatorToken } }
  const run = (...args: string[]) => cli(['legacy-collections', 'import', ...args], options)
  const first = await run(file, '--json')
  expect([first.code, first.json()]).toMatchObject([
    0,
    { import_id: expect.stringMatching(/^records\.ndjson-[0-9a-f]{16}$/), stored: 2, repeated: 0 },
  ])
  expect(first.stderr).toMatch(/^importing: 100 %, 1 lines$/m)
  expect((await run(file, '--json')).json()).toMatchObject({ stored: 0, repeated: 2 })
  const piped = await cli(['legacy-collections', 'import', '-', '--import-id', newImport()], {
    ...options,
    stdin: 'no record',
  })
  const refused = 'error: 1 line was refused; correct it in its place, and send the file again.'
  expect([piped.code, piped.stderr]).toEqual([1, expect.stringContaining(refused)])
  const nameless = await cli(['legacy-collections', 'import', '-'], options)
  expect([nameless.code, nameless.stderr]).toEqual([2, expect.stringContaining('--import-id')])
})
