// @module-tag each-log
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents, employeeRecord, logHead, post, report, storedBy } from '../../support/core.ts'
import {
  type Answer,
  operate,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

const SMALL = { employees: [employeeRecord()] }
const OTHER = { employees: [employeeRecord({ gross_wages: 1 })] }
/** More than fits one append. */
const LARGE = {
  employees: Array.from({ length: 600 }, (_, index) => employeeRecord({ employee_id: `L-${index}` })),
}

const keyed = (key: string, body: Record<string, unknown> = SMALL, of = tenant) =>
  report(service, of, body, { 'Idempotency-Key': key })
const files = async () => (await allEvents(service, 'PayrollFileReceived')).map(({ data }) => data.file_id)
const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'

describe('a report with a key', () => {
  test('costs no more events than one without', async () => {
    const without = await storedBy(service, () => report(service, tenant, SMALL))
    expect(await storedBy(service, () => keyed(randomUUID()))).toHaveLength(without.length)
  })

  test.each([
    ['small', SMALL, LARGE],
    ['large', LARGE, SMALL],
  ])('is one file when a %s body comes at once with another size', async (_, one, other) => {
    for (let round = 0; round < 5; round += 1) {
      const key = randomUUID()
      const before = await files()
      const answers = await Promise.all([
        keyed(key, one),
        keyed(key, other),
        keyed(key, one),
        keyed(key, other),
      ])
      const accepted = answers.filter((answer) => answer.status === 202)
      expect(accepted).toHaveLength(2)
      expect(accepted[0]!.body).toEqual(accepted[1]!.body)
      expect(answers.filter((answer) => answer.status === 409)).toHaveLength(2)
      const { file_id, report_id } = accepted[0]!.body
      expect((await files()).slice(before.length)).toEqual([file_id ?? report_id])
    }
  })

  test('that was refused leaves its key to another body', async () => {
    for (const body of [SMALL, LARGE]) {
      const key = randomUUID()
      await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
      const head = await logHead(service)
      expect((await keyed(key, { ...body, policy_number: 'WC-NONE' })).status).toBe(404)
      expect(await logHead(service)).toBe(head)
      const accepted = await keyed(key, body)
      expect([accepted.status, isReplay(accepted)]).toEqual([202, false])
      expect((await keyed(key, { ...body, policy_number: 'WC-NONE' })).status).toBe(409)
    }
  })

  test('gets its first answer after the policy was cancelled and the employer renamed', async () => {
    const employer = await seedEmployer(service, { tenantId: tenant.tenantId })
    const policy = await seedPolicy(service, {
      employerId: employer.employerId,
      carrierId: tenant.carrierId,
    })
    const of = { ...tenant, ...employer, ...policy }
    const first: Answer[] = []
    const keys = [randomUUID(), randomUUID()]
    for (const [index, key] of keys.entries()) first.push(await keyed(key, [SMALL, LARGE][index], of))
    expect(first.map((answer) => answer.status)).toEqual([202, 202])
    await operate(service, 'POST', `/policies/${policy.policyId}/cancel`, {})
    await operate(service, 'PATCH', `/employers/${employer.employerId}`, { legal_name: 'Renamed' })
    for (const [index, key] of keys.entries()) {
      const again = await keyed(key, [SMALL, LARGE][index], of)
      expect([again.status, again.body, isReplay(again)]).toEqual([202, first[index]!.body, true])
      expect((await keyed(key, OTHER, of)).status).toBe(409)
    }
    expect((await keyed(randomUUID(), SMALL, of)).status).toBe(404)
  })
})

test('a repeated request makes no data key for a person who was erased since, nor does another body', async () => {
  const client = new pg.Client(service.databaseUrl)
  await client.connect()
  const dataKeys = async () =>
    (await client.query('SELECT subject, generation, destroyed_at FROM runtime.data_keys ORDER BY subject'))
      .rows
  const sync = (key: string, id: string) =>
    post(
      service,
      '/api/v1/employees/sync',
      { ...tenant.clientHeaders, 'Idempotency-Key': key },
      {
        employer_id: tenant.employerId,
        employees: [{ employee_id: id, action: 'update', department: 'Sales' }],
      },
    )
  const reports = (count: number) => (key: string, id: string) =>
    keyed(key, {
      employees: Array.from({ length: count }, (_, index) =>
        employeeRecord({ employee_id: index === 0 ? id : `${id}-${index}` }),
      ),
    })
  try {
    for (const [index, send] of [reports(1), reports(600), sync].entries()) {
      const key = randomUUID()
      const first = await send(key, `erased-${index}`)
      expect(first.status).toBe(202)
      await operate(service, 'POST', '/erasures', {
        employer_id: tenant.employerId,
        employee_id: `erased-${index}`,
      })
      const before = await dataKeys()
      const again = await send(key, `erased-${index}`)
      expect([again.status, again.body, isReplay(again)]).toEqual([202, first.body, true])
      expect((await send(key, `never-reported-${index}`)).status).toBe(409)
      expect(await dataKeys()).toEqual(before)
    }
  } finally {
    await client.end()
  }
})

test('a sync with a key is one append, and the same again gets the first answer', async () => {
  const sync = (key: string, count: number) =>
    post(
      service,
      '/api/v1/employees/sync',
      { ...tenant.clientHeaders, 'Idempotency-Key': key },
      {
        employer_id: tenant.employerId,
        employees: Array.from({ length: count }, (_, index) => ({
          employee_id: `S-${index}`,
          action: 'update',
          department: 'Sales',
        })),
      },
    )
  for (const count of [2, 700]) {
    const key = randomUUID()
    let answers: readonly Answer[] = []
    const stored = await storedBy(service, async () => {
      answers = await Promise.all([sync(key, count), sync(key, count + 1), sync(key, count)])
    })
    const accepted = answers.filter((answer) => answer.status === 202)
    expect(new Set(accepted.map(({ text }) => text)).size).toBe(1)
    expect(accepted.filter((answer) => !isReplay(answer)).length).toBeGreaterThanOrEqual(1)
    const chunks = Math.ceil(Number(accepted[0]!.body.employees_processed) / 500)
    expect(stored).toHaveLength(1 + chunks)
    const other = accepted[0]!.body.employees_processed === count ? count + 1 : count
    expect((await sync(key, other)).status).toBe(409)
    const again = await sync(key, accepted[0]!.body.employees_processed)
    expect([again.status, again.body, isReplay(again)]).toEqual([202, accepted[0]!.body, true])
  }
})
