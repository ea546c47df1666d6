import { z } from 'zod'

/**
 * A personal value as it stands in events and read models: ciphertext under the data key of one
 * data subject, `sld1.<subject>.<base64url>`. Destroying the subject's key leaves the bytes (and
 * the hash chain over them) as they are and makes every copy unreadable at once.
 */
export type Sealed = string & { readonly __sealed: true }

const SEALED = /^sld1\.[A-Za-z0-9/_:]{1,80}\.[A-Za-z0-9_-]+$/

/** True for a value of the sealed form. */
export function isSealed(value: unknown): value is Sealed {
  return typeof value === 'string' && value.startsWith('sld1.') && SEALED.test(value)
}

/** The data subject whose key sealed the value, for example `person/5f…`. */
export function subjectOf(value: Sealed): string {
  return value.split('.')[1]!
}

/** Binds a sealed value to its place, so that a copy of it elsewhere does not open. */
export function sealContext(stream: string, eventType: string, field: string): string {
  return `${stream}|${eventType}|${field}`
}

/** Where a value stands in the data of an event. */
export interface Place {
  /** The data as a whole. */
  readonly data: Readonly<Record<string, unknown>>
  /** The object or list with the value in it, and where in it. */
  readonly holder: Record<string | number, unknown>
  readonly key: string | number
  /** Steps from the data to the value. */
  readonly path: readonly (string | number)[]
}

/** What a sealed field says of itself. */
export interface SealedField {
  /** Whose data key seals it. */
  readonly subject: 'person' | 'employer'
  /** What the ciphertext at a place is bound to, see {@link sealContext}. Stored values depend on it: it never changes. */
  readonly boundTo: (place: Place) => string
  /** The text is sealed where it is personal, and in plain text elsewhere, as in what earlier releases stored. */
  readonly mayBePlain?: true
}

const sealedFields = z.registry<SealedField>()
const secretFields = z.registry<Record<never, never>>()

/** Schema of a personal field of an event: it refuses plain text, so none can be appended by mistake. */
export function sealed(field: SealedField) {
  return z
    .custom<Sealed>(isSealed, { message: 'must be sealed under a data key' })
    .register(sealedFields, field)
}

/** The same of a text that may be personal, and is in plain text where it is not. */
export function maybeSealed(field: SealedField) {
  return z.string().register(sealedFields, { ...field, mayBePlain: true })
}

/** Schema of a text that is confidential without being personal: the hash of a secret, its place in the vault. */
export function secret() {
  return z.string().register(secretFields, {})
}

/** A field that a schema declares as sealed or secret: the way to it, with `null` for each item of a list. */
interface SensitiveField {
  readonly steps: readonly (string | number | null)[]
  /** Null of a secret. */
  readonly sealed: SealedField | null
}

/** A sensitive value in the data of an event. */
export interface SensitiveValue extends Place {
  readonly value: string
  readonly sealed: SealedField | null
}

/** The sensitive values in the data of an event, by the declarations in the schema of its type. */
export function sensitiveValues(schema: z.ZodType, data: unknown): readonly SensitiveValue[] {
  const found: SensitiveValue[] = []
  const root = data as Readonly<Record<string, unknown>>
  for (const { steps, sealed } of sensitiveFields(schema)) {
    const walk = (node: unknown, path: readonly (string | number)[]): void => {
      if (typeof node !== 'object' || node === null) return
      const step = steps[path.length]!
      const holder = node as Record<string | number, unknown>
      const keys = step !== null ? [step] : Array.isArray(node) ? node.keys() : Object.keys(node)
      for (const key of keys) {
        const value = holder[key]
        if (path.length < steps.length - 1) walk(value, [...path, key])
        else if (typeof value === 'string') {
          found.push({ data: root, holder, key, path: [...path, key], value, sealed })
        }
      }
    }
    walk(root, [])
  }
  return found
}

/** The {@link sensitiveValues} that are confidential. */
export function hiddenValues(schema: z.ZodType, data: unknown): readonly SensitiveValue[] {
  return sensitiveValues(schema, data).filter(({ sealed, value }) => !sealed?.mayBePlain || isSealed(value))
}

const known = new WeakMap<z.ZodType, readonly SensitiveField[]>()

/** @throws Error when the schema has a part of a kind that cannot be looked into. */
export function sensitiveFields(schema: z.ZodType): readonly SensitiveField[] {
  let fields = known.get(schema)
  if (!fields) {
    fields = [...collected(schema, [])]
    known.set(schema, fields)
  }
  return fields
}

function* collected(schema: z.core.$ZodType, steps: SensitiveField['steps']): Generator<SensitiveField> {
  const field = sealedFields.get(schema as z.ZodType) as SealedField | undefined
  if (field || secretFields.has(schema as z.ZodType)) {
    yield { steps, sealed: field ?? null }
    return
  }
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'object':
      for (const [name, one] of Object.entries(def.shape)) yield* collected(one, [...steps, name])
      return
    case 'array':
      yield* collected(def.element, [...steps, null])
      return
    case 'record':
      yield* collected(def.valueType, [...steps, null])
      return
    case 'tuple':
      for (const [index, one] of def.items.entries()) yield* collected(one, [...steps, index])
      return
    case 'union':
      for (const one of def.options) yield* collected(one, steps)
      return
    case 'optional':
    case 'nullable':
      yield* collected(def.innerType, steps)
      return
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
    case 'enum':
    case 'literal':
    case 'unknown':
      return
    default:
      throw new Error(
        `A schema of kind ${def.type} in an event: teach it here where its sensitive values are`,
      )
  }
}
