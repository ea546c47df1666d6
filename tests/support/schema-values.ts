import fc from 'fast-check'
import type { z } from 'zod'

/**
 * Values that fit an event schema, worked out from the schema itself, so that a new event type is covered by the
 * tests of the codec without anybody writing a generator for it.
 */

/** Times in ISO 8601 with milliseconds. */
const times = fc
  .integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2100, 0, 1) })
  .map((time) => new Date(time).toISOString())

const SUBJECT = 'person/0123456789abcdef01234567'

/** Any value that fits a schema, as it comes out of JSON. */
export function anyFitting(schema: z.ZodType): fc.Arbitrary<unknown> {
  return arbitraryOf(schema).map((value) => JSON.parse(JSON.stringify(value)) as unknown)
}

/** One plain value that fits a schema, always the same one. @param name what strings are made of. */
export function sampleFitting(schema: z.ZodType, name: string): unknown {
  const { def, limits } = look(schema)
  switch (def.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(def.shape).map(([key, one]) => [key, sampleFitting(one as z.ZodType, key)]),
      )
    case 'string':
      if (limits.isTime) return '2026-01-31T12:00:00.000Z'
      if (limits.pattern) return fc.sample(arbitraryOf(schema), { numRuns: 1, seed: hashOf(name) })[0]
      if (name.endsWith('_date') || name === 'start' || name === 'end') return '2026-01-31'
      return name.replaceAll('_', ' ')
    case 'number':
      return Math.max(limits.min ?? 1, 1)
    case 'array':
      return [sampleFitting(def.element as z.ZodType, name)]
    case 'tuple':
      return def.items.map((one) => sampleFitting(one as z.ZodType, name))
    case 'nullable':
    case 'optional':
      return sampleFitting(def.innerType as z.ZodType, name)
    case 'enum':
      return Object.values(def.entries)[0]
    case 'literal':
      return def.values[0]
    case 'union':
      return sampleFitting(def.options.at(-1) as z.ZodType, name)
    case 'boolean':
      return true
    case 'null':
      return null
    case 'record':
      return { [name]: sampleFitting(def.valueType as z.ZodType, name) }
    case 'custom':
      return fittingCustom(schema, `sld1.${SUBJECT}.${Buffer.from(name).toString('base64url')}`)
    case 'unknown':
      return { [name]: ['anything', 1, true, null] }
    default:
      throw new Error(`No sample for a schema of kind ${def.type}: teach tests/support/schema-values.ts`)
  }
}

function arbitraryOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const { def, limits } = look(schema)
  switch (def.type) {
    case 'object': {
      const shape = Object.entries(def.shape).map(([key, one]) => [key, arbitraryOf(one as z.ZodType)])
      const required = Object.keys(def.shape).filter(
        (key) => look(def.shape[key] as z.ZodType).def.type !== 'optional',
      )
      return fc.record(Object.fromEntries(shape) as Record<string, fc.Arbitrary<unknown>>, {
        requiredKeys: required,
        noNullPrototype: true,
      })
    }
    case 'string':
      if (limits.isTime) return times
      return limits.pattern ? fc.stringMatching(limits.pattern) : fc.string({ unit: 'binary' })
    case 'number': {
      const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = limits
      if (limits.isInteger) return fc.integer({ min, max })
      return fc.double({ noNaN: true, noDefaultInfinity: true, min, max })
    }
    case 'array':
      return fc.array(arbitraryOf(def.element as z.ZodType), { minLength: limits.min ?? 0, maxLength: 4 })
    case 'tuple':
      return fc.tuple(...def.items.map((one) => arbitraryOf(one as z.ZodType)))
    case 'nullable':
      return fc.option(arbitraryOf(def.innerType as z.ZodType))
    case 'optional':
      return arbitraryOf(def.innerType as z.ZodType)
    case 'enum':
      return fc.constantFrom(...Object.values(def.entries))
    case 'literal':
      return fc.constantFrom(...def.values)
    case 'union':
      return fc.oneof(...def.options.map((one) => arbitraryOf(one as z.ZodType)))
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'record':
      return fc.dictionary(
        fc.string({ minLength: 1, maxLength: 8 }),
        arbitraryOf(def.valueType as z.ZodType),
        { maxKeys: 3, noNullPrototype: true },
      )
    case 'custom':
      return fc
        .stringMatching(/^sld1\.(person|employer)\/[0-9a-f]{24}\.[A-Za-z0-9_-]{1,40}$/)
        .map((value) => fittingCustom(schema, value))
    case 'unknown':
      return fc.jsonValue({ maxDepth: 2 })
    default:
      throw new Error(`No values for a schema of kind ${def.type}: teach tests/support/schema-values.ts`)
  }
}

/** The one custom schema that events use is that of sealed values. */
function fittingCustom(schema: z.ZodType, value: string): string {
  if (!schema.safeParse(value).success) throw new Error('A custom schema that is not that of sealed values')
  return value
}

/** The parts of a schema: what it is and what is checked beyond. */
function look(schema: z.ZodType) {
  const { def } = (schema as unknown as z.core.$ZodTypes)._zod
  const limits: { pattern?: RegExp; min?: number; max?: number; isInteger?: boolean; isTime?: boolean } = {}
  if ('format' in def && def.format === 'datetime') limits.isTime = true
  if ('format' in def && def.format === 'safeint') limits.isInteger = true
  for (const one of 'checks' in def ? (def.checks ?? []) : []) {
    const check = (one as unknown as z.core.$ZodChecks)._zod.def
    if (check.check === 'string_format' && check.pattern) limits.pattern = check.pattern
    else if (check.check === 'number_format') limits.isInteger = check.format === 'safeint'
    else if (check.check === 'greater_than') limits.min = Number(check.value) + (check.inclusive ? 0 : 1)
    else if (check.check === 'less_than') limits.max = Number(check.value) - (check.inclusive ? 0 : 1)
    else if (check.check === 'min_length') limits.min = Number(check.minimum)
    else if (check.check === 'max_length') limits.max = Number(check.maximum)
    else throw new Error(`No values for a check of kind ${check.check}: teach tests/support/schema-values.ts`)
  }
  return { def, limits }
}

function hashOf(text: string): number {
  let hash = 7
  for (const character of text) hash = (hash * 31 + character.charCodeAt(0)) | 0
  return hash
}
