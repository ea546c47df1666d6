import { describe, expect, test } from 'vitest'
import {
  type GateFacts,
  isUnusual,
  RECENT_STATUSES,
  stopOf,
} from '../../../../domain/banking/debits/debit-gates.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'

type Debit = Parameters<typeof stopOf>[0]

const CUTOFF = Date.parse('2026-04-27T00:00:00Z')
/** A debit that no gate stops. */
const debit: Debit = {
  source: 'api',
  status: 'pending',
  released_from: [],
  amount_cents: 2_000,
  check_date: null,
  effective_date: null,
  ingested_at: '2026-11-24T17:00:00.000Z',
  created_at: '2026-11-24T17:00:00.000Z',
}
const policy: GateFacts['policy'] = {
  billing_type: 'PAY_AS_YOU_GO',
  status: 'active',
  expiration_date: '2027-01-01',
}
const facts: GateFacts = {
  policy,
  isCollectedByLegacy: false,
  forwardCutoff: CUTOFF,
  recent: { count: 3, sumCents: 3_000n },
  isUnlisted: false,
}
/** As gate, status and reason; null: it passes. */
const stopped = (changed: Partial<Debit>, known: Partial<GateFacts> = {}) => {
  const stop = stopOf({ ...debit, ...changed }, { ...facts, ...known })
  return stop && [stop.gate, stop.status, stop.reason]
}
const of = (changed: Partial<GateFacts['policy']>) => ({ policy: { ...policy, ...changed } })

const NON_PAYGO = ['billing', 'failed', 'non_paygo_blocked']
const INACTIVE = ['billing', 'failed', 'policy_inactive_blocked']
const LEGACY = ['legacy', 'legacy_collected', 'legacy_collected']
const TOO_EARLY = ['cutoff', 'cancelled', 'before_forward_cutoff']
const UNUSUAL = ['anomaly', 'quarantined', 'amount_anomaly_above_100pct_of_recent_average']

test('an account that its bank does not list any more waits for an operator, also in its batch', () => {
  const vanished = ['account', 'quarantined', 'account_not_listed']
  expect(stopped({}, { isUnlisted: true })).toEqual(vanished)
  expect(stopped({ status: 'Scheduled' }, { isUnlisted: true })).toEqual(vanished)
  expect(stopped({ released_from: ['anomaly'] }, { isUnlisted: true })).toEqual(vanished)
  expect(stopped({ released_from: ['account'] }, { isUnlisted: true })).toBeNull()
})

describe('the billing gate', () => {
  test.each<[string, Partial<Debit>, Partial<GateFacts['policy']>, readonly string[] | null]>([
    ['passes a policy that is billed as payroll goes', {}, {}, null],
    ['passes a policy of which nothing is said', {}, { billing_type: null }, null],
    ['passes a policy in progress', {}, { status: 'in_progress' }, null],
    ['stops a policy that is billed directly', {}, { billing_type: 'DIRECT_BILLING' }, NON_PAYGO],
    ['stops a cancelled policy', {}, { status: 'cancelled' }, INACTIVE],
    ['stops one of which nothing is said', {}, { billing_type: null, status: 'cancelled' }, INACTIVE],
    [
      'names the billing first',
      {},
      { billing_type: 'DIRECT_BILLING', status: 'cancelled', expiration_date: '2020-01-01' },
      NON_PAYGO,
    ],
    // the check date, else the day asked for, else that of creation
    ['passes a check date before the expiration', { check_date: '2026-12-31' }, {}, null],
    ['stops a check date on the expiration', { check_date: '2027-01-01' }, {}, INACTIVE],
    ['goes by the check date', { check_date: '2026-12-31', effective_date: '2027-01-05' }, {}, null],
    ['passes a day before the expiration', { effective_date: '2026-12-31' }, {}, null],
    ['stops a day on the expiration', { effective_date: '2027-01-01' }, {}, INACTIVE],
    ['passes what was created before the expiration', {}, { expiration_date: '2026-11-25' }, null],
    ['stops what was created on the expiration', {}, { expiration_date: '2026-11-24' }, INACTIVE],
    [
      'goes by the day in New York: its last moment before the expiration passes',
      { created_at: '2026-11-25T04:59:59.999Z' },
      { expiration_date: '2026-11-25' },
      null,
    ],
    [
      'goes by the day in New York: midnight there is stopped',
      { created_at: '2026-11-25T05:00:00.000Z' },
      { expiration_date: '2026-11-25' },
      INACTIVE,
    ],
    [
      'lets what is of before the expiration be collected after it',
      { check_date: '2026-06-30' },
      { expiration_date: '2026-07-01' },
      null,
    ],
  ])('%s', (_title, changed, changedPolicy, expected) => {
    expect(stopped(changed, of(changedPolicy))).toEqual(expected)
  })
})

describe('the other gates', () => {
  const early = { ingested_at: isoTime(CUTOFF - 1) }
  const unusual = { amount_cents: 2_001 }
  const collected = { isCollectedByLegacy: true }
  test.each<[string, Partial<Debit>, Partial<GateFacts>, readonly string[] | null]>([
    ['stop what the legacy service collected', {}, collected, LEGACY],
    ['stop what was accepted before the cutoff', early, {}, TOO_EARLY],
    ['pass what was accepted at the cutoff', { ingested_at: isoTime(CUTOFF) }, {}, null],
    ['pass twice the mean', {}, {}, null],
    ['stop a cent more', unusual, {}, UNUSUAL],
    ['pass any amount without a history', unusual, { recent: { count: 0, sumCents: 0n } }, null],
    ['pass an amount that an operator released', { ...unusual, released_from: ['anomaly'] }, {}, null],
    ['stop one whose account alone was released', { ...unusual, released_from: ['account'] }, {}, UNUSUAL],
    ['pass an amount that is in a batch', { ...unusual, status: 'Scheduled' }, {}, null],
    ['stop what was released by the others', { ...unusual, released_from: ['anomaly'] }, collected, LEGACY],
    ['stop what is in a batch by the others', { ...early, status: 'Scheduled' }, {}, TOO_EARLY],
    // in their order
    [
      'come after billing',
      { ...early, ...unusual },
      { ...collected, ...of({ status: 'cancelled' }) },
      INACTIVE,
    ],
    ['ask first what was collected', { ...early, ...unusual }, collected, LEGACY],
    ['then when it was accepted', { ...early, ...unusual }, {}, TOO_EARLY],
  ])('%s', (_title, changed, known, expected) => expect(stopped(changed, known)).toEqual(expected))

  test.each(['api', 'collection', 'payroll_file'] as const)('ask about debits of source %s', (source) => {
    expect(stopped({ source, ...unusual })).toEqual(UNUSUAL)
  })

  test.each(['session', 'instalment'] as const)('ask nothing about debits of source %s', (source) => {
    const all = { ...collected, ...of({ billing_type: 'DIRECT_BILLING', status: 'cancelled' }) }
    expect(stopped({ source, ...early, ...unusual }, all)).toBeNull()
  })
})

test('recent debits are those that did not fail, and of no run that is under way', () => {
  expect(RECENT_STATUSES).toEqual(['Scheduled', 'submitted', 'processed', 'legacy_collected'])
})

test('the mean is compared exactly, however large the sums are', () => {
  // in floating point, three times the amount is the same as twice the sum
  const amount = 9_007_199_254_740_991
  const sumCents = (BigInt(amount) * 3n - 1n) / 2n
  expect(isUnusual(amount, { count: 3, sumCents })).toBe(true)
  expect(isUnusual(amount, { count: 3, sumCents: sumCents + 1n })).toBe(false)
})
