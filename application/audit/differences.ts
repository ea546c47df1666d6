import { maskedState } from '../commands/sealed-fields.ts'

/** A value that is not the same at two points; null where there was none. */
export interface Difference {
  /** `rates[0].rate_per_100`; empty of the whole. */
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

/** Differences that are told, at the most. */
const MOST = 1_000

/**
 * What differs between two states, value by value.
 * @param sensitive values that read masked: a difference says that they differ, and not what they are.
 */
export function differences(
  before: unknown,
  after: unknown,
  sensitive: readonly unknown[],
): readonly Difference[] {
  const hidden = new Set(sensitive)
  const found: Difference[] = []
  const compare = (one: unknown, other: unknown, path: string): void => {
    if (one === other || found.length >= MOST) return
    const isList = Array.isArray(one) && Array.isArray(other)
    if (isList || (isRecord(one) && isRecord(other))) {
      const [left, right] = [one, other] as readonly Readonly<Record<string, unknown>>[]
      for (const key of new Set([...Object.keys(left!), ...Object.keys(right!)])) {
        compare(left![key], right![key], isList ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`)
      }
    } else
      found.push({
        path,
        before: maskedState(one ?? null, hidden),
        after: maskedState(other ?? null, hidden),
      })
  }
  compare(before ?? null, after ?? null, '')
  return found
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
