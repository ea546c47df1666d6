import type { ClientBase } from 'pg'
import { MASK } from '../../application/commands/sealed-fields.ts'
import type { TableDefinition } from '../../projections/runtime/projection.ts'
import type { GenerationRef, RowDifference } from '../../projections/runtime/store.ts'
import { quoted, schemaOf } from './tables.ts'

/** Characters of a value that are shown. */
const SHOWN = 120
/** Characters of them before the first that differs. */
const BEFORE = 20
/** How a sealed value begins, wherever in a text it stands. */
const SEALED = 'sld1.'

/** A table of two generations. */
interface Compared {
  readonly live: GenerationRef
  readonly shadow: GenerationRef
  readonly one: TableDefinition
  readonly other: TableDefinition
  /** The columns that both have. */
  readonly columns: readonly string[]
  readonly limit: number
}

/**
 * Counts the rows that differ, and shows the first by key, personal values masked. Rows are compared by their texts, which
 * differ where values do.
 * @returns null where the keys of both are not the same columns.
 */
export async function differingRows(
  client: ClientBase,
  { live, shadow, one, other, columns, limit }: Compared,
): Promise<{ readonly differing_rows: number; readonly differences: readonly RowDifference[] } | null> {
  const { key, name } = one
  if (JSON.stringify(key) !== JSON.stringify(other.key) || key.some((part) => !columns.includes(part))) {
    return null
  }
  const whole = (side: string) =>
    `row(${columns.map((column) => `${side}.${quoted(column)}`).join(', ')})::text`
  const from = `FROM ${schemaOf(live)}.${quoted(name)} AS a FULL JOIN ${schemaOf(shadow)}.${quoted(name)} AS b
    ON ${key.map((part) => `a.${quoted(part)} = b.${quoted(part)}`).join(' AND ')}
    WHERE ${whole('a')} IS DISTINCT FROM ${whole('b')}`
  const counted = await client.query<{ rows: string }>(`SELECT count(*) AS rows ${from}`)
  const { rows } = await client.query<(string | null)[]>({
    text: `SELECT ${columns.flatMap((column) => [`a.${quoted(column)}::text`, `b.${quoted(column)}::text`]).join(', ')} ${from}
      ORDER BY ${key.map((part) => `coalesce(a.${quoted(part)}, b.${quoted(part)})`).join(', ')} LIMIT ${limit}`,
    rowMode: 'array',
  })
  const personal = new Set([...(one.personal ?? []), ...(other.personal ?? [])])
  return {
    differing_rows: Number(counted.rows[0]!.rows),
    differences: rows.map((row) => {
      const values = columns.map((column, at) => ({ column, live: row[2 * at]!, shadow: row[2 * at + 1]! }))
      return difference(values, key, personal)
    }),
  }
}

type Values = RowDifference['columns'][number]

function difference(
  values: readonly Values[],
  key: readonly string[],
  personal: ReadonlySet<string>,
): RowDifference {
  const keys = key.map((part) => values.find(({ column }) => column === part)!)
  // no part of a key is null
  const missing_in = keys[0]!.live === null ? 'live' : keys[0]!.shadow === null ? 'shadow' : null
  const differing = values.filter(({ column, live, shadow }) => live !== shadow && !key.includes(column))
  return {
    key: Object.fromEntries(
      keys.map((value) => {
        const { column, live, shadow } = shown(value, personal)
        return [column, (live ?? shadow)!]
      }),
    ),
    missing_in,
    columns: differing.map((value) => shown(value, personal)),
  }
}

/** What is sealed on one side is personal on the other, too. */
function shown({ column, live, shadow }: Values, personal: ReadonlySet<string>): Values {
  const isPersonal = personal.has(column) || live?.includes(SEALED) || shadow?.includes(SEALED)
  const from = isPersonal ? 0 : firstShown(live, shadow)
  const part = (text: string | null) => (text === null ? null : isPersonal ? MASK : cut(text, from))
  return { column, live: part(live), shadow: part(shadow) }
}

/** Where long texts are shown from, so that what differs is seen. */
function firstShown(one: string | null, other: string | null): number {
  if (one === null || other === null || Math.max(one.length, other.length) <= SHOWN) return 0
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  return at + BEFORE < SHOWN ? 0 : at - BEFORE
}

/** A part of a text. Halves of surrogate pairs at its ends are taken out: the database takes none. */
function cut(text: string, from: number): string {
  const part = text.slice(from, from + SHOWN).replaceAll(/\p{Surrogate}/gu, '')
  return `${from > 0 ? '…' : ''}${part}${from + SHOWN < text.length ? '…' : ''}`
}
