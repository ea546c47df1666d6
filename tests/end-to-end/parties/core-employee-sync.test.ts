import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents, logHead, post, status } from '../../support/core.ts'
import { type Answer, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
})

const ID = /^[0-9a-f]{24}$/
const HIRE = { employee_id: 'E-1', action: 'hire', name: 'Quillon Ashgrove', hire_date: '2026-01-05' }
const TERMINATE = { employee_id: 'E-2', action: 'terminate', termination_date: '2026-01-06' }
const UPDATE = { employee_id: 'E-3', action: 'update', gross_wages: 1234.56 }

function sync(
  employees: unknown,
  overrides: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return post(
    service,
    '/api/v1/employees/sync',
    { ...tenant.clientHeaders, ...headers },
    { employer_id: tenant.employerId, employees, ...overrides },
  )
}

describe('an employee sync', () => {
  test('is accepted with exactly the documented members, and its file is readable at once', async () => {
    const answer = await sync([HIRE, TERMINATE, UPDATE])
    expect(answer.status).toBe(202)
    expect(answer.body).toEqual({
      message: '3 employee changes accepted',
      sync_id: expect.stringMatching(ID),
      file_id: expect.stringMatching(ID),
      environment: 'sandbox',
      employer_id: tenant.employerId,
      employees_processed: 3,
      status: 'processing',
    })
    const read = await status(service, tenant, answer.body.file_id)
    expect(read.status).toBe(200)
    expect(read.body).toMatchObject({
      file_id: answer.body.file_id,
      status: 'NORMALIZED',
      employee_count: 3,
      employer_id: tenant.employerId,
      period: null,
      phase_1: { status: 'pending' },
      phase_2: { status: 'pending' },
      phase_3: { status: 'pending' },
    })
    for (const phase of ['phase_1', 'phase_2', 'phase_3']) {
      expect(read.body[phase]).toEqual({ status: 'pending' })
    }
  })

  test('keeps the records sealed, under the same person for the same employee_id', async () => {
    const { file_id } = (await sync([HIRE, { ...UPDATE, employee_id: HIRE.employee_id }])).body
    const recorded = (await allEvents(service, 'EmployeeChangesRecorded')).filter(
      (event) => event.data.file_id === file_id,
    )
    const changes = recorded.flatMap((event) => event.data.changes as { subject: string; action: string }[])
    expect(changes.map(({ action }) => action)).toEqual(['hire', 'update'])
    expect(changes[0]!.subject).toBe(changes[1]!.subject)
    expect(JSON.stringify(await allEvents(service))).not.toContain('Quillon')
  })

  test('of thousands of records stands in chunks and is complete', async () => {
    const employees = Array.from({ length: 2_300 }, (_, index) => ({
      ...UPDATE,
      employee_id: `P-${index}`,
      note: 'n'.repeat(index % 700),
    }))
    const { status: code, body } = await sync(employees)
    expect(code).toBe(202)
    expect(body.employees_processed).toBe(2_300)
    const events = (await allEvents(service)).filter(
      (event) => event.stream === `employeeSync-${body.file_id}`,
    )
    const chunks = events
      .slice(1)
      .map(({ data }) => data as { chunk: number; last: boolean; changes: unknown[] })
    expect(events[0]).toMatchObject({
      type: 'EmployeeSyncReceived',
      data: { record_count: 2_300, chunk_count: chunks.length },
    })
    expect(chunks.length).toBeGreaterThan(4)
    expect(chunks.map(({ chunk }) => chunk)).toEqual(chunks.map((_, index) => index))
    expect(chunks.filter(({ last }) => last)).toEqual([chunks.at(-1)])
    expect(chunks.reduce((sum, { changes }) => sum + changes.length, 0)).toBe(2_300)
    expect((await status(service, tenant, body.file_id)).body).toMatchObject({
      status: 'NORMALIZED',
      employee_count: 2_300,
    })
  })
})

