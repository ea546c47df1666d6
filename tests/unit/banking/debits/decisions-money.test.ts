import { describe, expect, test } from 'vitest'
import { BankDebitReturned, BankDebitSubmitted } from '../../../../domain/banking/debits/bank-debit-events.ts'
import { nextNight } from '../../../../domain/banking/debits/banking-days.ts'
import {
  countedDays,
  isAbove,
  RETURN_RATE_KINDS,
  ReturnRateExceeded,
  ReturnRateRecovered,
  ratesOf,
  returnRate,
} from '../../../../domain/banking/debits/return-rate.ts'
import {
  ReconciliationMade,
  reconciliation,
} from '../../../../domain/banking/reconciliation/reconciliation.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { returnRates } from '../../../../projections/banking/debits/return-rates.ts'
import { decisions } from '../../../support/decider-spec.ts'
import { specifyProjection } from '../../../support/projection-spec.ts'

const ID = 'a'.repeat(24)
const at = '2026-11-24T17:00:00.000Z'
const data = { return_rate_id: ID, tenant_id: ID, environment: 'live', at } as const
const none = { unauthorized: 0, administrative: 0, overall: 0 }
const compare = (entries: number, returned: Partial<typeof none>) =>
  ({ type: 'Compare', data, counted: { entries, returned: { ...none, ...returned } } }) as const
const said = (
  rate: 'unauthorized' | 'overall',
  entries: number,
  returned: number,
  limit_per_mille: number,
) => ({ ...data, rate, entries, returned, limit_per_mille })
const unauthorized = ReturnRateExceeded.of(said('unauthorized', 399, 2, 5))
const overall = ReturnRateExceeded.of(said('overall', 399, 60, 150))

test.each([
  ['2026-03-20T04:30:00Z', '2026-01-20', '2026-03-20'],
  ['2026-11-11T04:30:00Z', '2026-09-12', '2026-11-10'],
])('the days that count are sixty, also where clocks are changed within: %s', (now, from, to) => {
  expect(countedDays(Date.parse(now))).toEqual({ from, to })
})

// each row reads given, when, then
decisions(returnRate, [
  ['is within its limits', [], compare(400, { unauthorized: 2, administrative: 12, overall: 60 }), []],
  ['passes none by a single return', [], compare(1, { unauthorized: 1, administrative: 1, overall: 1 }), []],
  ['passes a limit', [], compare(399, { unauthorized: 2, overall: 2 }), unauthorized],
  ['passes several at once', [], compare(399, { unauthorized: 2, overall: 60 }), [unauthorized, overall]],
  ['passes it once', [unauthorized], compare(399, { unauthorized: 3, overall: 3 }), []],
  [
    'is within its limit again',
    [unauthorized, overall],
    compare(400, { unauthorized: 1, overall: 61 }),
    ReturnRateRecovered.of(said('unauthorized', 400, 1, 5)),
  ],
])

describe('a return', () => {
  test.each([
    ['R10', ['unauthorized', 'overall']],
    ['R03', ['administrative', 'overall']],
    ['R01', ['overall']],
    ['R79', ['overall']],
  ])('%s counts for %j', (code, rates) => {
    expect(ratesOf(code)).toEqual(rates)
  })

  test.each(['R05', 'R07', 'R10', 'R11', 'R29', 'R51'])('%s is unauthorized', (code) => {
    expect(ratesOf(code)).toContain('unauthorized')
  })

  test('counts on its day in New York', () => {
    const ofDebit = { leg_id: ID, at: '2026-11-25T04:59:59.999Z' }
    const events = [
      BankDebitSubmitted.of({ ...ofDebit, effective_date: '2026-11-25' }),
      BankDebitReturned.of({ ...ofDebit, return_code: 'R03', at: '2026-11-25T05:00:00.000Z' }),
    ]
    specifyProjection(returnRates)
      .given({ stream: `bankDebit-${ID}`, events })
      .thenRows({
        debit_days: [
          { day: '2026-11-24', entries: 1, overall: 0 },
          { day: '2026-11-25', entries: 0, administrative: 1, overall: 1 },
        ],
      })
  })

  test('without any entry is above every limit', () => {
    for (const kind of RETURN_RATE_KINDS) {
      expect(isAbove(kind, { entries: 0, returned: { ...none, [kind]: 2 } })).toBe(true)
      expect(isAbove(kind, { entries: 0, returned: { ...none, [kind]: 1 } })).toBe(false)
    }
  })
})

test.each([
  ['2026-11-24T17:00:00.000Z', '2026-11-25T08:00:00.000Z'],
  ['2026-11-25T07:59:59.999Z', '2026-11-25T08:00:00.000Z'],
  ['2026-11-25T08:00:00.000Z', '2026-11-26T08:00:00.000Z'],
  // clocks are changed in the nights to the 1st of November and the 14th of March
  ['2026-11-01T07:59:59.999Z', '2026-11-01T08:00:00.000Z'],
  ['2026-11-01T08:00:00.000Z', '2026-11-02T08:00:00.000Z'],
  ['2027-03-14T06:59:59.999Z', '2027-03-14T07:00:00.000Z'],
  ['2027-03-14T07:00:00.000Z', '2027-03-15T07:00:00.000Z'],
])('the night after %s is at %s', (time, expected) => {
  expect(isoTime(nextNight(Date.parse(time)))).toBe(expected)
})

const made = ReconciliationMade.of({
  reconciliation_id: ID,
  trigger: 'operator',
  through_position: '7',
  compared: { debits: 1, ledger: 1, balances: 6, credits: 0, files: 0 },
  differences: [],
  difference_count: 0,
  started_at: at,
  at,
})
const record = { type: 'Record', data: made.data } as const
decisions(reconciliation, [
  ['is recorded', [], record, made],
  ['is recorded once', [made], record, 'reconciliation_exists'],
])
