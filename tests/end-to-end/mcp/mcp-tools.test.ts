import { beforeAll, describe, expect, it } from 'vitest'
import { logHead } from '../../support/core.ts'
import {
  callTool,
  operate,
  payrollRow,
  type SeededTenant,
  seedAgent,
  seedEmployer,
  seedPolicy,
  seedTenant,
  send,
  sendRpc,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

const call = (name: string, given: unknown, apiKey = seeded.apiKey) => callTool(service, apiKey, name, given)
const submission = (overrides: Record<string, unknown> = {}) => ({
  employer_id: seeded.employerId,
  policy_id: seeded.policyId,
  rows: [payrollRow()],
  ...overrides,
})
const toolCall = (name: string, given: unknown, id = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
})
/** Sends one submission or a batch of them under an `Idempotency-Key` header; results are as they came. */
const submitUnder = async (key: string, given: unknown) => {
  const messages = Array.isArray(given)
    ? given.map((one, index) => toolCall('submit_payroll_data', one, index))
    : toolCall('submit_payroll_data', given)
  const { status, headers, body } = await sendRpc(service, seeded.apiKey, messages, {
    'Idempotency-Key': key,
  })
  return { status, body, replayed: headers.get('idempotent-replayed') }
}
const head = () => logHead(service)

describe('arguments', () => {
  it.each([
    ['list_employer_policies', {}, 'employer_id'],
    ['list_employer_policies', { employer_id: 'x', include_expired: 'yes' }, 'include_expired'],
    ['get_expected_fields', { employer_id: 'x', policy_id: 7 }, 'policy_id'],
    ['validate_payroll_submission', { employer_id: 'x', policy_id: 'x' }, 'rows'],
    ['validate_payroll_submission', { employer_id: 'x', policy_id: 'x', rows: [] }, 'rows'],
    ['validate_payroll_submission', { employer_id: 'x', policy_id: 'x', rows: 'x' }, 'rows'],
    ['validate_payroll_submission', { employer_id: 'x', policy_id: 'x', rows: [{}, []] }, 'rows'],
    [
      'validate_payroll_submission',
      { employer_id: 'x', policy_id: 'x', rows: [{ a: 'b'.repeat(33_000) }] },
      'rows',
    ],
    ['submit_payroll_data', { employer_id: 'x', policy_id: 'x', rows: Array(50_001).fill({}) }, 'rows'],
    ['submit_payroll_data', { employer_id: 'x', policy_id: 'x', rows: [{}], dry_run: 'true' }, 'dry_run'],
    [
      'submit_payroll_data',
      { employer_id: 'x', policy_id: 'x', rows: [{}], idempotency_key: 7 },
      'idempotency_key',
    ],
    ['get_submission_status', {}, 'submission_id'],
    ['get_submission_status', { submission_id: 7 }, 'submission_id'],
    ['get_submission_status', { submission_id: null }, 'submission_id'],
    ['list_employer_policies', { employer_id: 'x', include_expired: null }, 'include_expired'],
    ['submit_payroll_data', { employer_id: 'x', policy_id: 'x', rows: [{}], dry_run: null }, 'dry_run'],
    [
      'submit_payroll_data',
      { employer_id: 'x', policy_id: 'x', rows: [{}], idempotency_key: null },
      'idempotency_key',
    ],
    ['get_submission_status', { submission_id: '0'.repeat(24), fileId: 'x' }, 'fileId'],
    ['list_employer_policies', { employerId: 'x' }, 'employerId'],
  ])('%s refuses %.80j by naming %s', async (name, given, field) => {
    const { error } = await call(name, given)
    expect(error).toMatchObject({ code: -32602, data: { field } })
    expect(error!.message).toContain(field)
  })

  it('takes no misspelt dry run for a real submission, and says which argument is meant', async () => {
    const before = await head()
    const { error } = await call('submit_payroll_data', submission({ dryRun: true }))
    expect(error).toEqual({
      code: -32602,
      message: 'dryRun is an unknown argument; did you mean dry_run?',
      data: {
        code: 'field_unknown',
        field: 'dryRun',
        errors: [
          {
            code: 'field_unknown',
            field: 'dryRun',
            message: 'dryRun is an unknown argument; did you mean dry_run?',
          },
        ],
        doc_url: `${service.mcpUrl}/docs/errors#field_unknown`,
      },
    })
    expect(await head()).toBe(before)
  })

  it('answers too many rows with HTTP 413, in a batch with the error alone', async () => {
    const message = toolCall('validate_payroll_submission', submission({ rows: Array(50_001).fill({}) }))
    const refusal = { jsonrpc: '2.0', id: 1, error: { code: -32602, data: { field: 'rows' } } }
    const one = await sendRpc(service, seeded.apiKey, message)
    expect(one.status).toBe(413)
    expect(one.body).toMatchObject(refusal)
    const batch = await sendRpc(service, seeded.apiKey, [message, { jsonrpc: '2.0', id: 2, method: 'ping' }])
    expect(batch.status).toBe(200)
    expect(batch.body).toMatchObject([refusal, { id: 2, result: {} }])
  })

  it('names both ids when neither is sent', async () => {
    const { error } = await call('get_submission_status', {})
    expect(error!.message).toContain('submission_id')
    expect(error!.message).toContain('file_id')
  })
})

