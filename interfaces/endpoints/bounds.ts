import { isoTime } from '../../domain/kernel/calendar.ts'
import { dateOrTime } from './fields.ts'

/** Bounds of a span of time, both included; a date is a day of UTC. */

export const FROM = 'at or after; a date or a time, UTC where it has no zone'
export const TO = 'at or before; of a date its whole day, UTC'

/** A query parameter that is a bound. */
export const bound = (description: string) => dateOrTime().optional().describe(description)

/** The last moment that compares as text; a zone may put one beyond it. */
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z')

/** The first moment of a span in ISO 8601; null where it has none. */
export function firstMoment(from: string | number | null | undefined): string | null {
  return momentOf(from, 'T00:00:00.000Z')
}

/** The last one likewise. */
export function lastMoment(to: string | number | null | undefined): string | null {
  return momentOf(to, 'T23:59:59.999Z')
}

function momentOf(value: string | number | null | undefined, ofDate: string): string | null {
  if (value === undefined || value === null) return null
  return typeof value === 'number' ? isoTime(Math.min(value, LAST_MOMENT)) : `${value}${ofDate}`
}
