import type { z } from 'zod'
import type { HttpCode, HttpError } from '../http/errors.ts'

/** What is wrong with one value of a request. */
export interface Fault {
  /** The field as its caller wrote it: `rates[2].state`; empty for the whole. */
  readonly field: string
  /** What it must be, to be read after the field's name: `must be a string`. */
  readonly message: string
  /** `unknown`: nothing of the name is known there. */
  readonly kind: 'missing' | 'too_small' | 'too_big' | 'unknown' | 'other'
}

const CODES = {
  missing: 'field_missing',
  too_small: 'field_too_small',
  too_big: 'field_too_large',
  unknown: 'field_unknown',
  other: 'field_invalid',
} as const satisfies Readonly<Record<Fault['kind'], HttpCode>>
/** Faults that one refusal names. */
export const MOST_NAMED = 100

/**
 * What a refusal says of faults beside its message: all of them, but no more than {@link MOST_NAMED}.
 * @param first the one that the message is about.
 */
export function naming(
  faults: readonly Fault[],
  first: Fault = faults[0]!,
): Pick<HttpError, 'code' | 'field' | 'errors'> {
  const named = faults
    .slice(0, MOST_NAMED)
    .map(({ kind, field, message }) => ({ code: CODES[kind], field, message: `${field} ${message}`.trim() }))
  return { code: CODES[first.kind], field: first.field || undefined, errors: named }
}

/** What is said of a value that is missing. */
export const REQUIRED = 'is required'
/** With or without what to send; what is required under a condition is another fault. */
const MISSING = /^is required($|: send )/

/**
 * Checks a value by a schema.
 * @returns the value as the schema yields it, or what is wrong with it in the order of the schema, at least one fault.
 */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): { readonly value: z.output<Schema> } | { readonly faults: readonly Fault[] } {
  const result = schema.safeParse(value, { error: describe })
  if (result.success) return { value: result.data }
  return { faults: result.error.issues.flatMap((issue) => faultsOf(issue)) }
}

/** Of a union one of whose alternatives is of the value's type, what is wrong by that one. */
function faultsOf(issue: z.core.$ZodIssue, within: readonly PropertyKey[] = []): readonly Fault[] {
  const path = [...within, ...issue.path]
  const { message, code } = issue
  if (code === 'invalid_union') {
    const fitting = issue.errors.filter((errors) => !errors.some(isWrongType))
    if (fitting.length === 1) return fitting[0]!.flatMap((one) => faultsOf(one, path))
  }
  const kind = MISSING.test(message) ? 'missing' : code === 'too_small' || code === 'too_big' ? code : 'other'
  return [{ field: fieldOf(path), message, kind }]
}

function isWrongType({ path, code }: z.core.$ZodIssue): boolean {
  return path.length === 0 && (code === 'invalid_type' || code === 'invalid_value')
}

/** The words for what is wrong, where a schema has none of its own. */
function describe(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined || issue.input === null) return REQUIRED
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[issue.expected] ?? `must be a ${issue.expected}`
    case 'invalid_value':
      return `must be one of ${issue.values.join(', ')}`
    case 'too_small':
      return tooSmall(issue)
    case 'too_big':
      return tooBig(issue)
    case 'invalid_format':
      return 'has the wrong form'
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    default:
      return 'cannot be read'
  }
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'must be a string',
  number: 'must be a number',
  int: 'must be a whole number',
  boolean: 'must be true or false',
  array: 'must be an array',
  object: 'must be an object',
  record: 'must be an object',
}

type Bounds = Pick<z.core.$ZodIssueTooSmall, 'origin' | 'minimum'>

function tooSmall({ origin, minimum }: Bounds): string {
  if (origin === 'string')
    return minimum === 1 ? 'must not be empty' : `must have at least ${minimum} characters`
  if (origin === 'array')
    return minimum === 1 ? 'must not be empty' : `must have at least ${minimum} elements`
  return `must be ${minimum} or more`
}

function tooBig({ origin, maximum }: Pick<z.core.$ZodIssueTooBig, 'origin' | 'maximum'>): string {
  if (origin === 'string') return `must not be longer than ${maximum} characters`
  if (origin === 'array') return `must not have more than ${maximum} elements`
  return `must not exceed ${maximum}`
}

/** The field at a path, as its caller wrote it: `rates[2].state`. */
export function fieldOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`,
    '',
  )
}
