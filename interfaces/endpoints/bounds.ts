import type { z } from 'zod'
import { isCalendarDate, isoTime } from '../../domain/kernel/calendar.ts'
import { dateOrTime } from './fields.ts'

/** Bounds of a span of time, both included; a date is a day of UTC. */

export const FROM = 'at or after; a date or a time, UTC where it has no zone'
export const TO = 'at or before; of a date its whole day, UTC'

/** A query parameter that is a bound. */
export const bound = (description: string) => dateOrTime().optional().describe(description)

type Bound = string | number | null | undefined

/** A query that is refused where its span ends before it begins, which no record could lie in. @param from, to its bounds. */
export function inOrder<Query extends z.ZodObject>(query: Query, from: string, to: string): Query {
  return query.refine(
    (sent) => {
      const bounds = sent as Readonly<Record<string, Bound>>
      // a text that is no day is at fault by itself
      if ([bounds[from], bounds[to]].some((one) => typeof one === 'string' && !isCalendarDate(one)))
        return true
      const [first, last] = [firstMoment(bounds[from]), lastMoment(bounds[to])]
      return first === null || last === null || first <= last
    },
    { path: [to], error: `must not lie before ${from}` },
  )
}

/** The last moment that compares as text; a zone may put one beyond it. */
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z')

/** The first moment of a span in ISO 8601; null where it has none. */
export function firstMoment(from: Bound): string | null {
  return momentOf(from, 'T00:00:00.000Z')
}

/** The last one likewise. */
export function lastMoment(to: Bound): string | null {
  return momentOf(to, 'T23:59:59.999Z')
}

function momentOf(value: Bound, ofDate: string): string | null {
  if (value === undefined || value === null) return null
  return typeof value === 'number' ? isoTime(Math.min(value, LAST_MOMENT)) : `${value}${ofDate}`
}
