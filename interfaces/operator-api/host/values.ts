import { z } from 'zod'
import { flagText, id, optional, text, time, withDefault, word, wrongType } from '../../endpoints/fields.ts'

/** Values that several resources of the operator API have. */

const MAX_ITEMS = 2000

/** The environment that something new stands in. */
export function environment() {
  return withDefault(word('live', 'sandbox'), 'live')
}

/** Whose something is. */
export const owner = { tenant_id: id(), environment: z.enum(['live', 'sandbox']) }

/** Whose something is that a policy brings about. */
export const whose = { ...owner, employer_id: id(), carrier_id: id() }

/** A list of 2,000 elements at the most. @param words for what is no list. */
export function list<Item extends z.ZodType>(item: Item, words: Parameters<typeof z.array>[1] = undefined) {
  return z.array(item, words).max(MAX_ITEMS)
}

/** Texts without repetitions. */
export function texts() {
  return list(text()).transform((all) => [...new Set(all)])
}

/** All, or those of a list of ids; all when it is missing. */
export function allOrIds() {
  const ids = z.union([z.literal('all'), list(id())], wrongType('must be "all" or an array of ids'))
  return withDefault(ids, 'all')
}

const NAMES_NOBODY = 'Names nobody: it is kept as it is'

/** Why an operator does something, where that may be left out. @param what it says. */
export function reason(what = 'Why') {
  return text()
    .nullish()
    .transform((value) => value ?? undefined)
    .describe(`${what}. ${NAMES_NOBODY}`)
}

/** Query parameters that open personal fields. */
export const revealing = {
  reveal: flagText().describe('Open personal fields; this is recorded'),
  reason: reason('Why they are opened; auditors must say it'),
}
/** Whom personal data are about. */
export function dataSubject() {
  return z
    .string()
    .regex(/^(?:person|employer)\/[0-9a-f]{24}$/, 'must be person/<24 hex> or employer/<24 hex>')
}

/** A time in a query. */
export function timeText() {
  return (
    z
      .string()
      // a plus sign that was not encoded arrives as a blank
      .transform((text) => text.replace(' ', '+'))
      .pipe(time())
      .optional()
      .meta({ description: 'Time in ISO 8601 with a zone', format: 'date-time' })
  )
}

/** The body of an acknowledgement. */
export const withNote = z.object({ note: optional(text()).describe(NAMES_NOBODY) })

/** A moment as answers tell it: ISO 8601, UTC. */
export function shownTime() {
  return z.string().meta({ format: 'date-time' })
}

/** What of an object is not undefined. */
export function given<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Partial<Values>
}
