import { type CalendarDate, daysAfter, daysInMonth } from '../../kernel/calendar.ts'
import { momentOf, newYorkDate } from '../../kernel/new-york.ts'

/**
 * The calendar by which banks move money: Monday to Friday less the holidays of the Federal Reserve, in New York.
 * Source: Federal Reserve Bank Services, "Holiday Schedules": a holiday on a Sunday is kept on the Monday after it, one
 * on a Saturday is not moved.
 */

/** When a batch closes, on the clock of New York. */
const CLOSING_HOUR = 17
/** When a night's work is done, on the clock of New York. */
const NIGHT_HOUR = 3

const MONDAY = 1
const THURSDAY = 4

/** True when banks work on a day. */
export function isBankingDay(date: CalendarDate): boolean {
  const weekday = weekdayOf(date)
  if (weekday === 0 || weekday === 6) return false
  return !holidaysOf(Number(date.slice(0, 4))).has(date)
}

/** The first banking day after a day. */
export function nextBankingDay(date: CalendarDate): CalendarDate {
  let day = daysAfter(date, 1)
  while (!isBankingDay(day)) day = daysAfter(day, 1)
  return day
}

/** A day itself, if banks work on it; else the first day after it on which they do. */
export function bankingDayFrom(date: CalendarDate): CalendarDate {
  return isBankingDay(date) ? date : nextBankingDay(date)
}

/** The last banking day before a day. */
export function previousBankingDay(date: CalendarDate): CalendarDate {
  let day = daysAfter(date, -1)
  while (!isBankingDay(day)) day = daysAfter(day, -1)
  return day
}

/** The day that lies a number of banking days, 0 or more, after a day. */
export function bankingDaysAfter(date: CalendarDate, days: number): CalendarDate {
  let day = date
  for (let left = days; left > 0; left -= 1) day = nextBankingDay(day)
  return day
}

/** The next night after a moment, at 03:00 in New York, both in epoch milliseconds. */
export function nextNight(epochMs: number): number {
  for (let date = newYorkDate(epochMs); ; date = daysAfter(date, 1)) {
    const night = momentOf(date, NIGHT_HOUR)
    if (night > epochMs) return night
  }
}

/** When the batch of a banking day closes, in epoch milliseconds. */
export function closeOf(date: CalendarDate): number {
  return momentOf(date, CLOSING_HOUR)
}

/** The first close after a moment, both in epoch milliseconds. */
export function nextClose(epochMs: number): number {
  const date = newYorkDate(epochMs)
  const close = isBankingDay(date) ? closeOf(date) : null
  return close !== null && close > epochMs ? close : closeOf(nextBankingDay(date))
}

/** The day on which the entries of a batch take effect: the banking day after its close. @param closeMs epoch milliseconds. */
export function entryDateOf(closeMs: number): CalendarDate {
  return nextBankingDay(newYorkDate(closeMs))
}

/** The last close before a day, in epoch milliseconds: what is to take effect on that day is in a batch by then. */
export function lastCloseBefore(date: CalendarDate): number {
  return closeOf(previousBankingDay(date))
}

/** The batch that an entry goes with. */
export interface Slot {
  /** When the batch closes, in epoch milliseconds. */
  readonly closesAt: number
  /** When the entry takes effect: a banking day. */
  readonly entryDate: CalendarDate
}

/**
 * The batch of an entry that is to take effect on a day: the last one that closes before it, or the next one where that
 * is over. @param wanted null: as soon as it can be. @param epochMs now.
 */
export function slotFor(wanted: CalendarDate | null, epochMs: number): Slot {
  const closesAt = nextClose(epochMs)
  const earliest = entryDateOf(closesAt)
  const entryDate = wanted === null ? earliest : bankingDayFrom(wanted)
  if (entryDate <= earliest) return { closesAt, entryDate: earliest }
  return { closesAt: lastCloseBefore(entryDate), entryDate }
}

function weekdayOf(date: CalendarDate): number {
  return new Date(`${date}T00:00:00Z`).getUTCDay()
}

const known = new Map<number, ReadonlySet<CalendarDate>>()

/** The holidays of a year, on the days on which they are kept; those on a Saturday change nothing. */
function holidaysOf(year: number): ReadonlySet<CalendarDate> {
  const found = known.get(year)
  if (found) return found
  const on = (month: number, day: number) => dateOf(year, month, day)
  const kept = (date: CalendarDate) => (weekdayOf(date) === 0 ? daysAfter(date, 1) : date)
  const holidays = new Set([
    kept(on(1, 1)),
    nth(year, 1, MONDAY, 3),
    nth(year, 2, MONDAY, 3),
    lastMonday(year, 5),
    // a holiday since the law of June 2021
    ...(year >= 2021 ? [kept(on(6, 19))] : []),
    kept(on(7, 4)),
    nth(year, 9, MONDAY, 1),
    nth(year, 10, MONDAY, 2),
    kept(on(11, 11)),
    nth(year, 11, THURSDAY, 4),
    kept(on(12, 25)),
  ])
  known.set(year, holidays)
  return holidays
}

/** The n-th of a weekday in a month. */
function nth(year: number, month: number, weekday: number, n: number): CalendarDate {
  const first = weekdayOf(dateOf(year, month, 1))
  return dateOf(year, month, 1 + ((weekday - first + 7) % 7) + (n - 1) * 7)
}

function lastMonday(year: number, month: number): CalendarDate {
  const last = daysInMonth(year, month)
  return dateOf(year, month, last - ((weekdayOf(dateOf(year, month, last)) - MONDAY + 7) % 7))
}

function dateOf(year: number, month: number, day: number): CalendarDate {
  return [String(year).padStart(4, '0'), ...[month, day].map((part) => String(part).padStart(2, '0'))].join(
    '-',
  )
}
