import { z } from 'zod'
import { isCalendarDate, parseTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { REQUIRED } from './faults.ts'
import { inPath, type NamedThing, NOT_FOUND_CODES, noSuch } from './not-found.ts'

/** Characters of a text at the most, where nothing else is said. */
const MAX_TEXT = 500
/** The largest number of a query, where nothing else is said. */
const MAX_NUMBER = 10 ** 15 - 1

/** Words for a value of the wrong type, where they say more than the usual ones. */
export function wrongType(what: string) {
  return {
    error({ code, input }: { readonly code?: string; readonly input?: unknown }) {
      if (code !== 'invalid_type' && code !== 'invalid_union') return undefined
      return input === undefined || input === null ? REQUIRED : what
    },
  }
}

/** Text without surrounding white space, not empty. @param max characters. */
export function text(max = MAX_TEXT) {
  return z.string().trim().min(1).max(max).meta({ pattern: '\\S' })
}

const EMAIL = 'must be an email address'

/** An email address, without what would mean something else in the header of a message. */
export function email() {
  return z
    .string(wrongType(EMAIL))
    .trim()
    .max(254)
    .regex(/^[^\s@<>,;:"()\\]+@[^\s@<>,;:"()\\]+$/, EMAIL)
    .meta({ pattern: '^\\s*[^\\s@<>,;:"()\\\\]+@[^\\s@<>,;:"()\\\\]+\\s*$' })
}

/** Text that is not all white space, as it is. */
export function visible() {
  return z.string().regex(/\S/, 'must not be empty')
}

/** An id of 24 lower-case hex characters. */
export function id() {
  return z.string().regex(/^[0-9a-f]{24}$/, 'must be an id of 24 lower-case hex characters')
}

/** An id that partners send in a body or a filter: text that cannot be one is like an id that does not exist. */
export function reference() {
  return (
    z
      .string()
      .trim()
      .min(1)
      // what is too long stays no id, and costs whoever hashes it no more than one
      .overwrite((text) => text.slice(0, 25))
      .meta({ pattern: '\\S' })
  )
}

/** An id in a path: one that is no id is not found. @param what it names. */
export function idOf(what: NamedThing) {
  return inPath(NOT_FOUND_CODES[what], z.string().describe(`The id of the ${what}`))
}

/** What endpoints of one thing share: its id in their path, which may be that of nothing. @param what it is. */
export function ofOne<Name extends string>(
  name: Name,
  what: NamedThing,
  isOne: (text: string) => boolean = isId,
) {
  const none = noSuch(what).message
  const form = z.string().refine(isOne, none).describe(`The id of the ${what}`)
  const id = inPath(NOT_FOUND_CODES[what], form)
  return { params: z.object({ [name]: id } as Record<Name, typeof id>), errors: { 404: none } }
}

/** A state by its two letters, upper case. */
export function state() {
  return text()
    .regex(/^[A-Za-z]{2}$/, 'must be a 2-letter state abbreviation')
    .toUpperCase()
    .meta({ pattern: '^\\s*[A-Za-z]{2}\\s*$' })
}

/** One of a few words. */
export function word<const Words extends readonly [string, ...string[]]>(...words: Words) {
  return z.enum(words)
}

/** A whole number of 0 or more within the safe range. */
export function wholeNumber() {
  const what = 'must be a whole number of 0 or more'
  return z.int(wrongType(what)).min(0, what)
}

/** A date that exists, `YYYY-MM-DD`. */
export function date() {
  return z
    .string(wrongType('must be an existing date in the form YYYY-MM-DD'))
    .refine(isCalendarDate, 'must be an existing date in the form YYYY-MM-DD')
    .meta({ format: 'date' })
}

/** A moment in ISO 8601 with a zone, as epoch milliseconds. */
export function time() {
  const what = 'must be a time in ISO 8601 with a zone, like 2026-01-31T12:00:00Z'
  return z
    .string(wrongType(what))
    .refine((value) => parseTime(value) !== null, what)
    .transform((value) => parseTime(value)!)
    .meta({ format: 'date-time' })
}

/** A moment as answers tell it: ISO 8601, UTC, with milliseconds. */
export function isoMoment() {
  return z.iso.datetime({ precision: 3 })
}

const WHEN = 'must be an existing date or a time in ISO 8601, like 2026-01-31 or 2026-01-31T12:00:00Z'

/** A date, as it is, or a moment in ISO 8601, as epoch milliseconds: one without a zone is taken for UTC, like dates. */
export function dateOrTime() {
  return z
    .string(wrongType(WHEN))
    .refine((value) => isCalendarDate(value) || momentOf(value) !== null, WHEN)
    .transform((value) => (isCalendarDate(value) ? value : momentOf(value)!))
    .meta({
      override: {
        anyOf: [
          { type: 'string', format: 'date' },
          { type: 'string', format: 'date-time' },
        ],
      },
    })
}

/** A time in ISO 8601 as epoch milliseconds, UTC where it has no zone; null for what is none. */
export function momentOf(text: string): number | null {
  return parseTime(text) ?? parseTime(`${text}Z`)
}

/** A field that may be missing or null; null then. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? null)
}

/** A field that may be missing or null, and stands for something then. */
export function withDefault<Schema extends z.ZodType, const Value extends z.output<Schema>>(
  schema: Schema,
  value: Value,
) {
  return schema
    .nullish()
    .transform((given) => (given ?? value) as z.output<Schema>)
    .meta({ default: value })
}

/** Bytes, of an answer that is no JSON. */
export function bytes() {
  return z
    .unknown()
    .refine((value) => value instanceof Uint8Array)
    .meta({ override: { type: 'string', format: 'binary' } })
}

/** Bytes that are answered while they are made: an `AsyncIterable` of buffers. */
export function byteStream() {
  return z
    .unknown()
    .refine((value) => isByteStream(value))
    .meta({ override: { type: 'string', format: 'binary' } })
}

/** Whether an answer is bytes that are made while they are answered. */
export function isByteStream(value: unknown): value is AsyncIterable<Buffer> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

interface Bounds {
  readonly min: number
  readonly max?: number
}

/** A whole number in a query. @param missing what stands for it when it is missing. */
export function wholeNumberText({ missing, ...bounds }: Bounds & { readonly missing: number }) {
  return digits(bounds)
    .default(missing)
    .meta({ description: '', override: { ...integer(bounds), default: missing } })
}

/** A whole number in a query that may be missing. */
export function optionalWholeNumberText(bounds: Bounds) {
  return digits(bounds)
    .optional()
    .meta({ override: integer(bounds) })
}

/** How many elements a page of a list has. @param bounds.most however many are asked for. */
export function limitText({ missing, most }: { readonly missing: number; readonly most: number }) {
  return digits({ min: 1, max: Number.MAX_VALUE })
    .transform((limit) => Math.min(limit, most))
    .default(missing)
    .meta({
      description: `At most ${most}: more is taken as ${most}`,
      override: { type: 'integer', minimum: 1, default: missing },
    })
}

function digits({ min, max = MAX_NUMBER }: Bounds) {
  const what = `must be a whole number of ${min} or more`
  return z
    .string()
    .regex(/^\d+$/, what)
    .transform((digits) => Math.min(Number(digits), Number.MAX_VALUE))
    .pipe(z.number().min(min, what).max(max))
}

function integer({ min, max = MAX_NUMBER }: Bounds) {
  return { type: 'integer', minimum: min, maximum: max } as const
}

/** `true` or `false` in a query; false when it is missing. */
export function flagText() {
  return z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .transform((value) => value === 'true')
    .meta({ override: { type: 'boolean', default: false } })
}

/** `true` or `false` in a query that may be missing. */
export function optionalFlagText() {
  return z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true')
    .optional()
    .meta({ override: { type: 'boolean' } })
}

/** What `meta` says of a row of which no field is refused: its schema tells what makes sense of it. */
export const TOLERANT = 'x-tolerant'

/**
 * Rows of a large list. They are not looked at here: the domain tells of each what is wrong with it.
 * @param row what a caller should send, for the description.
 */
export function rows(row: z.ZodType, max: number) {
  return z.array(z.unknown()).min(1).max(max).meta({ items: row })
}
