import { z } from 'zod'

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
  /** The first one turns version 1 into version 2; one for each version below the current. */
  readonly upcasters: readonly Upcaster[]
}

/** An event as deciders produce and fold it: a type name and its data. */
export interface DomainEvent<Name extends string = string, Data = unknown> {
  readonly type: Name
  readonly data: Data
}

/** The event that belongs to an event type. */
export type EventOf<T extends EventType> =
  T extends EventType<infer Name, infer Schema> ? DomainEvent<Name, z.output<Schema>> : never

/** The data of one type among the events of an aggregate. */
export type DataOf<Event extends DomainEvent, Type extends Event['type']> = Extract<
  Event,
  { type: Type }
>['data']

type SchemaOf<Fields extends z.core.$ZodShape | z.ZodType> = Fields extends z.ZodType
  ? Fields
  : Fields extends z.core.$ZodShape
    ? z.ZodObject<z.core.util.Writeable<Fields>, z.core.$strip>
    : never

/**
 * Declares an event type.
 * @param fields of its data by name, or their schema.
 * @param upcasters one for each earlier version, the oldest first: the current one is theirs plus 1.
 */
export function eventType<const Name extends string, Fields extends z.core.$ZodShape | z.ZodType>(
  name: Name,
  fields: Fields,
  ...upcasters: readonly Upcaster[]
): EventType<Name, SchemaOf<Fields>> & {
  /** Builds an event of this type. The data is checked against the schema when it is appended. */
  of(data: z.output<SchemaOf<Fields>>): DomainEvent<Name, z.output<SchemaOf<Fields>>>
} {
  const schema = (
    fields instanceof z.ZodType ? fields : z.object(fields as z.core.$ZodShape)
  ) as SchemaOf<Fields>
  return { name, version: upcasters.length + 1, schema, upcasters, of: (data) => ({ type: name, data }) }
}

/** Brings stored JSON of `version` to the current version of its type. Does not validate. */
export function upcast(type: EventType, version: number, raw: unknown): unknown {
  return type.upcasters.slice(version - 1).reduce((data, upcaster) => upcaster(data), raw)
}

/** Fields of event data: a time is ISO 8601 UTC with milliseconds, a date `YYYY-MM-DD`. */
export const time = () => z.iso.datetime({ precision: 3 })
export const date = () => z.string().regex(/^\d{4}-\d{2}-\d{2}$/)
