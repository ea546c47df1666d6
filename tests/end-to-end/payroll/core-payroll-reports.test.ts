import { beforeAll, describe, expect, test } from 'vitest'
import { employeeRecord, logHead, post, report, reportBody, status } from '../../support/core.ts'
import { operate, type SeededTenant, seedEmployer, seedPolicy, seedTenant, send } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let tenant: SeededTenant
let other: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  other = await seedTenant(service)
})

const ID = /^[0-9a-f]{24}$/
const PENDING = { status: 'pending' }

async function drain(): Promise<void> {
  await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
}

describe('a report', { tags: 'each-log' }, () => {
  test('is processed before the answer and readable by the very next request', async () => {
    const employees = [
      employeeRecord({ employee_id: 'E-1', gross_wages: 1000.5 }),
      employeeRecord({ employee_id: 'E-2', class_code: '5403', state: 'NV', gross_wages: 333.33 }),
      employeeRecord({ employee_id: 'E-3', gross_wages: undefined }),
    ]
    const answer = await report(service, tenant, { employees })
    expect(answer.status).toBe(202)
    expect(answer.body).toEqual({
      success: true,
      file_id: expect.stringMatching(ID),
      status: 'completed',
      environment: 'live',
      employer: { id: tenant.employerId, business_name: tenant.employerName, fein: tenant.fein },
      policy: { id: tenant.policyId, policy_number: tenant.policyNumber },
      employee_count: 3,
      file_name: `seeded-bakery-llc_2026-01-01_2026-01-15_${tenant.policyNumber}.json`,
    })
    const read = await status(service, tenant, answer.body.file_id)
    expect(read.status).toBe(200)
    expect(read.body).toEqual({
      file_id: answer.body.file_id,
      status: 'NORMALIZED',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      employee_count: 3,
      employer_id: tenant.employerId,
      period: { start: '2026-01-01', end: '2026-01-15' },
      phase_1: { status: 'complete', green_rows: 2, red_rows: 1 },
      phase_2: { status: 'complete', processed_rows: 2 },
      // 1000.50 x 2.50 % = 25.0125, 333.33 x 10 % = 33.333
      phase_3: { status: 'complete', total_premium_cents: 2501 + 3333, processed_rows: 2 },
    })
    expect(read.body.updated_at >= read.body.created_at).toBe(true)
  })

  test('refuses names that are not kept, in whatever depth they stand', async () => {
    const record = JSON.parse('{"employee_id":"E-1","more":[{"__proto__":1}]}')
    const period = JSON.parse('{"start_date":"2026-01-01","end_date":"2026-01-15","__proto__":1}')
    const employees = [record]
    const sent = { ...reportBody(tenant, { employees, pay_period: period }), ['__proto__']: 1 }
    const ask = (body: unknown) => post(service, '/api/v1/payroll/reports', tenant.clientHeaders, body)
    const { status, body } = await ask(sent)
    const inRecord = 'employees[0].more[0].__proto__'
    expect([status, body.error, body.field]).toEqual([400, 'Unknown field', inRecord])
    expect(body.errors.map(({ field }: { field: string }) => field)).toEqual([
      inRecord,
      'pay_period.__proto__',
      '__proto__',
    ])
    // what was accepted once under its key is answered again, as of builds that took such a record
    const keyed = (employees: readonly unknown[], key: string) =>
      post(
        service,
        '/api/v1/payroll/reports',
        { ...tenant.clientHeaders, 'Idempotency-Key': key },
        reportBody(tenant, { employees }),
      )
    const first = await keyed([{ ...record, more: [{}] }], 'kept-names')
    const again = await keyed(employees, 'kept-names')
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body])
    expect((await keyed(employees, 'other-names')).status).toBe(400)
  })

  test('takes the FEIN with and without its hyphen, on both prefixes', async () => {
    for (const employer_fein of [tenant.fein, tenant.fein.replace('-', '')]) {
      for (const prefix of ['/api/v1', '/api/v2']) {
        const body = reportBody(tenant, { employer_fein })
        const answer = await post(service, `${prefix}/payroll/reports`, tenant.clientHeaders, body)
        expect(answer.body.employer).toEqual({
          id: tenant.employerId,
          business_name: tenant.employerName,
          fein: tenant.fein,
        })
        const other = prefix === '/api/v1' ? '/api/v2' : '/api/v1'
        const read = await send(`${service.coreUrl}${other}/files/status/${answer.body.file_id}`, {
          headers: tenant.clientHeaders,
        })
        expect(read.status).toBe(200)
      }
    }
  })

  test('without a pay period has period null', async () => {
    for (const pay_period of [undefined, null]) {
      const answer = await report(service, tenant, { pay_period })
      expect(answer.status).toBe(202)
      expect(answer.body.file_name).toContain(tenant.policyNumber)
      expect((await status(service, tenant, answer.body.file_id)).body.period).toBeNull()
    }
  })

  test('takes records of any shape: what fails the rules is a red row', async () => {
    const employees = [
      {},
      { anything: { nested: [1] } },
      employeeRecord({ class_code: 'NOPE' }),
      employeeRecord(),
    ]
    const answer = await report(service, tenant, { employees })
    expect(answer.status).toBe(202)
    expect((await status(service, tenant, answer.body.file_id)).body.phase_1).toEqual({
      status: 'complete',
      green_rows: 1,
      red_rows: 3,
    })
  })

  test('without a rate for a row fails the file and says why', async () => {
    const unrated = await seedTenant(service, {
      policy: { rates: [{ class_code: '8810', state: 'CA', rate_per_100: '1' }] },
    })
    const answer = await report(service, unrated, {
      employees: [employeeRecord({ class_code: '5403', state: 'NV' })],
    })
    expect(answer.status).toBe(202)
    expect(answer.body.status).toBe('failed')
    const { body } = await status(service, unrated, answer.body.file_id)
    expect(body).toMatchObject({ status: 'failed', error: expect.stringContaining('5403') })
    expect(body.phase_1.status).toBe('complete')
    expect(body.phase_2.status).toBe('complete')
    expect(body.phase_3.status).toBe('failed')
  })
})

