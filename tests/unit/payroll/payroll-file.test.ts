import { describe, expect, test } from 'vitest'
import { phaseTerms } from '../../../application/payroll/pipeline-steps.ts'
import { fold } from '../../../domain/kernel/decider.ts'
import { nextStep, type PayrollFileCommand, payrollFile } from '../../../domain/payroll/payroll-file.ts'
import type { PayrollFileEvent } from '../../../domain/payroll/payroll-file-events.ts'
import { wagesRevision } from '../../../domain/payroll/payroll-file-events.ts'
import { eventsOf, specify } from '../../support/decider-spec.ts'
import { newId, policyTerms, received, recorded, row } from '../../support/payroll.ts'

const { given } = specify(payrollFile)
const id = newId()
const policy = policyTerms()
const { terms, table } = phaseTerms(policy)
/** The account that premium is debited from. */
const ACCOUNT = newId()
const OUT_OF_ORDER = { kind: 'conflict', code: 'out_of_order' } as const
const event = eventsOf(payrollFile, { file_id: id })

// a file of two chunks: a green and a red row, then a green one
const file = received(id, { rows: 3, chunks: 2 }, policy)
const { employer_id, policy_id, policy_number, row_count, period } = file.data
const whose = { employer_id, policy_id, policy_number, row_count, period }
const firstRows = recorded(id, 0, false, [row(), row({ class_code: '9999' }, 2)])
const lastRows = recorded(id, 1, true, [row({ gross_wages: 20.25, state: 'NV', class_code: '5606' }, 3)])
const normalized = event('PayrollFileNormalized', { row_count: 3, policy_revision: 7 })
const FIRST = { chunk: 0, last: false }
const LAST = { chunk: 1, last: true }
const firstValidated = event('PayrollRowsValidated', {
  ...FIRST,
  green: 1,
  red: 1,
  failures: [{ row_number: 2, reasons: [{ field: 'class_code', code: 'unknown_value', value: '9999' }] }],
  valid: { class_codes: ['8810', '5606'], states: ['CA', 'NV'] },
})
const lastValidated = event('PayrollRowsValidated', { ...LAST, green: 1, red: 0, failures: [] })
const firstWages = event('PayrollWagesCalculated', {
  ...FIRST,
  rows_processed: 1,
  auditable_cents: 100_000,
  wages: [[1, 100_000, '8810', 'CA']],
})
const lastWages = event('PayrollWagesCalculated', {
  ...LAST,
  rows_processed: 1,
  auditable_cents: 2_025,
  wages: [[3, 2_025, '5606', 'NV']],
})
const firstPremium = event('PayrollPremiumCalculated', {
  ...FIRST,
  rows_processed: 1,
  premium_cents: 250,
  premiums: [[1, 250]],
})
const lastPremium = event('PayrollPremiumCalculated', {
  // 20.25 at 2.50 per 100 is 0.50625
  ...LAST,
  rows_processed: 1,
  premium_cents: 51,
  premiums: [[3, 51]],
  completed: {
    ...whose,
    green_rows: 2,
    red_rows: 1,
    auditable_cents: 102_025,
    premium_cents: 301,
    debit_account_id: ACCOUNT,
  },
})
const failed = event('PayrollFileFailed', { stage: 'validation', error: 'it broke' })

const story: readonly PayrollFileEvent[] = [
  ...[file, firstRows, lastRows, normalized, firstValidated, lastValidated],
  ...[firstWages, lastWages, firstPremium, lastPremium],
]
const upTo = (event: PayrollFileEvent) => story.slice(0, story.indexOf(event) + 1)

const receive: PayrollFileCommand = { type: 'Receive', data: file.data }
const validate = (rows: typeof firstRows): PayrollFileCommand => ({
  type: 'ValidateChunk',
  recorded: rows.data,
  terms,
})
const wages = (rows: typeof firstRows): PayrollFileCommand => ({
  type: 'CalculateWages',
  recorded: rows.data,
  terms,
  overtimeExclusion: false,
})
const premium = (calculated: typeof firstWages): PayrollFileCommand => ({
  type: 'CalculatePremium',
  calculated: calculated.data,
  table,
  debitAccountId: ACCOUNT,
})
const recordRows = (rows: typeof firstRows): PayrollFileCommand => ({
  type: 'RecordRows',
  rows: rows.data.rows,
})

