import type { z } from 'zod'

/** Turns the stored JSON of one version into the shape of the next version. Pure. */
export type Upcaster = (raw: unknown) => unknown

/**
 * An event type is one value: its name, current version, schema and upcasters.
 * The TypeScript type of its data is inferred from the schema; fields declared with
 * `sealed()` (see sealed.ts) are the personal ones.
 */
export interface EventType<Name extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly name: Name
  /** Current schema version, from 1. */
  readonly version: number
  readonly schema: Schema
  /** `upcasters[n]` turns version n into version n + 1; one for each version below the current. */
  readonly upcasters: Readonly<Record<number, Upcaster>>
}

/** An event as deciders produce and fold it: a type name and its data. */
export interface DomainEvent<Name extends string = string, Data = unknown> {
  readonly type: Name
  readonly data: Data
}

/** The event that belongs to an event type. */
export type EventOf<T extends EventType> =
  T extends EventType<infer Name, infer Schema> ? DomainEvent<Name, z.output<Schema>> : never

/**
 * Declares an event type.
 * @throws Error when an upcaster for a version below the current is missing.
 */
export function eventType<const Name extends string, Schema extends z.ZodType>(definition: {
  name: Name
  schema: Schema
  version?: number
  upcasters?: Record<number, Upcaster>
}): EventType<Name, Schema> & {
  /** Builds an event of this type. The data is checked against the schema when it is appended. */
  of(data: z.output<Schema>): DomainEvent<Name, z.output<Schema>>
} {
  const version = definition.version ?? 1
  const upcasters = definition.upcasters ?? {}
  for (let from = 1; from < version; from += 1) {
    if (!upcasters[from]) throw new Error(`Event type ${definition.name}: no upcaster from version ${from}`)
  }
  return {
    name: definition.name,
    version,
    schema: definition.schema,
    upcasters,
    of: (data) => ({ type: definition.name, data }),
  }
}

/** Brings stored JSON of `version` to the current version of its type. Does not validate. */
export function upcast(type: EventType, version: number, raw: unknown): unknown {
  let data = raw
  for (let from = version; from < type.version; from += 1) data = type.upcasters[from]!(data)
  return data
}
