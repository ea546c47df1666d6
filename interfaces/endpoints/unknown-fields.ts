import type { z } from 'zod'
import { check, type Fault, fieldOf } from './faults.ts'

/** What the names of a part of a request are names of. */
type Named = 'field' | 'query parameter' | 'argument'

/** Unknown names that a refusal lists of one value at the most: each is held against all known ones. */
const MAX_REPORTED = 20
/** Known names that a message lists at the most. */
const MAX_LISTED = 50
/** Characters of a name that are shown, and compared. */
const MAX_NAME = 60
/** Edits that a name counts as which holds the other: more than one letter mistyped, less than two. */
const HELD = 1.5

/** {@link check}, which refuses what no object of the schema names, too. @param of what the names are names of. */
export function checkClosed<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  of: Named,
): ReturnType<typeof check<Schema>> {
  const unknown = unknownIn(schema, value, of)
  const result = check(schema, value)
  if (unknown.length === 0) return result
  return { faults: [...unknown, ...('faults' in result ? result.faults : [])] }
}

/**
 * What of a value is named by no object of its schema, with the nearest name that is. What takes any field says so:
 * `z.looseObject`, `z.record`, `z.unknown`.
 */
export function unknownIn(schema: z.ZodType, value: unknown, of: Named): readonly Fault[] {
  const faults: Fault[] = []
  for (const { path, known } of unknownPaths(schema, value, [])) {
    if (faults.push(unknownFault(path, known, of)) === MAX_REPORTED) break
  }
  return faults
}

/** What is said of a name that is not known. @param known those that are, in its place. */
export function unknownFault(path: readonly PropertyKey[], known: readonly string[], of: Named): Fault {
  const within = path.slice(0, -1)
  const name = String(path.at(-1))
  const shown = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name
  const meant = nearest(name, known)
  const reported = meant === null ? listed(known) : `did you mean ${fieldOf([...within, meant])}?`
  return { field: fieldOf([...within, shown]), message: `is an unknown ${of}; ${reported}`, kind: 'unknown' }
}

function* unknownPaths(
  schema: z.core.$ZodType,
  value: unknown,
  path: readonly PropertyKey[],
): Generator<{ readonly path: readonly PropertyKey[]; readonly known: readonly string[] }> {
  if (typeof value !== 'object' || value === null) return
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'readonly':
      yield* unknownPaths(def.innerType, value, path)
      return
    case 'pipe':
      yield* unknownPaths(def.in, value, path)
      return
    case 'array':
      if (!Array.isArray(value)) return
      for (const [index, one] of value.entries()) yield* unknownPaths(def.element, one, [...path, index])
      return
    case 'object':
      if (Array.isArray(value)) return
      for (const [name, one] of Object.entries(value)) {
        if (Object.hasOwn(def.shape, name)) yield* unknownPaths(def.shape[name]!, one, [...path, name])
        else if (!def.catchall) yield { path: [...path, name], known: Object.keys(def.shape) }
      }
  }
}

function listed(known: readonly string[]): string {
  if (known.length === 0) return 'none is taken here'
  const more = known.length > MAX_LISTED ? ` and ${known.length - MAX_LISTED} more` : ''
  return `known here: ${known.slice(0, MAX_LISTED).join(', ')}${more}`
}

/**
 * The known name that a name is likeliest meant for: the same but for case and separators or one letter, else one that
 * holds it or is held by it, else the one with the fewest letters to be changed, at most a third. Null: none is near.
 */
export function nearest(name: string, known: readonly string[]): string | null {
  const given = plain(name)
  let best: { readonly name: string; readonly edits: number } | null = null
  for (const one of known) {
    const other = plain(one)
    const [shorter, longer] = other.length < given.length ? [other, given] : [given, other]
    const isHeld = shorter.length > 2 && longer.includes(shorter)
    const letters = editsBetween(shorter, longer)
    if (!isHeld && letters > Math.max(shorter.length / 3, shorter.length > 1 ? 1 : 0)) continue
    const edits = isHeld ? Math.min(letters, HELD) : letters
    if (best === null || edits < best.edits) best = { name: one, edits }
  }
  return best?.name ?? null
}

function plain(name: string): string {
  return name
    .slice(0, MAX_NAME)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
}

/** Letters to be put in, left out, replaced or swapped with the next (optimal string alignment distance). */
function editsBetween(one: string, other: string): number {
  let before: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row += 1) {
    const present = [row]
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped = row > 1 && one[row - 2] === other[column - 1] && one[row - 1] === other[column - 2]
      present[column] = Math.min(
        present[column - 1]! + 1,
        last[column]! + 1,
        last[column - 1]! + (isSame ? 0 : 1),
        isSwapped && column > 1 ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = last
    last = present
  }
  return last.at(-1)!
}
