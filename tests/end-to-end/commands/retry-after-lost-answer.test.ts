// @module-tag postgres-log: nothing but a trigger in PostgreSQL refuses events, or holds them back, at the worst moment
// @module-tag long: integration/commands/idempotent and keyed-creations have attempts that died, chaos/pipeline-kill their service
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  allEvents,
  employeeRecord,
  post,
  report,
  reportBody,
  serviceTime,
  sign,
  status,
} from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import {
  type Answer,
  callTool,
  operate,
  payrollRow,
  type SeededTenant,
  seedPolicy,
  seedTenant,
} from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

let database: TestDatabase
let client: pg.Client
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  database = await createTestDatabase()
  client = new pg.Client(database.url)
  await client.connect()
  await client.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$`)
  service = await startService({
    env: { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64') },
  })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await client?.end()
  await database?.drop()
})

/** Sends while the log takes no event for which the condition holds: the request dies there. */
async function dyingAt(condition: string, request: () => Promise<Answer>): Promise<void> {
  await client.query(`
    CREATE TRIGGER dying BEFORE INSERT ON event_log.events
    FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION refuse()`)
  try {
    expect((await request()).status).toBe(500)
  } finally {
    await client.query('DROP TRIGGER dying ON event_log.events')
  }
}

const BEFORE_THE_ANSWER = "NEW.type = 'IdempotencyKeyAnswered'"

async function filesOf(employeeCount: number): Promise<string[]> {
  const received = await allEvents(service, 'PayrollFileReceived')
  return received.flatMap(({ data }) => (data.row_count === employeeCount ? [String(data.file_id)] : []))
}

test('a push that is signed anew under the same key is the same file', async () => {
  const connection = await operate(service, 'POST', '/inbound-connections', {
    tenant_id: tenant.tenantId,
    environment: 'live',
  })
  const now = await serviceTime(service)
  const body = JSON.stringify(reportBody(tenant, { employees: employeesOf(3) }))
  const push = (timestamp: number, key: string) =>
    post(
      service,
      `/api/v1/webhook/inbound/${connection.connection_id}`,
      {
        'X-Webhook-Timestamp': String(timestamp),
        'X-Webhook-Signature': sign(connection.secret, timestamp, body),
        'Idempotency-Key': key,
      },
      body,
    )
  await dyingAt(BEFORE_THE_ANSWER, () => push(now, 'signed-anew'))
  const stored = await filesOf(3)
  expect(stored).toHaveLength(1)

  const retried = await push(now + 1, 'signed-anew')
  expect([retried.status, retried.body.file_id]).toEqual([202, stored[0]])
  for (const again of [await push(now + 2, 'signed-anew'), await push(now + 1, 'another-key')]) {
    expect([again.status, again.body.file_id]).toEqual([202, stored[0]])
  }
  expect(await filesOf(3)).toEqual(stored)
  // a signature keeps the file of its first use: under another key, too, nothing is reported twice
  expect((await push(now, 'one-more-key')).body.file_id).toBe(stored[0])
})

test('an upload that was given up keeps its key from another body, however few rows that has', async () => {
  const note = 'n'.repeat(20_000)
  const rows = (first: string) =>
    Array.from({ length: 60 }, (_, index) => employeeRecord({ employee_id: `${first}-${index}`, note }))
  const upload = (first: string) =>
    report(service, tenant, { employees: rows(first) }, { 'Idempotency-Key': 'given-up-wide' })
  const files = await filesOf(60)
  const failed = (await allEvents(service, 'PayrollFileFailed')).length
  await dyingAt("NEW.type = 'PayrollRowsRecorded' AND NEW.data::json->>'last' = 'true'", () => upload('A'))
  await operate(service, 'POST', '/clock/advance', { seconds: 61 })
  await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
  expect(await allEvents(service, 'PayrollFileFailed')).toHaveLength(failed + 1)

  expect((await upload('B')).status).toBe(409)
  const answer = await upload('A')
  expect(answer.body).toMatchObject({ employee_count: 60 })
  expect(answer.status).toBeLessThan(300)
  expect((await upload('B')).status).toBe(409)
  expect((await upload('A')).body).toEqual(answer.body)
  expect(await filesOf(60)).toHaveLength(files.length + 2)
})

test('an upload that was given up is stored as another file although its policy was cancelled since', async () => {
  const note = 'n'.repeat(20_000)
  const employees = Array.from({ length: 61 }, (_, index) =>
    employeeRecord({ employee_id: `C-${index}`, note }),
  )
  const connection = await operate(service, 'POST', '/inbound-connections', { tenant_id: tenant.tenantId })
  const now = await serviceTime(service)
  type Policy = Awaited<ReturnType<typeof seedPolicy>>
  const senders: ((policy: Policy) => Promise<Answer>)[] = [
    ({ policyNumber }) =>
      report(service, tenant, { policy_number: policyNumber, employees }, { 'Idempotency-Key': 'cancelled' }),
    ({ policyNumber }) => {
      const body = JSON.stringify(reportBody(tenant, { policy_number: policyNumber, employees }))
      const signature = sign(connection.secret, now, body)
      const headers = { 'X-Webhook-Timestamp': String(now), 'X-Webhook-Signature': signature }
      return post(service, `/api/v1/webhook/inbound/${connection.connection_id}`, headers, body)
    },
    async ({ policyId }) => {
      const rows = employees.map(({ employee_id }) => payrollRow({ employee_id, note }))
      const given = {
        employer_id: tenant.employerId,
        policy_id: policyId,
        rows,
        idempotency_key: 'cancelled',
      }
      const { result, error } = await callTool(service, tenant.apiKey, 'submit_payroll_data', given)
      return { status: error ? 500 : 202, headers: new Headers(), text: '', body: result ?? error }
    },
  ]
  for (const [index, upload] of senders.entries()) {
    const policy = await seedPolicy(service, tenant)
    const files = await filesOf(61)
    await dyingAt("NEW.type = 'PayrollRowsRecorded' AND NEW.data::json->>'last' = 'true'", () =>
      upload(policy),
    )
    await operate(service, 'POST', '/clock/advance', { seconds: 61 })
    await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
    await operate(service, 'POST', `/policies/${policy.policyId}/cancel`, {})
    const answer = await upload(policy)
    expect([index, answer.status, answer.body]).toEqual([index, 202, expect.objectContaining({})])
    expect((await upload(policy)).body).toEqual(answer.body)
    expect((await filesOf(61)).length).toBe(files.length + 2)
  }
})

test('the rest of an upload is held against the policy as it was when the upload began', async () => {
  const of = (class_code: string) => ({
    class_codes: [class_code],
    rates: [{ class_code, state: 'CA', rate_per_100: '10' }],
  })
  // no text that looks like a code: it is taken for one because the policy has it
  const class_code = 'Clerical office'
  const insured = await seedTenant(service, { policy: of(class_code) })
  const note = 'n'.repeat(20_000)
  const employees = Array.from({ length: 62 }, (_, index) =>
    employeeRecord({ employee_id: `D-${index}`, class_code, note }),
  )
  const upload = () => report(service, insured, { employees }, { 'Idempotency-Key': 'changed' })
  await dyingAt("NEW.type = 'PayrollRowsRecorded' AND NEW.data::json->>'last' = 'true'", upload)
  await operate(service, 'PATCH', `/policies/${insured.policyId}`, of('5403'))
  const { body } = await upload()
  await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
  expect((await status(service, insured, body.file_id)).body).toMatchObject({
    phase_1: { status: 'complete', green_rows: 62, red_rows: 0 },
  })
})

function employeesOf(count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, index) => employeeRecord({ employee_id: `E-${index}` }))
}
