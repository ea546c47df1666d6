import type { Method } from '../http/server.ts'

/** How endpoints are called on the command line, and what people see of their lists there and in the console. */

/** Columns of a list: heading and field (`lag.events` for one within another), or what makes the cell of a row. */
export type Columns = Readonly<Record<string, string | ((row: Readonly<Record<string, unknown>>) => unknown)>>

/**
 * Columns from fields, `policy_id status from:effective_date`: what stands before a colon is the heading. Else it is the
 * field's name without `_id`, `_at` and `_cents`; the first keeps its `_id`, which other commands take.
 */
export function columnsOf(fields: string): Columns {
  const columns = fields.split(' ').map((one, index) => {
    const [field, heading] = one.split(':').reverse() as [string, string?]
    const suffix = index === 0 ? /_(?:at|cents)$/ : /_(?:id|at|cents)$/
    return [(heading ?? field.replace(suffix, '')).replaceAll('_', ' '), field] as const
  })
  return Object.fromEntries(columns)
}

const OF_ALL: Readonly<Partial<Record<Method, string>>> = { GET: 'list', POST: 'create' }
const OF_ONE: Readonly<Partial<Record<Method, string>>> = { GET: 'show', PATCH: 'update', DELETE: 'delete' }

/** The command of a route by its first and last part: `debits release` of `POST /debits/{transaction_id}/release`. */
export function commandNameOf(method: Method, path: string): string {
  const parts = path.split('/').slice(1)
  const last = parts.at(-1)!
  const verb = parts.length === 1 ? OF_ALL[method] : last.startsWith('{') ? OF_ONE[method] : last
  return `${parts[0]} ${verb ?? method.toLowerCase()}`
}