describe('list_employer_policies', () => {
  it('lists active policies, expired ones on demand, others never', async () => {
    const employer = await seedEmployer(service, seeded)
    const owner = { employerId: employer.employerId, carrierId: seeded.carrierId }
    const active = await seedPolicy(service, owner)
    const expired = await seedPolicy(service, owner, {
      effective_date: '2019-01-01',
      expiration_date: '2019-12-31',
      fees: [],
    })
    await seedPolicy(service, owner, { status: 'in_progress' })
    const cancelled = await seedPolicy(service, owner)
    await operate(service, 'POST', `/policies/${cancelled.policyId}/cancel`, { reason: 'test' })

    const given = { employer_id: employer.employerId }
    const listed = {
      policy_id: active.policyId,
      policy_number: active.policyNumber,
      carrier_name: seeded.carrierName,
      status: 'active',
      effective_date: '2020-01-01',
      expiration_date: '2099-12-31',
      fee_count: 2,
    }
    const only = { employer_id: employer.employerId, policy_count: 1, policies: [listed] }
    expect((await call('list_employer_policies', given)).result).toEqual(only)
    expect((await call('list_employer_policies', { ...given, include_expired: false })).result).toEqual(only)
    expect((await call('list_employer_policies', { ...given, include_expired: true })).result).toEqual({
      employer_id: employer.employerId,
      policy_count: 2,
      policies: [
        listed,
        {
          ...listed,
          policy_id: expired.policyId,
          policy_number: expired.policyNumber,
          status: 'expired',
          effective_date: '2019-01-01',
          expiration_date: '2019-12-31',
          fee_count: 0,
        },
      ],
    })
  })
})

describe('get_expected_fields', () => {
  it('describes all active policies, or the one that is named', async () => {
    const employer = await seedEmployer(service, seeded)
    const owner = { employerId: employer.employerId, carrierId: seeded.carrierId }
    const several = await seedPolicy(service, owner)
    const single = await seedPolicy(service, owner, { class_codes: ['8810'], rates: [] })
    const expired = await seedPolicy(service, owner, {
      effective_date: '2019-01-01',
      expiration_date: '2019-12-31',
    })
    const given = { employer_id: employer.employerId }
    const { result } = await call('get_expected_fields', given)
    expect(result).toMatchObject({ employer_id: employer.employerId, employer_name: employer.employerName })
    expect(result.policies.map((policy: { policy_id: string }) => policy.policy_id)).toEqual([
      several.policyId,
      single.policyId,
    ])
    expect(result.policies[0]).toMatchObject({
      policy_number: several.policyNumber,
      carrier: seeded.carrierName,
      status: 'active',
      effective_date: '2020-01-01',
      expiration_date: '2099-12-31',
      class_codes: ['8810', '5403'],
      states: ['CA', 'NV'],
      locations: [{ id: 'LOC-1', state: 'CA' }],
      payroll_frequency: 'WEEKLY',
    })

    const names = (fields: { name: string }[]) => fields.map(({ name }) => name)
    const [first, second] = result.policies
    expect(names(first.fields.required)).toEqual(['gross_wages', 'class_code', 'state'])
    expect(first.fields.required[1].valid_values).toEqual(['8810', '5403'])
    expect(names(first.fields.optional)).toEqual([
      'employee_first_name',
      'employee_last_name',
      'overtime',
      'hours',
      'rate',
      'check_date',
      'pay_period_start',
      'pay_period_end',
    ])
    expect(names(second.fields.required)).toEqual(['gross_wages', 'state'])
    expect(second.fields.optional[0]).toMatchObject({
      name: 'class_code',
      type: 'string',
      valid_values: ['8810'],
      auto_value: '8810',
    })
    expect(JSON.stringify(result)).not.toContain('ssn')

    const one = await call('get_expected_fields', { ...given, policy_id: expired.policyId })
    expect(one.result.policies).toMatchObject([{ policy_id: expired.policyId, status: 'expired' }])
  })

  it('requires a class code and a state of any value where the policy records none', async () => {
    const employer = await seedEmployer(service, seeded)
    const { policyId } = await seedPolicy(
      service,
      { employerId: employer.employerId, carrierId: seeded.carrierId },
      { class_codes: [], states: [], rates: [] },
    )
    const { result } = await call('get_expected_fields', {
      employer_id: employer.employerId,
      policy_id: policyId,
    })
    const [, classCode, state] = result.policies[0].fields.required
    expect([classCode.name, state.name]).toEqual(['class_code', 'state'])
    expect(classCode).not.toHaveProperty('valid_values')
    expect(state).not.toHaveProperty('valid_values')
  })
})