describe('a payroll file', () => {
  test('is received once', () => {
    given().when(receive).thenEvents(file)
    given(file).when(receive).thenRejection({ kind: 'conflict', code: 'file_exists' })
  })

  test('needs to be received before anything else', () => {
    for (const command of [
      recordRows(firstRows),
      validate(firstRows),
      { type: 'Normalize', policyRevision: 0 } as const,
    ]) {
      given().when(command).thenRejection({ kind: 'not_found', code: 'file_not_found' })
    }
  })

  test('goes through its phases in order, chunk by chunk', () => {
    given(file).when(recordRows(firstRows)).thenEvents(firstRows)
    given(...upTo(firstRows))
      .when(recordRows(lastRows))
      .thenEvents(lastRows)
    given(...upTo(lastRows))
      .when({ type: 'Normalize', policyRevision: 7 })
      .thenEvents(normalized)
    given(...upTo(normalized))
      .when(validate(firstRows))
      .thenEvents(firstValidated)
    given(...upTo(firstValidated))
      .when(validate(lastRows))
      .thenEvents(lastValidated)
    given(...upTo(lastValidated))
      .when(wages(firstRows))
      .thenEvents(firstWages)
    given(...upTo(firstWages))
      .when(wages(lastRows))
      .thenEvents(lastWages)
    given(...upTo(lastWages))
      .when(premium(firstWages))
      .thenEvents(firstPremium)
    given(...upTo(firstPremium))
      .when(premium(lastWages))
      .thenEvents(lastPremium)
  })

  test('takes no step out of turn, whatever the step and wherever it stands', () => {
    const steps: readonly [PayrollFileCommand, PayrollFileEvent][] = [
      [recordRows(firstRows), firstRows],
      [recordRows(lastRows), lastRows],
      [{ type: 'Normalize', policyRevision: 7 }, normalized],
      [validate(firstRows), firstValidated],
      [validate(lastRows), lastValidated],
      [wages(firstRows), firstWages],
      [wages(lastRows), lastWages],
      [premium(firstWages), firstPremium],
      [premium(lastWages), lastPremium],
    ]
    for (const before of story) {
      for (const [command, event] of steps) {
        // rows are recorded by whoever sends them next: which chunk they are is not theirs to say
        if (story.indexOf(event) === story.indexOf(before) + 1) continue
        if (command.type === 'RecordRows' && nextStep(fold(payrollFile, upTo(before))).step === 'record_rows')
          continue
        given(...upTo(before))
          .when(command)
          .thenRejection(OUT_OF_ORDER)
      }
    }
  })

  test('says where to go on', () => {
    expect(story.map((event) => nextStep(fold(payrollFile, upTo(event))))).toEqual([
      { step: 'record_rows' },
      { step: 'record_rows' },
      { step: 'normalize' },
      { step: 'validate', chunk: 0 },
      { step: 'validate', chunk: 1 },
      { step: 'calculate_wages', chunk: 0 },
      { step: 'calculate_wages', chunk: 1 },
      { step: 'calculate_premium', chunk: 0 },
      { step: 'calculate_premium', chunk: 1 },
      { step: 'complete' },
    ])
  })

  test('sums up what its phases found', () => {
    expect(fold(payrollFile, story)).toMatchObject({
      rows_recorded: 3,
      policy_revision: 7,
      validated: { chunks: 2, green: 2, red: 1 },
      wages: { chunks: 2, rows: 2, cents: 102_025 },
      premium: { chunks: 2, rows: 2, cents: 301 },
      failed: null,
    })
  })

  test('fails once, at any point before it is complete, and then stays as it is', () => {
    const fail: PayrollFileCommand = { type: 'Fail', stage: 'validation', error: 'it broke' }
    for (const before of story.slice(0, -1))
      given(...upTo(before))
        .when(fail)
        .thenEvents(failed)
    given(...story)
      .when(fail)
      .thenEvents()
    given(...upTo(normalized), failed)
      .when(fail)
      .thenEvents()
    given(...upTo(normalized), failed)
      .when(validate(firstRows))
      .thenRejection(OUT_OF_ORDER)
    given(file, failed).when(recordRows(firstRows)).thenRejection(OUT_OF_ORDER)
    expect(nextStep(fold(payrollFile, [...upTo(normalized), failed]))).toEqual({ step: 'failed' })
  })

  test('fails for a class code and state without a rate, and charges nothing instead', () => {
    const { table: gap } = phaseTerms({
      ...policy,
      rates: policy.rates.filter(({ state }) => state !== 'NV'),
    })
    given(...upTo(firstPremium))
      .when({ type: 'CalculatePremium', calculated: lastWages.data, table: gap, debitAccountId: null })
      .thenEvents(
        event('PayrollFileFailed', {
          stage: 'premium_calculation',
          error: 'The policy has no rate for class code 5606 in NV (row 3)',
        }),
      )
  })

  test.each([
    [0, 'PayrollPremiumCalculated'],
    [1, 'PayrollFileFailed'],
  ])(
    'fails above the highest premium that a number holds exactly, not at it: %i cents above',
    (above, type) => {
      const before = { ...firstPremium.data, premium_cents: Number.MAX_SAFE_INTEGER - 51 + above }
      const [outcome] = given(...upTo(lastWages), event('PayrollPremiumCalculated', before))
        .when({ type: 'CalculatePremium', calculated: lastWages.data, table, debitAccountId: null })
        .events()
      expect(outcome).toMatchObject({ type })
    },
  )

  test('costs nothing under a policy that carries no rates at all', () => {
    const { table: none } = phaseTerms({ ...policy, rates: [] })
    const [event] = given(...upTo(lastWages))
      .when({ type: 'CalculatePremium', calculated: firstWages.data, table: none, debitAccountId: null })
      .events()
    expect(event).toMatchObject({
      type: 'PayrollPremiumCalculated',
      data: { premium_cents: 0, premiums: [[1, 0]] },
    })
  })

  test('deducts the premium part of overtime only under a policy that excludes it', () => {
    const rows = recorded(id, 0, true, [
      row({ gross_wages: 1_200, overtime: 300 }, 1),
      row({ gross_wages: 1_200, overtime: 300, state: 'NV' }, 2),
      row({ gross_wages: 1_200 }, 3),
    ])
    const before = [
      ...[received(id, { rows: 3, chunks: 1 }, policy), rows, normalized],
      event('PayrollRowsValidated', { chunk: 0, last: true, green: 3, red: 0, failures: [] }),
    ]
    const centsOf = (overtimeExclusion: boolean) =>
      given(...before)
        .when({ type: 'CalculateWages', recorded: rows.data, terms, overtimeExclusion })
        .events()
        .flatMap((event) => (event.type === 'PayrollWagesCalculated' ? event.data.wages : []))
        .map(([, cents]) => cents)
    expect(centsOf(true)).toEqual([110_000, 120_000, 120_000])
    expect(centsOf(false)).toEqual([120_000, 120_000, 120_000])
  })
})

