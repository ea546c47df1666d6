import { isCalendarDate, parseTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { HttpError } from '../http/errors.ts'

/** A refusal of the request's shape; the message begins with the field's name. */
export function badRequest(message: string): HttpError {
  return new HttpError(400, null, message)
}

type Json = Readonly<Record<string, unknown>>

const MAX_TEXT = 500
const DEFAULT_MAX_ITEMS = 2000
const MAX_NUMBER = 10 ** 15 - 1

/**
 * Reads the fields of a JSON object. A field that is absent or null is missing; every other value of
 * the wrong kind is refused, never converted. Keys that nobody asks for are left alone.
 *
 * Names read as the caller wrote them, `rates[2].state` inside lists.
 */
export class Fields {
  readonly #values: Json
  readonly #prefix: string

  constructor(values: Json, prefix = '') {
    this.#values = values
    this.#prefix = prefix
  }

  /** Whether the key is there at all, be it null. */
  has(name: string): boolean {
    return Object.hasOwn(this.#values, name)
  }

  /** The value as it came. */
  raw(name: string): unknown {
    return this.#values[name] ?? null
  }

  fail(name: string, what: string): never {
    throw badRequest(`${this.#prefix}${name} ${what}`)
  }

  /** Text without surrounding white space, not empty. */
  text(name: string, max = MAX_TEXT): string {
    return this.optionalText(name, max) ?? this.fail(name, 'is required')
  }

  optionalText(name: string, max = MAX_TEXT): string | null {
    const value = this.raw(name)
    if (value === null) return null
    if (typeof value !== 'string') this.fail(name, 'must be a string')
    const text = value.trim()
    if (text === '') this.fail(name, 'must not be empty')
    if (text.length > max) this.fail(name, `must not be longer than ${max} characters`)
    return text
  }

  id(name: string): string {
    const value = this.raw(name)
    if (value === null) this.fail(name, 'is required')
    if (!isId(value)) this.fail(name, 'must be an id of 24 lower-case hex characters')
    return value
  }

  /** A list of ids; missing is empty. */
  ids(name: string): readonly string[] {
    return this.items(name).map((value, index) => {
      if (!isId(value)) this.fail(`${name}[${index}]`, 'must be an id of 24 lower-case hex characters')
      return value
    })
  }

  /** `all` (the default), or a list of ids. */
  scope(name: string): 'all' | readonly string[] {
    const value = this.raw(name)
    if (value === null || value === 'all') return 'all'
    if (!Array.isArray(value)) this.fail(name, 'must be "all" or an array of ids')
    return this.ids(name)
  }

  word<const Word extends string>(name: string, words: readonly Word[], missing: Word): Word {
    return this.optionalWord(name, words) ?? missing
  }

  optionalWord<const Word extends string>(name: string, words: readonly Word[]): Word | null {
    const value = this.raw(name)
    if (value === null) return null
    const word = words.find((one) => one === value)
    return word ?? this.fail(name, `must be one of ${words.join(', ')}`)
  }

  flag(name: string, missing: boolean): boolean {
    const value = this.raw(name)
    if (value === null) return missing
    if (typeof value !== 'boolean') this.fail(name, 'must be true or false')
    return value
  }

  /** A whole number of 0 or more within the safe range. */
  wholeNumber(name: string): number {
    return this.optionalWholeNumber(name) ?? this.fail(name, 'is required')
  }

  optionalWholeNumber(name: string): number | null {
    const value = this.raw(name)
    if (value === null) return null
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
      this.fail(name, 'must be a whole number of 0 or more')
    }
    return value
  }

  /** A number of 0 or more; null when missing. */
  optionalAmount(name: string): number | null {
    const value = this.raw(name)
    if (value === null) return null
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
      this.fail(name, 'must be a number of 0 or more')
    }
    return value
  }

  /** A date that exists, YYYY-MM-DD. */
  date(name: string): string {
    const value = this.raw(name)
    if (value === null) this.fail(name, 'is required')
    if (!isCalendarDate(value)) this.fail(name, 'must be an existing date in the form YYYY-MM-DD')
    return value
  }

  /** A moment in ISO 8601 with a zone, in epoch milliseconds; null when missing. */
  optionalTime(name: string): number | null {
    const value = this.raw(name)
    if (value === null) return null
    const time = typeof value === 'string' ? parseTime(value) : null
    return time ?? this.fail(name, 'must be a time in ISO 8601 with a zone, like 2026-01-31T12:00:00Z')
  }

  /** Refuses a key that is there with null, where that could be read as emptying what there is. */
  notNull(name: string): void {
    if (this.has(name) && this.raw(name) === null) this.fail(name, 'must not be null')
  }

  /** An array of whatever; missing is empty. */
  items(name: string, max = DEFAULT_MAX_ITEMS): readonly unknown[] {
    const value = this.raw(name)
    if (value === null) return []
    if (!Array.isArray(value)) this.fail(name, 'must be an array')
    if (value.length > max) this.fail(name, `must not have more than ${max} elements`)
    return value
  }

  /** An array of non-empty strings without repetitions; missing is empty. */
  texts(name: string, max = DEFAULT_MAX_ITEMS): readonly string[] {
    const texts = this.items(name, max).map((value, index) => {
      if (typeof value !== 'string') this.fail(`${name}[${index}]`, 'must be a string')
      const text = value.trim()
      if (text === '') this.fail(`${name}[${index}]`, 'must not be empty')
      if (text.length > MAX_TEXT)
        this.fail(`${name}[${index}]`, `must not be longer than ${MAX_TEXT} characters`)
      return text
    })
    return [...new Set(texts)]
  }

  /** An array of objects, each read in its turn; missing is empty. */
  objects<Item>(name: string, read: (fields: Fields) => Item, max = DEFAULT_MAX_ITEMS): Item[] {
    return this.items(name, max).map((value, index) => {
      if (!isObject(value)) this.fail(`${name}[${index}]`, 'must be an object')
      return read(new Fields(value, `${this.#prefix}${name}[${index}].`))
    })
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A query parameter that is a whole number. @throws HttpError 400. */
export function wholeNumberParameter(
  query: ReadonlyMap<string, string>,
  name: string,
  options: { missing: number; min: number; max?: number },
): number {
  const value = query.get(name)
  if (value === undefined) return options.missing
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= options.min)) throw badRequest(`${name} must be a whole number of ${options.min} or more`)
  const max = options.max ?? MAX_NUMBER
  if (number > max) throw badRequest(`${name} must not exceed ${max}`)
  return number
}

/** A query parameter that is `true` or `false`. @throws HttpError 400. */
export function flagParameter(query: ReadonlyMap<string, string>, name: string): boolean {
  const value = query.get(name)
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw badRequest(`${name} must be true or false`)
}
