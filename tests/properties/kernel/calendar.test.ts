import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  daysAfter,
  daysInMonth,
  isCalendarDate,
  isoTime,
  monthsAfter,
  oneYearLater,
} from '../../../domain/kernel/calendar.ts'
import { dueAt, numberOf } from '../../../domain/payments/subscriptions/subscription.ts'
import { runs } from '../../support/generated.ts'

const DAY_MS = 86_400_000
/** Every day from year 1 to 9999, by number from 1970-01-01. */
const FIRST = new Date(0).setUTCFullYear(1, 0, 1) / DAY_MS
const LAST = Date.UTC(9999, 11, 31) / DAY_MS
const days = fc.integer({ min: FIRST, max: LAST })
const dateOf = (day: number): string => {
  const date = new Date(day * DAY_MS)
  const part = (value: number, length: number) => String(value).padStart(length, '0')
  return `${part(date.getUTCFullYear(), 4)}-${part(date.getUTCMonth() + 1, 2)}-${part(date.getUTCDate(), 2)}`
}

describe('calendar dates', () => {
  test('that exist are dates, and are counted from each other', () => {
    fc.assert(
      fc.property(days, days, (day, other) => {
        expect(isCalendarDate(dateOf(day))).toBe(true)
        expect(daysAfter(dateOf(day), other - day)).toBe(dateOf(other))
        expect(isoTime(day * DAY_MS).startsWith(dateOf(day))).toBe(true)
      }),
      runs(),
    )
  })

  test('have a day one year later, the same one but for 29 February', () => {
    // 366 days later is a day of four-digit years, too
    const beforeLastYear = fc.integer({ min: FIRST, max: LAST - 366 })
    const leapDays = fc
      .integer({ min: 1, max: 2499 })
      .filter((n) => isCalendarDate(`${String(4 * n).padStart(4, '0')}-02-29`))
      .map((n) => Date.parse(`${String(4 * n).padStart(4, '0')}-02-29`) / DAY_MS)
    fc.assert(
      fc.property(fc.oneof(beforeLastYear, leapDays), (day) => {
        const [from, to] = [dateOf(day), oneYearLater(dateOf(day))]
        expect(isCalendarDate(to)).toBe(true)
        expect(Number(to.slice(0, 4))).toBe(Number(from.slice(0, 4)) + 1)
        expect(to.slice(5)).toBe(from.endsWith('-02-29') ? '02-28' : from.slice(5))
        expect(dateOf(day + 364) < to && to <= dateOf(day + 366)).toBe(true)
      }),
      runs(),
    )
    expect(oneYearLater('2028-02-29')).toBe('2029-02-28')
    expect(oneYearLater('2027-02-28')).toBe('2028-02-28')
  })

  test('are exactly those that a year has', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9999 }),
        fc.integer({ min: 0, max: 14 }),
        fc.integer({ min: 0, max: 33 }),
        (year, month, day) => {
          const text = `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
          const moment = new Date(0)
          moment.setUTCFullYear(year, month - 1, day)
          // a date that does not exist runs over into another month
          const exists =
            moment.getUTCMonth() === month - 1 &&
            moment.getUTCDate() === day &&
            moment.getUTCFullYear() === year
          expect(isCalendarDate(text)).toBe(exists)
        },
      ),
      runs(200),
    )
  })

  test('of a month are as many as the next month begins later', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9998 }), fc.integer({ min: 1, max: 12 }), (year, month) => {
        const from = new Date(0).setUTCFullYear(year, month - 1, 1)
        const to = new Date(0).setUTCFullYear(year, month, 1)
        expect(daysInMonth(year, month)).toBe((to - from) / DAY_MS)
      }),
      runs(),
    )
    // few that are drawn are centuries
    expect([1900, 2000, 2100].map((year) => daysInMonth(year, 2))).toEqual([28, 29, 28])
  })

  test('take no other form', () => {
    const others = [
      '',
      '2026-1-01',
      '2026-01-1',
      '26-01-01',
      '2026/01/01',
      '01-01-2026',
      ' 2026-01-01',
      '2026-01-01T00:00:00Z',
      '0000-01-01',
      '2026-01-01\n',
    ]
    for (const text of others) expect(isCalendarDate(text)).toBe(false)
    fc.assert(
      fc.property(fc.anything(), (value) => {
        if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(value))
          expect(isCalendarDate(value)).toBe(false)
      }),
      runs(),
    )
  })
})

describe('monthly dates', () => {
  const times = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2100, 0, 1) })
  const months = fc.integer({ min: 0, max: 600 })

  test('are so many months later, at the same time of day, on the same day or the last of a shorter month', () => {
    fc.assert(
      fc.property(times, months, (from, count) => {
        const [first, then] = [new Date(from), new Date(monthsAfter(from, count))]
        const index = (date: Date) => date.getUTCFullYear() * 12 + date.getUTCMonth()
        expect(index(then) - index(first)).toBe(count)
        expect(then.getTime() % DAY_MS).toBe(from % DAY_MS)
        const longest = daysInMonth(then.getUTCFullYear(), then.getUTCMonth() + 1)
        expect(then.getUTCDate()).toBe(Math.min(first.getUTCDate(), longest))
      }),
      runs(200),
    )
  })

  test('of a subscription are told apart, though the processor is a week off', () => {
    const calendars = fc.record({
      anchor_at: times.map((time) => new Date(time).toISOString()),
      source: fc.constantFrom('api' as const, 'plan' as const),
      charges: fc.constant(null),
    })
    const off = fc.integer({ min: -7 * DAY_MS, max: 7 * DAY_MS })
    fc.assert(
      fc.property(calendars, fc.integer({ min: 1, max: 600 }), off, (calendar, number, ms) => {
        expect(numberOf(calendar, dueAt(calendar, number) + ms)).toBe(number)
      }),
      runs(200),
    )
  })
})