describe('more than 500 employees', { tags: 'each-log' }, () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => employeeRecord({ employee_id: `E-${index}` }))

  test('exactly 500 are synchronous', async () => {
    const answer = await report(service, tenant, { employees: many(500) })
    expect(answer.body).toMatchObject({
      file_id: expect.stringMatching(ID),
      status: 'completed',
      employee_count: 500,
    })
    expect(answer.body).not.toHaveProperty('report_id')
  })

  test('501 are processed in the background under a report_id', async () => {
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 1 })
    const answer = await report(service, tenant, { employees: many(501) })
    expect(answer.status).toBe(202)
    expect(answer.body).toMatchObject({
      success: true,
      file_id: null,
      report_id: expect.stringMatching(ID),
      status: 'processing',
      employee_count: 501,
      file_name: expect.stringContaining(tenant.policyNumber),
    })
    const id = answer.body.report_id
    const early = await status(service, tenant, id)
    expect(early.status).toBe(200)
    expect(early.body).toMatchObject({ file_id: id, employee_count: 501, phase_1: PENDING, phase_2: PENDING })
    expect(['pending', 'NORMALIZED']).toContain(early.body.status)
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 0 })
    await drain()
    expect((await status(service, tenant, id)).body).toMatchObject({
      status: 'NORMALIZED',
      phase_1: { status: 'complete', green_rows: 501, red_rows: 0 },
      phase_2: { status: 'complete', processed_rows: 501 },
      phase_3: { status: 'complete', total_premium_cents: 501 * 2501, processed_rows: 501 },
    })
  })

  test('more than 50,000 are 413', async () => {
    const before = await logHead(service)
    const answer = await report(service, tenant, { employees: Array(50_001).fill({}) })
    expect(answer.status).toBe(413)
    expect(answer.body).toMatchObject({ error: 'Payload too large', message: expect.any(String) })
    expect(await logHead(service)).toBe(before)
  })
})

