import fc from 'fast-check'
import type { JsonSchema } from '../../interfaces/endpoints/schemas.ts'

/** Values that fit JSON Schemas. */

/** Characters and elements above the least, where a schema sets no narrower limit. */
const SOME = 6

/** The keywords that these classes know. */
export type Keywords = {
  readonly $ref?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Keywords[]
  readonly oneOf?: readonly Keywords[]
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly pattern?: string | undefined
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly items?: Keywords | false
  readonly prefixItems?: readonly Keywords[]
  readonly properties?: Readonly<Record<string, Keywords>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Keywords | boolean
}

/** Values by the name of the field they fit: ids of what exists. */
export type Known = Readonly<Record<string, readonly unknown[]>>

/** Generates values for schemas of one document. */
export class DescribedValues {
  readonly #components: Readonly<Record<string, JsonSchema>>
  readonly #known: Known

  constructor(components: Readonly<Record<string, JsonSchema>>, known: Known) {
    this.#components = components
    this.#known = known
  }

  /** Values that fit, as far as the keywords say that this class knows. */
  fitting(schema: JsonSchema, name = ''): fc.Arbitrary<unknown> {
    const known = this.#known[name]
    const any = this.#fitting(this.#resolved(schema), name)
    return known ? fc.oneof({ arbitrary: fc.constantFrom(...known), weight: 3 }, any) : any
  }

  #resolved(schema: JsonSchema): Keywords {
    const { $ref } = schema as Keywords
    return $ref ? this.#resolved(this.#components[$ref.split('/').at(-1)!]!) : (schema as Keywords)
  }

  #fitting(keywords: Keywords, name: string): fc.Arbitrary<unknown> {
    const alternatives = keywords.anyOf ?? keywords.oneOf
    if (alternatives) return fc.oneof(...alternatives.map((one) => this.fitting(one, name)))
    if ('const' in keywords) return fc.constant(keywords.const)
    if (keywords.enum) return fc.constantFrom(...keywords.enum)
    const types = [keywords.type].flat()
    return fc.oneof(...types.map((type) => this.#ofType(type, keywords)))
  }

  #ofType(type: string | undefined, keywords: Keywords): fc.Arbitrary<unknown> {
    switch (type) {
      case 'string':
        return textOf(keywords)
      case 'integer':
        return fc.integer({
          min: keywords.minimum ?? -1000,
          max: Math.min(keywords.maximum ?? 100_000, 2 ** 31 - 1),
        })
      case 'number': {
        const { minimum = -1_000_000, maximum = 1_000_000 } = keywords
        return fc.double({ min: minimum, max: maximum, noNaN: true })
      }
      case 'boolean':
        return fc.boolean()
      case 'null':
        return fc.constant(null)
      case 'array': {
        const { minItems = 0, maxItems = SOME } = keywords
        const item = keywords.items ? this.fitting(keywords.items) : ANYTHING
        return fc.array(item, { minLength: minItems, maxLength: Math.min(maxItems, minItems + SOME) })
      }
      case 'object':
        return this.#object(keywords)
      default:
        return ANYTHING
    }
  }

  #object({ properties = {}, required = [], additionalProperties, minProperties = 0 }: Keywords) {
    const fields: Record<string, fc.Arbitrary<unknown>> = {}
    for (const [name, one] of Object.entries(properties)) fields[name] = this.fitting(one, name)
    const own: fc.Arbitrary<object> = fc.record(fields, { requiredKeys: [...required] })
    if (!additionalProperties) return own
    const value = additionalProperties === true ? ANYTHING : this.fitting(additionalProperties)
    const further = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), value, {
      minKeys: Math.max(0, minProperties - required.length),
      maxKeys: 3,
    })
    return fc.tuple(further, own).map(([others, mine]) => ({ ...others, ...mine }))
  }
}

/** Values of every kind, with numbers that every reader keeps. */
const ANYTHING: fc.Arbitrary<unknown> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.string({ unit: 'grapheme', maxLength: SOME }),
  fc.array(fc.integer(), { maxLength: 2 }),
  fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.boolean(), { maxKeys: 2 }),
)

function textOf({ format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Keywords) {
  if (format === 'date' || format === 'date-time') {
    // a clock that is moved to it meets every timer on its way
    const times = fc.date({ min: new Date('1990-01-01'), max: new Date('2028-12-31'), noInvalidDate: true })
    return times.map((time) => (format === 'date' ? time.toISOString().slice(0, 10) : time.toISOString()))
  }
  const fits = (text: string) => text.length >= minLength && text.length <= maxLength
  if (pattern?.startsWith('^')) return fc.stringMatching(new RegExp(pattern)).filter(fits)
  const most = Math.min(maxLength, minLength + SOME)
  const any = fc.string({ unit: 'grapheme', minLength, maxLength: most })
  const form = new RegExp(pattern ?? '')
  return any.filter((text) => fits(text) && form.test(text))
}
