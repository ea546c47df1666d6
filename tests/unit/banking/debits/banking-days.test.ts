import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import {
  bankingDaysAfter,
  closeOf,
  entryDateOf,
  isBankingDay,
  lastCloseBefore,
  nextBankingDay,
  nextClose,
  previousBankingDay,
} from '../../../../domain/banking/debits/banking-days.ts'
import { newYorkDate, startOf } from '../../../../domain/kernel/new-york.ts'
import { runs } from '../../../support/generated.ts'

const DAY_MS = 86_400_000
const day = fc
  .integer({ min: Date.UTC(2022, 0, 1) / DAY_MS, max: Date.UTC(2060, 0, 1) / DAY_MS })
  .map((days) => new Date(days * DAY_MS).toISOString().slice(0, 10))

/** As the Federal Reserve publishes them; those on a Saturday are left out, as banks work on the Friday before. */
const HOLIDAYS = {
  2026: [
    ...['2026-01-01', '2026-01-19', '2026-02-16', '2026-05-25', '2026-06-19', '2026-09-07', '2026-10-12'],
    ...['2026-11-11', '2026-11-26', '2026-12-25'],
  ],
  2027: [
    ...['2027-01-01', '2027-01-18', '2027-02-15', '2027-05-31', '2027-07-05', '2027-09-06', '2027-10-11'],
    ...['2027-11-11', '2027-11-25'],
  ],
  2028: [
    ...['2028-01-17', '2028-02-21', '2028-05-29', '2028-06-19', '2028-07-04', '2028-09-04', '2028-10-09'],
    ...['2028-11-23', '2028-12-25'],
  ],
} as const

describe('banking days', () => {
  it.each(Object.entries(HOLIDAYS))(
    'of %s are the working days less the published holidays',
    (year, holidays) => {
      const closed: string[] = []
      for (let at = Date.UTC(Number(year), 0, 1); at < Date.UTC(Number(year) + 1, 0, 1); at += DAY_MS) {
        const [date, weekday] = [new Date(at).toISOString().slice(0, 10), new Date(at).getUTCDay()]
        if (weekday !== 0 && weekday !== 6 && !isBankingDay(date)) closed.push(date)
      }
      expect(closed).toEqual(holidays)
    },
  )

  it('go over a long weekend', () => {
    expect(nextBankingDay('2026-07-02')).toBe('2026-07-03')
    expect(nextBankingDay('2026-05-22')).toBe('2026-05-26')
    expect(previousBankingDay('2026-05-26')).toBe('2026-05-22')
    expect(bankingDaysAfter('2026-12-24', 2)).toBe('2026-12-29')
    expect(bankingDaysAfter('2026-12-25', 0)).toBe('2026-12-25')
  })

  it('lie next to one another', () => {
    fc.assert(
      fc.property(day, (date) => {
        const next = nextBankingDay(date)
        expect(isBankingDay(next)).toBe(true)
        expect(next > date).toBe(true)
        expect(previousBankingDay(next) <= date).toBe(true)
      }),
      runs(),
    )
  })
})

test('a day begins at midnight in New York, also when clocks are changed', () => {
  const begins = ['2026-01-15', '2026-07-15', '2026-03-08', '2026-03-09', '2026-11-01', '2026-11-02'].map(
    (date) => new Date(startOf(date)).toISOString().slice(11, 16),
  )
  expect(begins).toEqual(['05:00', '04:00', '05:00', '04:00', '04:00', '05:00'])
})

describe('the close of a batch', () => {
  it('is 17:00 in New York, in winter and in summer', () => {
    expect(new Date(closeOf('2026-01-15')).toISOString()).toBe('2026-01-15T22:00:00.000Z')
    expect(new Date(closeOf('2026-07-15')).toISOString()).toBe('2026-07-15T21:00:00.000Z')
    // the days around the change of clocks
    expect(new Date(closeOf('2026-03-06')).toISOString()).toBe('2026-03-06T22:00:00.000Z')
    expect(new Date(closeOf('2026-03-09')).toISOString()).toBe('2026-03-09T21:00:00.000Z')
  })

  it('is the same day’s until it has come, then the next banking day’s', () => {
    const close = closeOf('2026-11-25')
    expect(nextClose(close - 1)).toBe(close)
    // Thanksgiving lies between
    expect(nextClose(close)).toBe(closeOf('2026-11-27'))
    expect(nextClose(Date.parse('2026-11-28T12:00:00Z'))).toBe(closeOf('2026-11-30'))
  })

  it('lies before the day on which its entries take effect, with no other close between', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(2022, 0, 1), max: Date.UTC(2060, 0, 1) }), (now) => {
        const close = nextClose(now)
        expect(close > now).toBe(true)
        expect(isBankingDay(newYorkDate(close))).toBe(true)
        expect(lastCloseBefore(entryDateOf(close))).toBe(close)
      }),
      runs(),
    )
  })
})