test('a totals row before the first name is red, also where that stands in another chunk', async () => {
  const nobody = (gross_wages: number) => ({ class_code: '8810', state: 'CA', gross_wages })
  const rows = Array.from({ length: 500 }, () => nobody(1))
  const { body } = await report(service, tenant, { employees: [...rows, nobody(500), employeeRecord()] })
  await drain()
  expect((await status(service, tenant, body.report_id)).body).toMatchObject({
    phase_1: { status: 'complete', green_rows: 501, red_rows: 1 },
  })
})

describe('a report of the wrong shape', () => {
  const cases: readonly [string, Record<string, unknown>, number, string][] = [
    ['a huge employee', { employees: [{ note: 'x'.repeat(33 * 1024) }] }, 400, 'Invalid employees'],
    ['a hyphen elsewhere', { employer_fein: '1-23456789' }, 400, 'Invalid employer_fein'],
    [
      'no such date',
      { pay_period: { start_date: '2026-02-30', end_date: '2026-03-01' } },
      400,
      'Invalid pay_period',
    ],
    [
      'ends before it starts',
      { pay_period: { start_date: '2026-02-02', end_date: '2026-02-01' } },
      400,
      'Invalid pay_period',
    ],
    ['unknown FEIN', { employer_fein: '99-9999999' }, 404, 'Employer not found'],
    ['unknown policy', { policy_number: 'WC-NONE' }, 404, 'Policy not found'],
  ]

  test.each(cases)('%s', async (_what, overrides, expectedStatus, error) => {
    const before = await logHead(service)
    for (const headers of [{}, { 'Idempotency-Key': 'refused' }] as Record<string, string>[]) {
      const answer = await report(service, tenant, overrides, headers)
      expect(answer.status).toBe(expectedStatus)
      expect(answer.body).toMatchObject({ error, message: expect.any(String) })
    }
    expect(await logHead(service)).toBe(before)
  })

  test('a required field of another type is no missing one', async () => {
    const { body } = await report(service, tenant, { policy_number: 17, employees: {} })
    const { error, code, errors } = body
    expect([error, code, errors]).toEqual([
      'Missing required fields',
      'field_invalid',
      [
        { code: 'field_invalid', field: 'policy_number', message: 'policy_number must be a string' },
        { code: 'field_invalid', field: 'employees', message: 'employees must be an array' },
      ],
    ])
  })

  test.each([
    ['{oops', 'Invalid JSON'],
    ['[]', 'Missing required fields'],
    ['{"employees":[{"a":"\\u0000"}]}', 'Invalid characters'],
    ['{"employees":[{"a":"\\ud800"}]}', 'Invalid characters'],
    ['{"employees":[{"gross_wages":1234.5600000000000001}]}', 'Invalid numbers'],
  ])('body %j', async (body, error) => {
    const answer = await post(service, '/api/v1/payroll/reports', tenant.clientHeaders, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error, message: expect.any(String) })
  })

  test('a body above 10 MiB is 413', async () => {
    const body = `${JSON.stringify(reportBody(tenant))}${' '.repeat(10 * 1024 * 1024)}`
    const answer = await post(service, '/api/v1/payroll/reports', tenant.clientHeaders, body)
    expect(answer.status).toBe(413)
    expect(answer.body).toMatchObject({ error: 'Payload too large', message: expect.any(String) })
  })
})

