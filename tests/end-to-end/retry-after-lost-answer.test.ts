// @module-tag postgres-log: nothing but a trigger in PostgreSQL refuses events, or holds them back, at the worst moment
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allEvents, employeeRecord, post, report, reportBody, serviceTime, sign } from '../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { expectComplete, largePayroll } from '../support/large-payroll.ts'
import {
  type Answer,
  askOperator,
  callTool,
  newFein,
  newPolicyNumber,
  operate,
  payrollRow,
  policyDefaults,
  type SeededTenant,
  seedPolicy,
  seedTenant,
  send,
} from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

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

test('a report whose policy was cancelled since is answered with its file', async () => {
  const { policyId, policyNumber } = await seedPolicy(service, tenant)
  const send = (key: string) =>
    report(
      service,
      tenant,
      { policy_number: policyNumber, employees: employeesOf(4) },
      { 'Idempotency-Key': key },
    )
  const lost = await send('cancelled-since')
  expect(lost.status).toBe(202)
  // this one dies before anything is stored
  await dyingAt("NEW.type = 'PayrollFileReceived'", () => send('nothing-stored'))
  const stored = await filesOf(4)
  expect(stored).toHaveLength(1)
  await operate(service, 'POST', `/policies/${policyId}/cancel`, { reason: 'test' })

  const retried = await send('cancelled-since')
  expect(retried.status).toBe(202)
  expect(retried.body).toEqual(lost.body)
  expect(retried.body).toMatchObject({
    file_id: stored[0],
    status: 'completed',
    policy: { id: policyId, policy_number: policyNumber },
    employer: { id: tenant.employerId, fein: tenant.fein },
  })
  for (const key of ['nothing-stored', 'a-new-key']) expect((await send(key)).status).toBe(404)
  expect(await filesOf(4)).toEqual(stored)
})

test('a FEIN and a policy number of a creation that died go to whoever creates first, once', async () => {
  const create = (path: string, key: string, body: Record<string, unknown>) =>
    askOperator(service, 'POST', path, body, { 'Idempotency-Key': key })
  const fein = newFein()
  const number = newPolicyNumber()
  const employer = { tenant_id: tenant.tenantId, environment: 'live', fein }
  const policy = { ...policyDefaults(), carrier_id: tenant.carrierId, policy_number: number }
  for (const [path, type, body, other, idName] of [
    [
      '/employers',
      'EmployerRegistered',
      { ...employer, legal_name: 'A' },
      { ...employer, legal_name: 'B' },
      'employer_id',
    ],
    [
      '/policies',
      'PolicyIssued',
      { ...policy, employer_id: tenant.employerId },
      { ...policy, employer_id: tenant.employerId, states: ['CA'] },
      'policy_id',
    ],
  ] as const) {
    await dyingAt(`NEW.type = '${type}'`, () => create(path, `a${path}`, body))
    await operate(service, 'POST', '/clock/advance', { seconds: 660 })
    const before = (await allEvents(service, type)).length
    const created = await create(path, `b${path}`, other)
    expect(created.status).toBe(201)
    for (let retry = 0; retry < 2; retry += 1) {
      expect((await create(path, `a${path}`, body)).status).toBe(409)
      const replayed = await create(path, `b${path}`, other)
      expect([replayed.status, replayed.body.data[idName]]).toEqual([200, created.body.data[idName]])
    }
    expect(await allEvents(service, type)).toHaveLength(before + 1)
  }
})

test('a credential that was issued and never shown is named', async () => {
  const issue = () =>
    send(`${service.mcpUrl}/api/v1/agents`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.operatorToken}`, 'Idempotency-Key': 'issue' },
      body: { agent_name: 'Never shown', entity_type: 'employer', entity_id: tenant.employerId },
    })
  await dyingAt(BEFORE_THE_ANSWER, issue)
  const named = (await allEvents(service, 'AgentCredentialIssued')).filter(
    ({ data }) => data.agent_name === 'Never shown',
  )
  expect(named).toHaveLength(1)
  for (const retried of [await issue(), await issue()]) {
    expect(retried.status).toBe(409)
    expect(retried.body.message).toContain(named[0]!.data.credential_id)
  }
  expect(await allEvents(service, 'AgentCredentialIssued')).toContainEqual(named[0])
})

// one that keeps its key from another body has the same beginning
test('an upload that was given up meanwhile is stored as another file', { tags: 'long' }, async () => {
  const payroll = largePayroll(6_000, 1)
  const upload = () =>
    report(service, tenant, { employees: payroll.employees }, { 'Idempotency-Key': 'given-up' })
  const nearTheEnd = "NEW.type = 'PayrollRowsRecorded' AND NEW.data::json->>'last' = 'true'"
  for (const attempt of [1, 2]) {
    await dyingAt(nearTheEnd, upload)
    expect(await filesOf(6_000)).toHaveLength(attempt)
    await operate(service, 'POST', '/clock/advance', { seconds: 61 })
    await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
    expect(await allEvents(service, 'PayrollFileFailed')).toHaveLength(attempt)
  }

  const answer = await upload()
  expect(answer.status).toBe(202)
  expect(answer.body).toMatchObject({ status: 'processing', employee_count: 6_000 })
  const files = await filesOf(6_000)
  expect(files).toHaveLength(3)
  expect(answer.body.report_id).toBe(files[2])
  await expectComplete(service, tenant, files[2]!, payroll)
  const replayed = await upload()
  expect(replayed.body).toEqual(answer.body)
  expect(await filesOf(6_000)).toEqual(files)
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

// the test before it stores an upload that was given up as another file
test('an upload that was given up is stored as another file although its policy was cancelled since', {
  tags: 'long',
}, async () => {
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

function employeesOf(count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, index) => employeeRecord({ employee_id: `E-${index}` }))
}