describe('validate_payroll_submission', () => {
  it('answers a dry run and stores nothing', async () => {
    const before = await head()
    const { result } = await call(
      'validate_payroll_submission',
      submission({ rows: [payrollRow({ ssn: 'garbage' }), payrollRow({ class_code: '9999', state: 'ZZ' })] }),
    )
    expect(result).toMatchObject({
      submission_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      status: 'dry_run_complete',
      dry_run: true,
      row_count: 2,
      validation: { valid: false, error_count: 2, warning_count: 0, warnings: [] },
    })
    expect(result.validation.errors).toEqual([
      { row: 2, field: 'class_code', message: expect.stringMatching(/9999.*8810.*5403/) },
      { row: 2, field: 'state', message: expect.stringMatching(/ZZ.*CA.*NV/) },
    ])
    expect(JSON.stringify(result)).not.toContain('garbage')
    const otherwise = [{ of: 1 }, true, 2 ** 60].map((ssn) => payrollRow({ ssn }))
    const { result: ignoring } = await call('validate_payroll_submission', submission({ rows: otherwise }))
    expect(ignoring.validation).toMatchObject({ valid: true, errors: [], warnings: [] })
    expect(await head()).toBe(before)
    const { error } = await call('get_submission_status', { submission_id: result.submission_id })
    expect(error).toMatchObject({ code: -32602, data: { field: 'submission_id' } })
  })
})

