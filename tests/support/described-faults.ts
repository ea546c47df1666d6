import fc from 'fast-check'
import type { JsonSchema } from '../../interfaces/endpoints/schemas.ts'
import type { Keywords, Known } from './described-values.ts'

/** A value of which one part should be what its schema forbids. */
interface Faulty {
  /** The part, as a refusal names it: `rates[2].state`; empty for the whole. */
  readonly field: string
  readonly value: unknown
}

/** Values of every kind. */
const KINDS = [null, 7, 1.5, 'no such text', true, [], {}] as const
/** How many of them are tried for a field. */
const TRIED = process.env.TEST_LONG ? KINDS.length : 2

/**
 * Makes, of schemas of one document, values with one fault each: always the same few for each field. Of values of other
 * kinds, each field gets the next ones in turn.
 */
export class DescribedFaults {
  readonly #components: Readonly<Record<string, JsonSchema>>
  readonly #known: Known
  #turn = 0

  /** @param known values of fields of which the schema does not say all. */
  constructor(components: Readonly<Record<string, JsonSchema>>, known: Known) {
    this.#components = components
    this.#known = known
  }

  /** One value that has everything that a schema names. */
  whole(schema: JsonSchema, name = ''): unknown {
    if (this.#known[name]) return this.#known[name][0]
    const keywords = this.#resolved(schema)
    const { minimum, maximum = minimum, minItems = 1, items, prefixItems, properties = {} } = keywords
    const alternatives = keywords.anyOf ?? keywords.oneOf
    if (alternatives) return this.whole(alternatives[0]!, name)
    if ('const' in keywords) return keywords.const
    if (keywords.enum) return keywords.enum[0]
    switch ([keywords.type].flat()[0]) {
      case 'string':
        return textOf(keywords)
      case 'integer':
      case 'number':
        return minimum ?? maximum ?? 1
      case 'boolean':
        return true
      case 'array':
        if (prefixItems) return prefixItems.map((one) => this.whole(one))
        return Array.from({ length: Math.max(1, minItems) }, () => this.whole(items || {}))
      case 'object':
        return Object.fromEntries(
          Object.entries(properties)
            .filter(([, one]) => one.type !== 'null')
            .map(([field, one]) => [field, this.whole(one, field)]),
        )
      default:
        return 'x'
    }
  }

  /** Values that have one fault, each at another place or of another kind; of a few the schema may allow all. */
  *of(schema: JsonSchema, field = ''): Generator<Faulty> {
    const keywords = this.#resolved(schema)
    const alternatives = keywords.anyOf ?? keywords.oneOf
    if (alternatives) {
      for (const one of alternatives) if (one.type !== 'null') yield* this.of(one, field)
      return
    }
    for (const value of [...this.#kinds(), ...wrongFor(keywords)]) yield { field, value }
    const { properties = {}, additionalProperties, items, prefixItems, minItems = 0, maxItems } = keywords
    const whole = this.whole(schema)
    if (Array.isArray(whole)) {
      const [first, ...others] = whole
      if (minItems > 0) yield { field, value: whole.slice(0, minItems - 1) }
      if (maxItems !== undefined && maxItems < 10_000) {
        yield { field, value: Array.from({ length: maxItems + 1 }, () => first) }
      }
      const element = items || prefixItems?.[0]
      if (!element) return
      for (const one of this.of(element, `${field}[0]`)) yield { ...one, value: [one.value, ...others] }
    }
    if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return
    const at = (name: string) => (field === '' ? name : `${field}.${name}`)
    for (const [name, one] of Object.entries(properties)) {
      const { [name]: _left, ...rest } = whole as Record<string, unknown>
      yield { field: at(name), value: rest }
      for (const fault of this.of(one, at(name))) yield { ...fault, value: { ...whole, [name]: fault.value } }
    }
    yield { field: at('unexpected'), value: { ...whole, unexpected: 1 } }
    if (typeof additionalProperties !== 'object') return
    for (const fault of this.of(additionalProperties, at('further'))) {
      yield { ...fault, value: { ...whole, further: fault.value } }
    }
  }

  /** Values with one field too many, in each object that takes no others: each of its own fields, misspelt. */
  *misspelt(schema: JsonSchema, field = ''): Generator<Faulty & { readonly meant: string }> {
    const { anyOf, oneOf = anyOf, properties = {}, additionalProperties, items } = this.#resolved(schema)
    for (const one of oneOf ?? []) yield* this.misspelt(one, field)
    if (items) for (const one of this.misspelt(items, `${field}[0]`)) yield { ...one, value: [one.value] }
    if (Object.keys(properties).length === 0) return
    const whole = this.whole(schema) as Readonly<Record<string, unknown>>
    const at = (name: string) => (field === '' ? name : `${field}.${name}`)
    for (const [name, one] of Object.entries(properties)) {
      for (const fault of this.misspelt(one, at(name)))
        yield { ...fault, value: { ...whole, [name]: fault.value } }
      // every letter is as near to a name of one
      if (additionalProperties !== false || name.length === 1) continue
      const mistyped = `${name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())}${name.at(-1)}`
      yield { field: at(mistyped), value: { ...whole, [mistyped]: 1 }, meant: at(name) }
    }
  }

  #kinds(): readonly unknown[] {
    return Array.from({ length: TRIED }, () => KINDS[this.#turn++ % KINDS.length])
  }

  #resolved(schema: JsonSchema): Keywords {
    const { $ref } = schema as Keywords
    if ($ref) return this.#resolved(this.#components[$ref.split('/').at(-1)!]!)
    const { anyOf, ...rest } = schema as Keywords
    // beside properties it says which of them are wanted, and an object with all of them has those
    return anyOf && rest.properties ? rest : (schema as Keywords)
  }
}

/** Values that lie just beyond the limits of a schema. */
function* wrongFor(keywords: Keywords): Generator<unknown> {
  const { minLength, maxLength, pattern, format, minimum, maximum } = keywords
  if (keywords.enum) yield* keywords.enum.slice(0, 1).map((one) => String(one).toLowerCase())
  if (minLength || pattern || format) yield* ['', '  ']
  if (maxLength !== undefined) yield textOf({ ...keywords, pattern: undefined }).padEnd(maxLength + 1, 'x')
  if (pattern) yield `${textOf(keywords)}\u00e9 ${textOf(keywords)}`
  if (format) yield* ['2026-02-30', '2026-02-30T12:00:00Z', '20260131']
  if (minimum !== undefined) yield minimum - 1
  if (maximum !== undefined) yield maximum + 1
}

function textOf({ format, pattern, minLength = 1, maxLength = Number.POSITIVE_INFINITY }: Keywords): string {
  if (format === 'date') return '2026-01-31'
  if (format === 'date-time') return '2026-01-31T12:00:00Z'
  if (!pattern?.startsWith('^')) return 'x'.repeat(minLength)
  const fitting = fc.stringMatching(new RegExp(pattern)).filter(({ length }) => length <= maxLength)
  return fc.sample(fitting, { numRuns: 1, seed: 1 })[0]!
}
