import { z } from 'zod'
import { FIELD_TEXTS } from './field-texts.ts'

/** A JSON Schema of 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** JSON Schemas of one document: those of schemas with an id stand in `components`, and are referred to. */
export class Schemas {
  readonly #components = new Map<string, JsonSchema>()
  readonly #known = { input: new Map<z.ZodType, JsonSchema>(), output: new Map<z.ZodType, JsonSchema>() }

  get components(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries([...this.#components].sort(([one], [other]) => (one < other ? -1 : 1)))
  }

  /**
   * What of a schema a caller has to know.
   * @param io `input`: of what is sent; `output`: of what is answered.
   * @throws Error for a schema that cannot be described, and when two different ones have one id.
   */
  of(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const known = this.#known[io].get(schema)
    if (known) return known
    const { $schema, $defs, ...described } = z.toJSONSchema(schema, {
      io,
      override: ({ zodSchema, jsonSchema }) => this.#complete(zodSchema, jsonSchema, io),
    })
    for (const [id, definition] of Object.entries($defs ?? {}))
      this.#add(id, explained(referring(definition as JsonSchema), id))
    const made = explained(referring(described))
    this.#known[io].set(schema, made)
    return made
  }

  /** Refers to what of a schema a caller has to know, as a component. @param id one that no other schema has. */
  named(id: string, schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const made = this.of(schema, io)
    return '$ref' in made ? made : this.component(id, made)
  }

  /** Refers to a schema, as a component. @param id one that no other schema has. */
  component(id: string, schema: JsonSchema): JsonSchema {
    this.#add(id, schema)
    return { $ref: `#/components/schemas/${id}` }
  }

  #add(id: string, schema: JsonSchema): void {
    const known = this.#components.get(id)
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(
        `Two different schemas have the id ${id}, or one that is sent and answered differs in both`,
      )
    }
    this.#components.set(id, schema)
  }

  /** Puts what `meta` says beside the schema where it belongs. */
  #complete(schema: z.core.$ZodType, json: Record<string, unknown>, io: 'input' | 'output'): void {
    const meta = z.globalRegistry.get(schema)
    const { override, items, default: missing, readOnly } = meta ?? {}
    if (override) {
      const { description } = json
      for (const key of Object.keys(json)) delete json[key]
      Object.assign(json, override, description ? { description } : {})
    }
    if (items instanceof z.ZodType) json.items = this.of(items, io)
    if (missing !== undefined) json.default = missing
    // of lists that are read only to this program, not of what a caller may not change
    if (!readOnly) delete json.readOnly
    if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum
    if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
    if (schema instanceof z.ZodObject && !schema.def.catchall) {
      // answers may get further fields without breaking clients
      if (io === 'output') delete json.additionalProperties
      else json.additionalProperties = false
    }
  }
}

const REFERENCE = /"\$ref":"#\/\$defs\//g

function referring(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema).replaceAll(REFERENCE, '"$ref":"#/components/schemas/'))
}

/** A schema whose fields all say what they mean. @param id of the named schema that they belong to. */
function explained(schema: JsonSchema, id = ''): JsonSchema {
  return JSON.parse(JSON.stringify(schema), function (key, value) {
    if (key !== 'properties' || this.type !== 'object') return value
    for (const [name, field] of Object.entries<JsonSchema>(value)) {
      const { description = textOf(field, meaningOf(name, id)) } = field
      if (description) value[name] = { ...field, description }
    }
    return value
  })
}

/** What a text says of a field, without what null would mean where it is never null. */
function textOf(field: JsonSchema, text: string | undefined): string | undefined {
  return isNullable(field) ? text : text?.replace(/; null: .*$/, '')
}

/** Whether a value may be null, as far as its schema says what it is. */
function isNullable({ type, anyOf, $ref, ...said }: JsonSchema): boolean {
  if (Array.isArray(anyOf)) return anyOf.some(isNullable)
  if (type !== undefined) return [type].flat().includes('null')
  return $ref === undefined && !('enum' in said || 'const' in said)
}

/** What a field or parameter means that says nothing of itself. @param id of the named schema that it belongs to. */
export function meaningOf(name: string, id = ''): string | undefined {
  return FIELD_TEXTS[`${id}.${name}`] ?? FIELD_TEXTS[name]
}