describe('one bad record refuses the whole sync', () => {
  let head: string
  beforeAll(async () => {
    head = await logHead(service)
  })
  const cases: readonly [string, unknown, string][] = [
    ['null', null, 'employees'],
    ['no employee_id', { ...UPDATE, employee_id: undefined }, 'employee_id'],
    ['employee_id a number that JSON rounds', { ...UPDATE, employee_id: 2 ** 53 + 2 }, 'employee_id'],
    ['another id that JSON rounds', { ...UPDATE, manager_id: -(2 ** 53) }, 'manager_id'],
    ['an inner id that JSON rounds', { ...UPDATE, manager: { ids: [1e16] } }, 'manager'],
    ['employee_id of lost characters', { ...UPDATE, employee_id: 'E-\ufffd' }, 'employee_id'],
    ['unknown action', { ...UPDATE, action: 'fire' }, 'action'],
    ['hire without name', { ...HIRE, name: undefined }, 'name'],
    ['hire without hire_date', { ...HIRE, hire_date: undefined }, 'hire_date'],
    ['hire_date that does not exist', { ...HIRE, hire_date: '2026-02-30' }, 'hire_date'],
    ['terminate without date', { ...TERMINATE, termination_date: undefined }, 'termination_date'],
    ['update of nothing', { employee_id: 'E-3', action: 'update' }, 'employees'],
    ['larger than 32 KiB', { ...UPDATE, note: 'x'.repeat(33 * 1024) }, 'employees'],
  ]

  test.each(cases)('%s', async (_what, record, field) => {
    const answer = await sync([HIRE, record, UPDATE])
    expect(answer.status).toBe(400)
    expect(answer.body).toEqual(
      expect.objectContaining({
        error: 'Invalid employee record',
        message: expect.stringContaining('employees[1]'),
        details: [{ index: 1, field, message: answer.body.message }],
      }),
    )
  })

  test.each([
    ['gross_wages', '"employee_id":"a","gross_wages":1e999'],
    ['badge_id', '"employee_id":"a","badge_id":9007199254740993'],
    ['employee_id', '"employee_id":9007199254740993'],
    ['employee_id', '"employee_id":-1e400'],
  ])('a number that reads as another one is refused by the name of %s: %s', async (field, fields) => {
    const body = `{"employer_id":"${tenant.employerId}","employees":[{"action":"update","note":"n",${fields}}]}`
    const answer = await post(service, '/api/v1/employees/sync', tenant.clientHeaders, body)
    expect(answer.status).toBe(400)
    expect(answer.body.details).toEqual([{ index: 0, field, message: expect.any(String) }])
  })

  test('and stores nothing', async () => {
    expect(await logHead(service)).toBe(head)
  })

  test('whole numbers as large as they are exact are kept', async () => {
    expect((await sync([{ ...UPDATE, badge_id: Number.MAX_SAFE_INTEGER, share: 0.1 }])).status).toBe(202)
  })

  test('lists every fault, a hundred at the most', async () => {
    const two = await sync([{ action: 'hire', hire_date: 'x' }, UPDATE, { ...UPDATE, action: 'x' }])
    expect(
      two.body.details.map(({ index, field }: { index: number; field: string }) => [index, field]),
    ).toEqual([
      [0, 'employee_id'],
      [0, 'name'],
      [0, 'hire_date'],
      [2, 'action'],
    ])
    const many = await sync(Array(300).fill({}))
    expect(many.status).toBe(400)
    expect(many.body.details).toHaveLength(100)
  })
})

test('an employer that is unknown, malformed or another tenant’s is 404', async () => {
  const other = await seedTenant(service, { environment: 'sandbox' })
  const live = await seedTenant(service)
  const before = await logHead(service)
  for (const employer_id of ['0'.repeat(24), 'x', other.employerId, live.employerId]) {
    const answer = await sync([UPDATE], { employer_id })
    expect(answer.status).toBe(404)
    expect(answer.body).toEqual(
      expect.objectContaining({ error: 'Employer not found', message: expect.any(String) }),
    )
  }
  expect(await logHead(service)).toBe(before)
})
