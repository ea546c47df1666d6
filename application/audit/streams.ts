import { z } from 'zod'
import { aggregates } from '../../domain/catalogue.ts'
import { type Aggregate, parseStream } from '../../domain/kernel/decider.ts'
import type { EventType } from '../../domain/kernel/event-type.ts'
import { hiddenValues } from '../../domain/kernel/sealed.ts'
import type { Application } from '../commands/application.ts'
import type { EventMetadata, RecordedEvent } from '../commands/event-registry.ts'
import { eventsOf } from '../commands/events-of.ts'
import { MASK, masked, maskedState, opened } from '../commands/sealed-fields.ts'
import type { StoredEvent } from '../ports/event-log.ts'

/** An event as operators and auditors see it. */
export interface ShownEvent {
  /** Place in the log's total order, as a decimal string. */
  readonly position: string
  readonly stream: string
  readonly revision: number
  readonly event_id: string
  readonly type: string
  /** Schema version of the data as shown: the type's current one. Null: another program's event names none. */
  readonly version: number | null
  /** Null: another program's event names no time. */
  readonly recorded_at: string | null
  /** Masked as a whole where the event does not fit its type. */
  readonly data: unknown
  readonly metadata: Partial<EventMetadata & { readonly hash: string }>
}

type Displayed = Pick<StoredEvent, 'position' | 'stream' | 'revision' | 'eventId' | 'type'> &
  Pick<ShownEvent, 'data' | 'metadata' | 'version'> & { readonly schema: EventType['schema'] }

/** Which events to show. */
export interface EventFilter {
  readonly type?: string
  readonly tenantId?: string
  readonly correlationId?: string
}

/** A stretch of events and where to go on, null at the end. */
export interface EventPage {
  readonly events: readonly ShownEvent[]
  readonly next: string | number | null
  /** How many sealed values were opened. */
  readonly revealed: number
}

/** Events read from the log at once. */
const READ_PAGE = 100
/** Events looked at for one answer; with a filter, an answer may be empty and still have a `next`. */
const MAX_SCANNED = 5_000
/** Pages looked at for one answer: of a rare type most are empty. */
const MOST_PAGES = 100
/** JSON bytes of data in one answer, about. */
const MAX_BYTES = 8 * 1024 * 1024

/**
 * Events of one stream in order.
 * @param options.from first revision.
 * @returns null when there is no such stream.
 */
export async function readStreamEvents(
  app: Application,
  stream: string,
  options: {
    readonly from: number
    readonly limit: number
    readonly filter: EventFilter
    readonly reveal: boolean
  },
): Promise<EventPage | null> {
  if ((await app.log.readStream(stream, { maxCount: 1 })).length === 0) return null
  const taker = new Taker(options.limit, options.filter)
  for await (const event of eventsOf(app.log, stream, { from: options.from })) {
    if (!taker.take(app, event)) return shown(app, taker.events, event.revision, options.reveal)
  }
  return shown(app, taker.events, null, options.reveal)
}

/**
 * Events of the whole log in order.
 * @param options.after position to go on after; the start of the log is 0.
 */
export async function readLogEvents(
  app: Application,
  options: {
    readonly after: bigint
    readonly limit: number
    readonly filter: EventFilter
    readonly reveal: boolean
  },
): Promise<EventPage> {
  const { filter } = options
  const taker = new Taker(options.limit, filter)
  let after = options.after
  let next: bigint | null = after
  for (let pages = 0; next !== null && pages < MOST_PAGES; pages += 1) {
    const page = await app.log.readAll({
      after,
      maxCount: READ_PAGE,
      ...(filter.type === undefined ? {} : { types: [filter.type] }),
    })
    let cut = false
    for (const event of page.events) {
      if (!taker.take(app, event)) {
        cut = true
        break
      }
      after = event.position
    }
    if (!cut) after = page.checkpoint
    next = !cut && page.atHead ? null : after
    if (cut || taker.isFull()) break
  }
  if (next !== null && next >= (await app.log.head())) next = null
  return shown(app, taker.events, next === null ? null : String(next), options.reveal)
}

/** Picks events until an answer is full. */
class Taker {
  readonly events: StoredEvent[] = []
  readonly #limit: number
  readonly #filter: EventFilter
  #scanned = 0
  #bytes = 0