describe('what lies outside the scope of a key is not found', () => {
  test('an employer of another tenant or environment', async () => {
    const sandbox = await seedTenant(service, { environment: 'sandbox' })
    for (const foreign of [other, sandbox]) {
      const answer = await report(service, tenant, {
        employer_fein: foreign.fein,
        policy_number: foreign.policyNumber,
      })
      expect(answer.status).toBe(404)
      expect(answer.body.error).toBe('Employer not found')
    }
  })

  test('a policy of another employer, expired, cancelled or in progress', async () => {
    const second = await seedEmployer(service, { tenantId: tenant.tenantId })
    const owner = { ...second, carrierId: tenant.carrierId }
    const foreign = await seedPolicy(service, { ...tenant })
    const expired = await seedPolicy(service, owner, {
      effective_date: '2020-01-01',
      expiration_date: '2021-01-01',
    })
    const inProgress = await seedPolicy(service, owner, { status: 'in_progress' })
    const cancelled = await seedPolicy(service, owner)
    await operate(service, 'POST', `/policies/${cancelled.policyId}/cancel`, { reason: 'test' })
    for (const { policyNumber } of [foreign, expired, inProgress, cancelled]) {
      const answer = await report(service, tenant, {
        employer_fein: second.fein,
        policy_number: policyNumber,
      })
      expect(answer.status).toBe(404)
      expect(answer.body).toMatchObject({ error: 'Policy not found', message: expect.any(String) })
    }
  })

  test('files of other tenants, and ids that name nothing', async () => {
    const { file_id } = (await report(service, tenant)).body
    expect((await status(service, other, file_id)).status).toBe(404)
    for (const id of [`${'0'.repeat(24)}`, 'x', file_id.toUpperCase(), `${file_id}0`, '%00', '..%2f..']) {
      const answer = await status(service, tenant, id)
      expect(answer.status).toBe(404)
      expect(answer.body).toMatchObject({ error: 'File not found', message: expect.any(String) })
    }
  })
})

describe('a pipeline that fails', { tags: 'each-log' }, () => {
  test('is 502 when it cannot be reached; nothing is stored and a retry passes', async () => {
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'unreachable', times: 1 })
    const head = await logHead(service)
    const headers = { 'Idempotency-Key': 'unreachable' }
    const answer = await report(service, tenant, {}, headers)
    expect(answer.status).toBe(502)
    expect(answer.body).toMatchObject({ error: 'Upstream error', message: expect.any(String) })
    expect(await logHead(service)).toBe(head)
    expect((await report(service, tenant, {}, headers)).status).toBe(202)
  })

  test('fails the file when it refuses it', async () => {
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'decline', times: 1 })
    const answer = await report(service, tenant)
    expect(answer.status).toBe(202)
    expect(answer.body.status).toBe('failed')
    const { body } = await status(service, tenant, answer.body.file_id)
    expect(body).toMatchObject({ status: 'failed', error: expect.any(String), phase_1: PENDING })
  })

  test('keeps a file pending while it is held', async () => {
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 1 })
    const answer = await report(service, tenant)
    expect(answer.body).toMatchObject({ file_id: expect.stringMatching(ID), status: 'processing' })
    const held = (await status(service, tenant, answer.body.file_id)).body
    expect(held).toMatchObject({ phase_1: PENDING, phase_2: PENDING, phase_3: PENDING })
    expect(held).not.toHaveProperty('error')
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 0 })
    await drain()
    expect((await status(service, tenant, answer.body.file_id)).body).toMatchObject({
      status: 'NORMALIZED',
      phase_3: { status: 'complete', total_premium_cents: 2501, processed_rows: 1 },
    })
  })

  test('holds it against the policy as it was when it came, however long it waits', async () => {
    const of = (class_code: string, rate_per_100: string) => ({
      class_codes: [class_code],
      rates: [{ class_code, state: 'CA', rate_per_100 }],
    })
    const insured = await seedTenant(service, { policy: { ...of('8810', '2.50'), states: ['CA'] } })
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 1 })
    const answer = await report(service, insured)
    await operate(service, 'PATCH', `/policies/${insured.policyId}`, of('5403', '10'))
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 0 })
    await drain()
    expect((await status(service, insured, answer.body.file_id)).body).toMatchObject({
      phase_1: { status: 'complete', green_rows: 1, red_rows: 0 },
      phase_3: { status: 'complete', total_premium_cents: 2501, processed_rows: 1 },
    })
  })
})