describe('submit_payroll_data', () => {
  it('creates a file that goes through all phases', async () => {
    const rows = [
      payrollRow({ gross_wages: 1000, overtime: 200, ssn: '123-45-6789' }),
      payrollRow({ gross_wages: undefined, hours: 40, rate: 25.5, class_code: '5403', state: 'NV' }),
      payrollRow({ employee_first_name: 'Eve', employee_last_name: 'Red', class_code: '9999', state: 'ZZ' }),
    ]
    const { result } = await call('submit_payroll_data', submission({ rows }))
    expect(result).toEqual({
      submission_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      file_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      status: 'submitted_and_validated',
      row_count: 3,
      message: expect.stringContaining('2 passed'),
    })
    const { submission_id, file_id } = result
    const status = await call('get_submission_status', { submission_id })
    expect(status.result).toEqual({
      submission_id,
      status: 'submitted_and_validated',
      dry_run: false,
      row_count: 3,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      file_id,
      file_status: expect.any(String),
      phase_1: { total_rows: 3, green_rows: 2, red_rows: 1, status: 'complete' },
      phase_2: { total_auditable_wages_cents: 202_000, rows_processed: 2, status: 'complete' },
      phase_3: { total_premium_cents: 12_700, rows_processed: 2, status: 'complete' },
      row_breakdown: { green: 2, red: 1 },
    })
    expect((await call('get_submission_status', { file_id })).result).toEqual(status.result)
    expect((await call('get_submission_status', { submission_id, file_id })).result).toEqual(status.result)

    const errors = await call('get_validation_errors', { submission_id })
    expect(errors.result).toEqual({
      file_id,
      total_rows: 3,
      green_rows: 2,
      red_rows: 1,
      errors: [
        {
          row_id: expect.any(String),
          row_number: 3,
          employee_name: 'Eve Red',
          reasons: [
            { field: 'class_code', message: expect.stringContaining('9999'), suggestion: expect.any(String) },
            { field: 'state', message: expect.stringContaining('ZZ'), suggestion: expect.any(String) },
          ],
        },
      ],
      has_more: false,
    })
    expect((await call('get_validation_errors', { file_id })).result).toEqual(errors.result)
    const everything = JSON.stringify([result, status, errors])
    expect(everything).not.toContain('6789')
  })

  it('refuses two ids of different submissions', async () => {
    const first = (await call('submit_payroll_data', submission())).result
    const second = (await call('submit_payroll_data', submission())).result
    expect(first.submission_id).not.toBe(second.submission_id)
    expect(first.file_id).not.toBe(second.file_id)
    const mixed = { submission_id: first.submission_id, file_id: second.file_id }
    for (const name of ['get_submission_status', 'get_validation_errors']) {
      expect((await call(name, mixed)).error).toMatchObject({ code: -32602, data: { field: 'file_id' } })
    }
  })

  it('predicts in a dry run what becomes red, and names what is unknown whatever it looks like', async () => {
    const rows = [
      {},
      { gross_wages: 'x' },
      {},
      { state: 'TX' },
      { hours: 1 },
      { check_date: '1999-01-01' },
      { class_code: 'CLERICAL', state: 'Texas' },
      { ssn: '12345' },
    ].map(payrollRow)
    const dry = (await call('submit_payroll_data', submission({ rows, dry_run: true }))).result
    expect(dry).toMatchObject({ status: 'dry_run_complete', dry_run: true })
    expect(dry).not.toHaveProperty('file_id')
    const { submission_id } = (await call('submit_payroll_data', submission({ rows }))).result
    const { result } = await call('get_validation_errors', { submission_id })
    const { errors } = result as {
      errors: { row_number: number; reasons: { field: string; message: string }[] }[]
    }
    const found = errors.flatMap(({ row_number: row, reasons }) => reasons.map(({ field }) => [row, field]))
    const predicted = dry.validation.errors as { row: number; field: string; message: string }[]
    expect(predicted.map(({ row, field }) => [row, field])).toEqual(found)
    expect(found).toEqual([
      [2, 'gross_wages'],
      [4, 'state'],
      [7, 'class_code'],
      [7, 'state'],
      [8, 'ssn'],
    ])
    // the answer goes to whoever sent the value just now; what is stored of it may be a name in the wrong column
    expect(predicted[2]!.message).toMatch(/"CLERICAL".*8810.*5403/)
    expect(predicted[3]!.message).toMatch(/"Texas".*CA.*NV/)
    expect(errors[2]!.reasons.map(({ message }) => message)).toEqual(
      Array(2).fill(expect.stringContaining('"(masked)"')),
    )
  })

  it('makes every submission of a sandbox agent a dry run, silently', async () => {
    const { apiKey } = await seedAgent(service, {
      entity_type: 'employer',
      entity_id: seeded.employerId,
      sandbox: true,
    })
    const before = await head()
    for (const given of [submission(), submission({ dry_run: false, idempotency_key: 'k' })]) {
      const { result } = await call('submit_payroll_data', given, apiKey)
      expect(result).toMatchObject({ status: 'dry_run_complete', dry_run: true, row_count: 1 })
    }
    expect(await head()).toBe(before)
    expect(
      (await call('list_employer_policies', { employer_id: seeded.employerId }, apiKey)).result.policy_count,
    ).toBeGreaterThan(0)
  })

  it('reports a payroll once per idempotency key, also in parallel', async () => {
    const given = submission({ idempotency_key: 'payroll-2026-08' })
    const answers = await Promise.all(Array.from({ length: 5 }, () => call('submit_payroll_data', given)))
    answers.push(await call('submit_payroll_data', given))
    expect(new Set(answers.map(({ result }) => JSON.stringify(result))).size).toBe(1)
    expect(answers[0]!.result.status).toBe('submitted_and_validated')
    const other = await call('submit_payroll_data', { ...given, rows: [payrollRow({ gross_wages: 1 })] })
    expect(other.error).toMatchObject({ code: -32602, data: { field: 'idempotency_key' } })
  })

  it('takes the idempotency key from the header where the arguments bring none', async () => {
    const first = await submitUnder('header-1', submission())
    expect([first.status, first.replayed]).toEqual([200, null])
    const files = await head()
    expect(await submitUnder('header-1', submission())).toEqual({ ...first, replayed: 'true' })
    // the same key as an argument is the same key, and wins over the header
    expect(await submitUnder('header-2', submission({ idempotency_key: 'header-1' }))).toEqual({
      ...first,
      replayed: 'true',
    })
    expect(await head()).toBe(files)
    const other = await submitUnder('header-1', submission({ rows: [payrollRow({ gross_wages: 1 })] }))
    expect([other.status, other.replayed]).toEqual([200, null])
    expect(other.body.error).toMatchObject({ code: -32602, data: { field: 'idempotency_key' } })
    const free = await submitUnder('header-2', submission())
    expect([free.replayed, free.body.error]).toEqual([null, undefined])
    expect(free.body.result).not.toEqual(first.body.result)
    // a dry run neither uses nor claims a key
    const dry = await submitUnder('header-3', submission({ dry_run: true }))
    expect(JSON.parse(dry.body.result.content[0].text).status).toBe('dry_run_complete')
    expect((await submitUnder('header-3', submission())).replayed).toBeNull()
  })

  it('gives every message of a batch a key of its own, by its place', async () => {
    const batch = [submission(), submission()]
    const first = await submitUnder('batch-1', batch)
    expect(first.status).toBe(200)
    expect(new Set(first.body.map(({ result }: { result: unknown }) => JSON.stringify(result))).size).toBe(2)
    const events = await head()
    expect(await submitUnder('batch-1', batch)).toEqual(first)
    const second = await submitUnder('batch-1/1', submission())
    expect(second.replayed).toBe('true')
    expect(second.body.result).toEqual(first.body[1].result)
    expect(await head()).toBe(events)
  })

  it('takes active and expired policies, not those in progress or cancelled', async () => {
    const expired = await seedPolicy(service, seeded, {
      effective_date: '2019-01-01',
      expiration_date: '2019-12-31',
    })
    const draft = await seedPolicy(service, seeded, { status: 'in_progress' })
    const cancelled = await seedPolicy(service, seeded)
    await operate(service, 'POST', `/policies/${cancelled.policyId}/cancel`, { reason: 'test' })
    const submit = (policy_id: string) => call('submit_payroll_data', submission({ policy_id }))
    expect((await submit(expired.policyId)).result.status).toBe('submitted_and_validated')
    for (const { policyId } of [draft, cancelled]) {
      expect((await submit(policyId)).error).toMatchObject({ code: -32602, data: { field: 'policy_id' } })
    }
  })

  it('fails when the pipeline cannot create the file', async () => {
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'decline' })
    const { result } = await call('submit_payroll_data', submission())
    expect(result).toMatchObject({ status: 'submission_failed', file_id: null, row_count: 1 })
    expect(result.message).toContain('failed')
    const status = await call('get_submission_status', { submission_id: result.submission_id })
    expect(status.result).toMatchObject({
      status: 'submission_failed',
      error: expect.stringContaining('pipeline'),
      file_status: 'failed',
      phase_1: { status: 'pending' },
      phase_3: { status: 'pending', total_premium_cents: 0 },
    })
  })

  it('answers before validation where the pipeline is held, and the status moves later', async () => {
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold' })
    const { result } = await call('submit_payroll_data', submission())
    expect(result).toMatchObject({ status: 'submitted_validation_pending', row_count: 1 })
    expect(result.message).toMatch(/^1 row was stored/)
    const status = async () =>
      (await call('get_submission_status', { submission_id: result.submission_id })).result
    expect(await status()).toMatchObject({
      status: 'submitted_validation_pending',
      phase_1: { status: 'pending', green_rows: 0, red_rows: 0 },
      phase_2: { status: 'pending', total_auditable_wages_cents: 0, rows_processed: 0 },
      phase_3: { status: 'pending', total_premium_cents: 0, rows_processed: 0 },
    })
    expect((await call('get_validation_errors', { file_id: result.file_id })).result).toMatchObject({
      errors: [],
      has_more: false,
    })
    await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold', times: 0 })
    await operate(service, 'POST', '/drain')
    expect(await status()).toMatchObject({
      status: 'submitted_and_validated',
      phase_1: { status: 'complete' },
      phase_3: { status: 'complete' },
    })
  })

  it('takes more rows than one chunk', async () => {
    const rows = Array.from({ length: 1201 }, (_, index) =>
      payrollRow(index % 10 === 0 ? { state: 'TX' } : { gross_wages: 100 }),
    )
    const { result } = await call('submit_payroll_data', submission({ rows }))
    expect(['submitted_and_validated', 'submitted_validation_pending']).toContain(result.status)
    await operate(service, 'POST', '/drain')
    const status = (await call('get_submission_status', { file_id: result.file_id })).result
    expect(status).toMatchObject({
      status: 'submitted_and_validated',
      phase_1: { total_rows: 1201, green_rows: 1080, red_rows: 121, status: 'complete' },
      phase_2: { total_auditable_wages_cents: 10_800_000, status: 'complete' },
      phase_3: { total_premium_cents: 270_000, status: 'complete' },
    })
    const errors = (await call('get_validation_errors', { file_id: result.file_id })).result
    expect(errors).toMatchObject({ total_rows: 1201, red_rows: 121, has_more: true })
    expect(errors.errors).toHaveLength(100)
    expect(errors.errors.map((one: { row_number: number }) => one.row_number)).toEqual(
      Array.from({ length: 100 }, (_, index) => index * 10 + 1),
    )
  })

  it('has no more errors than exactly one hundred', async () => {
    const rows = Array.from({ length: 100 }, () =>
      payrollRow({ state: 'TX', employee_first_name: undefined }),
    )
    const { file_id } = (await call('submit_payroll_data', submission({ rows }))).result
    const { result } = await call('get_validation_errors', { file_id })
    expect(result).toMatchObject({ red_rows: 100, has_more: false })
    expect(result.errors).toHaveLength(100)
    expect(result.errors[0].employee_name).toBe('Baker')
    expect(new Set(result.errors.map((one: { row_id: string }) => one.row_id)).size).toBe(100)
  })
})

