import { hash } from 'node:crypto'
import type { Aggregate } from '../../domain/kernel/decider.ts'
import { type DomainEvent, type EventType, upcast } from '../../domain/kernel/event-type.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import type { Actor, KeyedRequest } from '../ports/command-context.ts'
import type { EventToAppend, StoredEvent } from '../ports/event-log.ts'
import { SafeError } from '../ports/safe-error.ts'
import { hashOf } from './hash-chain.ts'

export type { Actor, KeyedRequest } from '../ports/command-context.ts'

/** What every event carries beside its data. */
export interface EventMetadata {
  readonly tenant_id: string | null
  readonly environment: Environment | null
  readonly actor: Actor
  /** The request (or timer) that everything which followed goes back to. */
  readonly correlation_id: string
  /** The command or event that directly caused this one. */
  readonly causation_id: string
  /** The command that this is the result of: one that comes again finds it here. Events of earlier builds have none. */
  readonly command_id?: string
  /** Of events that a request with a key created their stream with. */
  readonly keyed_request?: KeyedRequest
  /** Keyed fingerprints that a search finds what was stored by: of email addresses, people's names, idempotency keys. */
  readonly found_by?: readonly string[]
  /** `traceparent` (W3C Trace Context) of the append, where traces are kept. */
  readonly traceparent?: string
  /** ISO 8601 UTC, by the service's clock. */
  readonly recorded_at: string
  readonly schema_version: number
}

/** An event read from the log: stored place, parsed data, metadata. */
export interface RecordedEvent<E extends DomainEvent = DomainEvent> {
  readonly position: bigint
  readonly stream: string
  readonly revision: number
  readonly eventId: string
  readonly type: E['type']
  readonly data: E['data']
  readonly metadata: EventMetadata & { readonly hash: string }
}

/** A stored event does not fit its type: unknown type, unknown version, or data that fails the schema. */
export class UnreadableEvent extends SafeError {
  constructor(stored: Pick<StoredEvent, 'stream' | 'revision' | 'type'>, why: string) {
    super(`Event ${stored.type} at ${stored.stream}@${stored.revision} cannot be read: ${why}`)
    this.name = 'UnreadableEvent'
  }
}

/** Every event type by name: the one place where stored JSON becomes typed events and back. */
export class EventRegistry {
  readonly #types = new Map<string, EventType>()

