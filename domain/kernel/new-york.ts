import type { CalendarDate } from './calendar.ts'

/** Dates and hours in New York: "today", "tonight" and a debit's day are those of its clocks. Moments are epoch milliseconds. */

const HOUR_MS = 3_600_000

const newYork = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'America/New_York',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  hourCycle: 'h23',
})

/** The day in New York at a moment. */
export function newYorkDate(epochMs: number): CalendarDate {
  return inNewYork(epochMs).date
}

/** The time of day in New York at a moment, `HHMM`. */
export function newYorkTime(epochMs: number): string {
  // its offsets from UTC are whole hours
  const minutes = new Date(epochMs).getUTCMinutes()
  return [inNewYork(epochMs).hour, minutes].map((part) => String(part).padStart(2, '0')).join('')
}

/** When clocks in New York show a whole hour of a day, other than 1 or 2: these are shown twice or never when clocks are changed. */
export function momentOf(date: CalendarDate, hour: number): number {
  // New York is five hours behind UTC, or four
  const standard = Date.parse(`${date}T00:00:00Z`) + (hour + 5) * HOUR_MS
  return inNewYork(standard).hour === hour ? standard : standard - HOUR_MS
}

/** When a day begins in New York. */
export function startOf(date: CalendarDate): number {
  return momentOf(date, 0)
}

interface LocalHour {
  readonly date: CalendarDate
  readonly hour: number
}

/** What was asked lately, by whole hours: clocks differ by such. */
const hours = new Map<number, LocalHour>()
const REMEMBERED_HOURS = 1_000

function inNewYork(epochMs: number): LocalHour {
  const hour = Math.floor(epochMs / HOUR_MS)
  const known = hours.get(hour)
  if (known) return known
  const parts = Object.fromEntries(newYork.formatToParts(epochMs).map(({ type, value }) => [type, value]))
  const local = { date: `${parts.year}-${parts.month}-${parts.day}`, hour: Number(parts.hour) }
  if (hours.size >= REMEMBERED_HOURS) hours.clear()
  hours.set(hour, local)
  return local
}