describe('files of the core API', () => {
  it('are readable in the agent’s scope, without a submission id', async () => {
    const report = await send(`${service.coreUrl}/api/v1/payroll/reports`, {
      method: 'POST',
      headers: seeded.clientHeaders,
      body: {
        employer_fein: seeded.fein,
        policy_number: seeded.policyNumber,
        employees: [{ first_name: 'Ada', class_code: '8810', state: 'CA', gross_wages: 10 }],
      },
    })
    expect(report.status).toBe(202)
    const { result } = await call('get_submission_status', { file_id: report.body.file_id })
    expect(result).toMatchObject({
      submission_id: null,
      status: 'submitted_and_validated',
      row_count: 1,
      phase_3: { total_premium_cents: 25, status: 'complete' },
    })
  })

  it('of more than 500 employees are found by their report id', async () => {
    const employees = Array.from({ length: 501 }, () => ({
      class_code: '8810',
      state: 'CA',
      gross_wages: 10,
    }))
    const report = await send(`${service.coreUrl}/api/v1/payroll/reports`, {
      method: 'POST',
      headers: seeded.clientHeaders,
      body: { employer_fein: seeded.fein, policy_number: seeded.policyNumber, employees },
    })
    const given = { file_id: report.body.report_id }
    expect((await call('get_submission_status', given)).result).toMatchObject({ row_count: 501 })
    await operate(service, 'POST', '/drain')
    expect((await call('get_submission_status', given)).result.phase_3.status).toBe('complete')
  })

  it('of employee syncs have phases that stay pending', async () => {
    const sync = await send(`${service.coreUrl}/api/v1/employees/sync`, {
      method: 'POST',
      headers: seeded.clientHeaders,
      body: {
        employer_id: seeded.employerId,
        employees: [{ employee_id: 'E1', action: 'hire', name: 'Ada Baker', hire_date: '2026-01-05' }],
      },
    })
    expect(sync.status).toBe(202)
    const { result } = await call('get_submission_status', { file_id: sync.body.file_id })
    expect(result).toMatchObject({
      submission_id: null,
      file_status: 'NORMALIZED',
      phase_1: { status: 'pending' },
      phase_2: { status: 'pending' },
      phase_3: { status: 'pending' },
    })
  })
})
