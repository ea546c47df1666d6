/** Calendar dates as `YYYY-MM-DD` strings; they compare correctly as text. */
export type CalendarDate = string

const DAY_MS = 86_400_000
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/

/** Days of a month, 1 to 12, in the proleptic Gregorian calendar. */
export function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** True for a date that is written `YYYY-MM-DD` and exists (2026-02-30 does not). */
export function isCalendarDate(value: unknown): value is CalendarDate {
  if (typeof value !== 'string') return false
  const match = DATE.exec(value)
  if (!match) return false
  const year = Number(match[1])
  const month = Number(match[2])
  const day = Number(match[3])
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)
}

/** The same day one year later; 28 February after a 29th. The year is 9998 at the most. */
export function oneYearLater(date: CalendarDate): CalendarDate {
  const year = Number(date.slice(0, 4)) + 1
  const [month, day] = [Number(date.slice(5, 7)), Number(date.slice(8))]
  const clamped = Math.min(day, daysInMonth(year, month))
  return [String(year).padStart(4, '0'), date.slice(5, 7), String(clamped).padStart(2, '0')].join('-')
}

/** The day that lies a number of days, also less than 0, after a day. */
export function daysAfter(date: CalendarDate, days: number): CalendarDate {
  return new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10)
}

/** ISO 8601 UTC with milliseconds, as every timestamp leaves the service. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

// hour 24 is the next day's 0, so that the date as it is written would be another one
const TIME = /^\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/

/** An ISO 8601 time with a zone in epoch milliseconds, or null. */
export function parseTime(text: string): number | null {
  if (!TIME.test(text) || !isCalendarDate(text.slice(0, 10))) return null
  const time = Date.parse(text)
  return Number.isNaN(time) ? null : time
}

/**
 * The same time of day, a number of months later, on the same UTC day of the month; on the last one of a month that is
 * too short for it. Count from the first day of a series, so that the 31st stays the 31st where there is one.
 */
export function monthsAfter(epochMs: number, months: number): number {
  const from = new Date(epochMs)
  const month = from.getUTCFullYear() * 12 + from.getUTCMonth() + months
  const [year, index] = [Math.floor(month / 12), month - Math.floor(month / 12) * 12]
  const at = new Date(epochMs)
  at.setUTCFullYear(year, index, Math.min(from.getUTCDate(), daysInMonth(year, index + 1)))
  return at.getTime()
}
