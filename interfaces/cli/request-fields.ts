import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { isRounded } from '../http/json/numbers.ts'
import { parseJson } from '../http/json/strict-json.ts'

/** What commands need of a field's description. */
interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly JsonSchema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: JsonSchema
  readonly format?: string
  readonly default?: unknown
  readonly readOnly?: boolean
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  /** What is described instead. */
  readonly override?: JsonSchema
}

/** A field of a request, as the command line takes it. */
export interface RequestField {
  /** As the API calls it: `tenant_id`. */
  readonly name: string
  readonly isRequired: boolean
  readonly description: string
  readonly placeholder: string
  readonly isFlag: boolean
  /** What a flag stands for when it is not given. */
  readonly default: unknown
  /** What the texts of one option mean. @param before what earlier ones of a repeated option meant. @throws InvalidArgumentError. */
  readonly read: (text: string, before?: unknown) => unknown
}

/** The fields of an object in a request, in order. */
export function fieldsOf(schema: Endpoint<never>['body']): readonly RequestField[] {
  if (!schema) return []
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  const changeable = Object.entries(whole.properties ?? {}).filter(([, { readOnly }]) => !readOnly)
  return changeable.map(([name, property]) => {
    // what is made of a value has its default told by its meta data alone
    const { default: missing } = (schema as z.ZodObject).shape[name]!.meta() ?? {}
    const { override, description } = property
    const field = override
      ? { description, ...override }
      : { ...property, default: property.default ?? missing }
    const kinds = alternatives(field, whole.$defs ?? {})
    return {
      name,
      isRequired: whole.required?.includes(name) ?? false,
      description: describe(field, kinds),
      placeholder: placeholderOf(name, kinds),
      isFlag: kinds.some(({ type }) => type === 'boolean'),
      default: field.default,
      read: (text, before) => read(kinds, text, before),
    }
  })
}

/** What the texts of an option meant: of a bare null commander makes an empty text. */
interface Meant {
  readonly value: unknown
}

/** What was given of some fields, by name. */
export function valuesOf(fields: readonly RequestField[], command: Command): Record<string, unknown> {
  const given = fields.flatMap(({ name, isFlag }) => {
    const option = command.getOptionValue(new Option(`--${kebab(name)}`).attributeName())
    return option === undefined ? [] : [[name, isFlag ? option : (option as Meant).value] as const]
  })
  return Object.fromEntries(given)
}

/** The options that a field is given by; a flag that may be switched off has two. */
export function optionsOf({ name, isFlag, isRequired, ...field }: RequestField): readonly Option[] {
  const long = kebab(name)
  const description = isRequired
    ? `${field.description}${field.description && '; '}required`
    : field.description
  if (!isFlag) {
    const meant = (text: string, before?: Meant): Meant => ({ value: field.read(text, before?.value) })
    return [new Option(`--${long} <${field.placeholder}>`, description).argParser(meant)]
  }
  const on = new Option(`--${long}`, description)
  return field.default === false ? [on] : [on, new Option(`--no-${long}`, 'the opposite')]
}

/** `tenant_id` as `tenant-id`. */
export function kebab(name: string): string {
  return name.replaceAll('_', '-')
}

/** What a value may be, one by one. */
function alternatives(schema: JsonSchema, defs: Readonly<Record<string, JsonSchema>>): readonly JsonSchema[] {
  if (schema.$ref) return alternatives(defs[schema.$ref.split('/').at(-1)!]!, defs)
  const { anyOf, description } = schema
  if (anyOf)
    return anyOf.flatMap((one) => alternatives({ ...(description && { description }), ...one }, defs))
  if (Array.isArray(schema.type)) return schema.type.map((type) => ({ ...schema, type }))
  return [schema]
}

function read(kinds: readonly JsonSchema[], text: string, before: unknown): unknown {
  const of = (...types: readonly string[]) => kinds.find(({ type }) => types.includes(type as string))
  if (text === 'null' && of('null')) return null
  if (kinds.some((kind) => kind.const === text)) return text
  const list = of('array')
  if (list) return [...(Array.isArray(before) ? before : []), ...listOf(list.items ?? {}, text)]
  if (of('object') && (text.startsWith('{') || !of('string'))) return json(text)
  if (of('integer', 'number')) return number(text, of('integer') !== undefined)
  return text
}

/** Several values: separated by commas, or JSON. */
function listOf({ type }: JsonSchema, text: string): readonly unknown[] {
  if (type === 'object' || text.startsWith('[')) return [json(text)].flat()
  return text === '' ? [] : text.split(',').map((one) => one.trim())
}

function json(text: string): unknown {
  const parsed = parseJson(Buffer.from(text))
  if (parsed.ok && parsed.leftOut) {
    throw new InvalidArgumentError(`Not taken: ${parsed.leftOut[0]} is a name that is not kept.`)
  }
  if (parsed.ok) return parsed.value
  const isNone = parsed.kind === 'syntax'
  throw new InvalidArgumentError(
    isNone ? 'Give JSON.' : `Not taken: ${parsed.message.replace(/^The body/, 'it')}.`,
  )
}

function number(text: string, isWhole: boolean): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (isWhole && !Number.isSafeInteger(value)) throw new InvalidArgumentError('Give a whole number.')
  if (!Number.isFinite(value)) throw new InvalidArgumentError('Give a number.')
  if (isRounded(text.trim()))
    throw new InvalidArgumentError('The number is not kept as it is written; give fewer digits.')
  return value
}

/** What the field is, its words, and what stands for it when it is missing. */
function describe(field: JsonSchema, kinds: readonly JsonSchema[]): string {
  const description = [field, ...kinds].find((one) => one.description)?.description
  const words = kinds.flatMap(
    ({ enum: some, const: one, items }) => some ?? items?.enum ?? (one ? [one] : []),
  )
  const members = kinds.flatMap(({ items }) => Object.keys(items?.properties ?? {}))
  const missing = [field.default ?? []].flat().join(', ')
  return [
    description && plain(description),
    words.length > 0 && [...new Set(words)].join(', '),
    members.length > 0 && `JSON of ${members.join(', ')}; repeat for several`,
    missing !== '' && missing !== 'false' && `default ${missing}`,
  ]
    .filter(Boolean)
    .join('; ')
}

/** A sentence of a description as help shows it. */
export function plain(text: string): string {
  return text.replaceAll('`', '').replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())
}

function placeholderOf(name: string, kinds: readonly JsonSchema[]): string {
  const of = (wanted: string) => kinds.find(({ type }) => type === wanted)
  const list = of('array')
  if (list) return list.items?.type === 'object' ? 'json' : name.endsWith('_ids') ? 'ids' : 'list'
  if (of('object')) return 'json'
  if (of('integer') || of('number')) return 'number'
  const [{ format, enum: words } = {} as JsonSchema] = kinds
  if (format === 'date' || format === 'date-time') return format === 'date' ? 'date' : 'time'
  if (words) return 'word'
  return name.endsWith('_id') ? 'id' : 'text'
}