describe('a file that is processed at once', () => {
  const rows = [...firstRows.data.rows, ...lastRows.data.rows]
  const { data } = received(id, { rows: 3, chunks: 1 }, policy)
  const at = (on = policy, debitAccountId: string | null = ACCOUNT): PayrollFileCommand => ({
    type: 'ReceiveAndProcess',
    data,
    rows,
    policyRevision: 7,
    debitAccountId,
    ...phaseTerms(on),
  })
  const whole = event('PayrollFileReceived', { ...data, rows })
  const processed = event('PayrollFileProcessed', {
    ...whose,
    policy_revision: 7,
    validation: {
      green: 2,
      red: 1,
      failures: firstValidated.data.failures,
      valid: firstValidated.data.valid,
    },
    wages: {
      rows_processed: 2,
      auditable_cents: 102_025,
      wages: [...firstWages.data.wages, ...lastWages.data.wages],
    },
    premium: {
      rows_processed: 2,
      premium_cents: 301,
      premiums: [...firstPremium.data.premiums, ...lastPremium.data.premiums],
    },
    debit_account_id: ACCOUNT,
  })
  /** The same rows, phase by phase, as the pipeline and earlier releases store them. */
  function phaseByPhase(on = policy): readonly PayrollFileEvent[] {
    const { terms, table, overtimeExclusion } = phaseTerms(on)
    const all = recorded(id, 0, true, rows)
    const events: PayrollFileEvent[] = []
    const take = (command: PayrollFileCommand) => {
      const decided = given(...events)
        .when(command)
        .events()
      events.push(...decided)
      return decided[0]!
    }
    take({ type: 'Receive', data })
    take({ type: 'RecordRows', rows })
    take({ type: 'Normalize', policyRevision: 7 })
    take({ type: 'ValidateChunk', recorded: all.data, terms })
    const calculated = take({ type: 'CalculateWages', recorded: all.data, terms, overtimeExclusion })
    if (calculated.type !== 'PayrollWagesCalculated') throw new Error(calculated.type)
    take({ type: 'CalculatePremium', calculated: calculated.data, table, debitAccountId: ACCOUNT })
    return events
  }

  test('is received with its rows and processed, once', () => {
    given().when(at()).thenEvents(whole, processed)
    given(whole, processed).when(at()).thenRejection({ kind: 'conflict', code: 'file_exists' })
    given(whole, processed).when({ type: 'Fail', stage: 'validation', error: 'late' }).thenEvents()
  })

  test('says that nothing is debited where there is no account, and nothing of that without a premium', () => {
    const [, event] = given().when(at(policy, null)).events()
    expect(event).toMatchObject({ type: 'PayrollFileProcessed', data: { debit_account_id: null } })
    const [, free] = given()
      .when(at({ ...policy, rates: [] }))
      .events()
    expect(free!.data).not.toHaveProperty('debit_account_id')
  })

  test('says what the phases say one by one, and comes to the same state', () => {
    const events = phaseByPhase()
    expect(events).toHaveLength(6)
    const said = (type: PayrollFileEvent['type']) => events.find((event) => event.type === type)?.data
    const { validation, wages, premium } = processed.data
    expect(said('PayrollRowsValidated')).toMatchObject(validation)
    expect(said('PayrollWagesCalculated')).toMatchObject(wages)
    expect(said('PayrollPremiumCalculated')).toMatchObject(premium!)
    expect(fold(payrollFile, [whole, processed])).toEqual(fold(payrollFile, events))
    expect(nextStep(fold(payrollFile, events))).toEqual({ step: 'complete' })
  })

  test('fails where a rate is missing, with what was found before', () => {
    const gap = { ...policy, rates: policy.rates.filter(({ state }) => state !== 'NV') }
    const { debit_account_id: _, ...found } = processed.data
    given()
      .when(at(gap))
      .thenEvents(
        whole,
        event('PayrollFileProcessed', { ...found, premium: null }),
        event('PayrollFileFailed', {
          stage: 'premium_calculation',
          error: 'The policy has no rate for class code 5606 in NV (row 3)',
        }),
      )
    const events = given().when(at(gap)).events()
    expect(fold(payrollFile, events)).toEqual(fold(payrollFile, phaseByPhase(gap)))
  })
})

test('the pipeline knows where a chunk has its wages', () => {
  expect(story.indexOf(firstWages)).toBe(wagesRevision(2, 0))
  expect(story.indexOf(lastWages)).toBe(wagesRevision(2, 1))
})
