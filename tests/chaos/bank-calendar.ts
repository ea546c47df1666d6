/**
 * The days on which banks work in the months that a test plays. The holidays are written down, not worked out, so that what
 * the service works out can be held against them. Days are `YYYY-MM-DD` in New York, moments epoch milliseconds.
 */
const HOLIDAYS: ReadonlySet<string> = new Set([
  '2050-10-10', // Columbus Day
  '2050-11-11', // Veterans Day
  '2050-11-24', // Thanksgiving Day
  '2050-12-26', // Christmas Day is a Sunday
  '2051-01-02', // New Year's Day is a Sunday
  '2051-01-16', // Birthday of Martin Luther King, Jr.
  '2051-02-20', // Washington's Birthday
])
/** The months lie between these. */
export const FIRST_KNOWN = '2050-10-01'
export const LAST_KNOWN = '2051-03-31'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** How far New York is behind UTC, in summer and in winter. */
const OFFSETS_MS = [4 * HOUR_MS, 5 * HOUR_MS]
const newYork = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'America/New_York',
  dateStyle: 'short',
  timeStyle: 'short',
})

export function isBankingDay(day: string): boolean {
  if (day < FIRST_KNOWN || day > LAST_KNOWN) throw new RangeError(`The holidays around ${day} are not known`)
  const weekday = new Date(`${day}T00:00:00Z`).getUTCDay()
  return weekday !== 0 && weekday !== 6 && !HOLIDAYS.has(day)
}

export function dayAfter(day: string, days = 1): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)
}

/** The banking day that lies a number of banking days after a day. */
export function bankingDayAfter(day: string, days = 1): string {
  let found = day
  for (let left = days; left > 0; left -= isBankingDay(found) ? 1 : 0) found = dayAfter(found)
  return found
}

/** A moment by the clock of New York. @param time `HH:MM`. */
export function atNewYork(day: string, time: string): number {
  const moments = OFFSETS_MS.map((offset) => Date.parse(`${day}T${time}:00Z`) + offset)
  return moments.find((moment) => newYork.format(moment) === `${day} ${time}`)!
}

export function newYorkDay(moment: number): string {
  return newYork.format(moment).slice(0, 10)
}

/** The banking day with whose batch an entry goes, and the one on which it takes effect. */
export interface Slot {
  readonly batch: string
  readonly entryDate: string
}

/** @param wanted the day on which it is to take effect; null: as soon as it can. */
export function slotAt(moment: number, wanted: string | null): Slot {
  const today = newYorkDay(moment)
  const isOpen = isBankingDay(today) && moment < atNewYork(today, '17:00')
  const batch = isOpen ? today : bankingDayAfter(today)
  const earliest = bankingDayAfter(batch)
  if (wanted === null || wanted <= earliest) return { batch, entryDate: earliest }
  const entryDate = isBankingDay(wanted) ? wanted : bankingDayAfter(wanted)
  let before = dayAfter(entryDate, -1)
  while (!isBankingDay(before)) before = dayAfter(before, -1)
  return { batch: before, entryDate }
}