  constructor(limit: number, filter: EventFilter) {
    this.#limit = limit
    this.#filter = filter
  }

  isFull(): boolean {
    return this.events.length >= this.#limit || this.#scanned >= MAX_SCANNED || this.#bytes >= MAX_BYTES
  }

  /** Looks at an event. @returns false when the answer is full and the event was not looked at. */
  take(app: Application, event: StoredEvent): boolean {
    if (this.isFull()) return false
    this.#scanned += 1
    const { type, tenantId, correlationId } = this.#filter
    if (type !== undefined && event.type !== type) return true
    if (tenantId !== undefined || correlationId !== undefined) {
      const { metadata } = readable(app, event)
      if (tenantId !== undefined && metadata.tenant_id !== tenantId) return true
      if (correlationId !== undefined && metadata.correlation_id !== correlationId) return true
    }
    this.events.push(event)
    this.#bytes += event.data.length
    return true
  }
}

async function shown(
  app: Application,
  stored: readonly StoredEvent[],
  next: string | number | null,
  reveal: boolean,
): Promise<EventPage> {
  const events = stored.map((event) => readable(app, event))
  const { data, revealed } = reveal
    ? await opened(app.personalData, events)
    : { data: events.map(masked), revealed: 0 }
  return {
    events: events.map((event, index) => ({
      position: String(event.position),
      stream: event.stream,
      revision: event.revision,
      event_id: event.eventId,
      type: event.type,
      version: event.version,
      recorded_at: recordedAtOf(event.metadata),
      data: data[index],
      metadata: event.metadata,
    })),
    next,
    revealed,
  }
}

function recordedAtOf({ recorded_at }: Displayed['metadata']): string | null {
  return typeof recorded_at === 'string' ? recorded_at : null
}

/** An event for display: one that does not fit its type is shown without its data, never skipped. */
function readable(app: Application, stored: StoredEvent): Displayed {
  try {
    const event = app.registry.decode(stored)
    const { schema, version } = typeOf(app, event)
    return { ...event, schema, version }
  } catch {
    const metadata = foreignMetadata(stored)
    const { schema_version: version } = metadata
    return {
      ...stored,
      data: MASK,
      metadata,
      schema: z.unknown(),
      version: typeof version === 'number' ? version : null,
    }
  }
}

/** The type of an event that was decoded. */
function typeOf({ registry }: Pick<Application, 'registry'>, { type }: RecordedEvent): EventType {
  return registry.types.find(({ name }) => name === type)!
}

/** What another program wrote beside an event; nothing when it is no JSON object. */
function foreignMetadata(stored: StoredEvent): Displayed['metadata'] {
  try {
    const metadata: unknown = JSON.parse(stored.metadata)
    return typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata) ? metadata : {}
  } catch {
    return {}
  }
}

/** The folded state of a stream at a point. */
export interface StateAt {
  readonly stream: string
  readonly revision: number
  /** Time of the last event that counts. */
  readonly recorded_at: string
  readonly state: unknown
}

const byCategory: ReadonlyMap<string, Aggregate> = new Map(aggregates.map((one) => [one.category, one]))

/**
 * The state of a stream as of a revision (inclusive) or a time (inclusive, ISO 8601), by default now.
 * Sensitive values are masked.
 * @returns null when the stream is unknown or empty at that point.
 * @throws UnreadableEvent when an event up to there does not fit its type.
 */
export async function stateAt(
  app: Application,
  stream: string,
  point: { readonly revision?: number; readonly asOf?: number },
): Promise<StateAt | null> {
  const aggregate = byCategory.get(parseStream(stream).category)
  if (!aggregate) return null
  let state = aggregate.initialState
  let last: RecordedEvent | null = null
  const sensitive = new Set<unknown>()
  for await (const stored of eventsOf(app.log, stream)) {
    const event = app.registry.decode(stored)
    if (point.revision !== undefined && event.revision > point.revision) break
    if (point.asOf !== undefined && Date.parse(event.metadata.recorded_at) > point.asOf) break
    state = aggregate.evolve(state, event)
    for (const { value } of hiddenValues(typeOf(app, event).schema, event.data)) sensitive.add(value)
    last = event
  }
  if (last === null) return null
  return {
    stream,
    revision: last.revision,
    recorded_at: last.metadata.recorded_at,
    state: maskedState(state, sensitive),
  }
}