  /** @throws Error when two types share a name, or two aggregates a category. */
  constructor(aggregates: readonly Aggregate[]) {
    const categories = new Set<string>()
    for (const aggregate of aggregates) {
      if (categories.has(aggregate.category)) throw new Error(`Duplicate category ${aggregate.category}`)
      categories.add(aggregate.category)
      for (const type of aggregate.events) {
        if (this.#types.has(type.name)) throw new Error(`Duplicate event type ${type.name}`)
        this.#types.set(type.name, type)
      }
    }
  }

  get types(): readonly EventType[] {
    return [...this.#types.values()]
  }

  /**
   * Checks an event against its schema and writes it as JSON.
   * @throws Error naming the type when the data fails the schema; values are never part of the message.
   */
  encode(event: DomainEvent, metadata: Omit<EventMetadata, 'schema_version'>): EventToAppend {
    return this.encodeAll([event], metadata)[0]!
  }

  /** {@link encode} for the events of one append: their metadata are written once for each version. */
  encodeAll(
    events: readonly DomainEvent[],
    metadata: Omit<EventMetadata, 'schema_version'>,
  ): readonly EventToAppend[] {
    const written = new Map<number, { whole: EventMetadata; text: string }>()
    return events.map((event) => {
      const type = this.#types.get(event.type)
      if (!type) throw new Error(`Unknown event type ${event.type}`)
      const parsed = type.schema.safeParse(event.data)
      if (!parsed.success) {
        const where = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.code}`).join(', ')
        throw new Error(`Event ${event.type} does not fit its schema: ${where}`)
      }
      let shared = written.get(type.version)
      if (!shared) {
        const whole = { ...metadata, schema_version: type.version }
        shared = { whole, text: JSON.stringify(whole) }
        written.set(type.version, shared)
      }
      const text = JSON.stringify(parsed.data)
      return {
        type: event.type,
        data: text,
        metadata: shared.text,
        writtenFrom: { by: this, text, data: parsed.data, metadata: shared.whole },
      }
    })
  }

  /** Whether this release knows an event type. */
  knows(type: string): boolean {
    return this.#types.has(type)
  }

  /**
   * Parses a stored event, brings it to the current version and checks it. The result is remembered
   * with the stored event, so that several readers of one page parse it once; treat it as immutable.
   * @param remember false for long reads of one caller: it would only keep garbage alive.
   * @throws UnreadableEvent
   */
  decode(stored: StoredEvent, remember = true): RecordedEvent {
    const { position, stream, revision, eventId, writtenFrom: known } = stored
    // a copy with other data carries what is known along: it is not what was decoded
    if (known?.by === this && known.text === stored.data) {
      const metadata = { ...(known.metadata as EventMetadata), hash: hashOf(stored.metadata) }
      return { position, stream, revision, eventId, type: stored.type, data: known.data, metadata }
    }
    const type = this.#types.get(stored.type)
    if (!type) throw new UnreadableEvent(stored, 'unknown event type')
    const metadata = metadataOf(stored)
    if (metadata.schema_version > type.version) {
      throw new UnreadableEvent(stored, `version ${metadata.schema_version} is newer than this release`)
    }
    const parsed = type.schema.safeParse(upcasted(type, metadata.schema_version, stored))
    if (!parsed.success) {
      const where = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.code}`).join(', ')
      throw new UnreadableEvent(stored, where)
    }
    const { data } = parsed
    if (remember) stored.writtenFrom = { by: this, text: stored.data, data, metadata }
    return { position, stream, revision, eventId, type: stored.type, data, metadata }
  }
}

/** A server that others write to as well holds anything. @throws UnreadableEvent */
function metadataOf(stored: StoredEvent): RecordedEvent['metadata'] {
  const metadata = json(stored, stored.metadata) as RecordedEvent['metadata'] | null
  if (!metadata || !Number.isSafeInteger(metadata.schema_version) || metadata.schema_version < 1) {
    throw new UnreadableEvent(stored, 'its metadata name no version')
  }
  const { tenant_id, environment, actor, correlation_id, causation_id, recorded_at } = metadata
  const { command_id, keyed_request, found_by, traceparent } = metadata
  const isWhole =
    (tenant_id === null || typeof tenant_id === 'string') &&
    (environment === null || environment === 'live' || environment === 'sandbox') &&
    typeof actor?.type === 'string' &&
    typeof actor.id === 'string' &&
    typeof correlation_id === 'string' &&
    typeof causation_id === 'string' &&
    (command_id === undefined || typeof command_id === 'string') &&
    (keyed_request === undefined || typeof keyed_request?.body_fingerprint === 'string') &&
    (found_by === undefined ||
      (Array.isArray(found_by) && found_by.every((one) => typeof one === 'string'))) &&
    (traceparent === undefined || typeof traceparent === 'string') &&
    !Number.isNaN(Date.parse(recorded_at))
  if (isWhole) return metadata
  throw new UnreadableEvent(stored, 'its metadata are not those of this service')
}

/** When an event was recorded, in milliseconds since the epoch; null when that cannot be read. */
export function recordedAt(stored: Pick<StoredEvent, 'metadata'>): number | null {
  try {
    const at = Date.parse((JSON.parse(stored.metadata) as Partial<EventMetadata> | null)?.recorded_at ?? '')
    return Number.isNaN(at) ? null : at
  } catch {
    return null
  }
}

/** The data in the shape of the current version. @throws UnreadableEvent */
function upcasted(type: EventType, version: number, stored: StoredEvent): unknown {
  const raw = json(stored, stored.data)
  try {
    return upcast(type, version, raw)
  } catch {
    throw new UnreadableEvent(stored, `it is not of version ${version}`)
  }
}

/** @throws UnreadableEvent, without the text. */
function json(stored: StoredEvent, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UnreadableEvent(stored, 'it is no JSON')
  }
}

/** The first 24 hex characters of a hash over a request's or command's id: ids that a retry finds again. */
export function derivedId(commandId: string, what: string): string {
  return hash('sha256', `${commandId}/${what}`, 'hex').slice(0, 24)
}
