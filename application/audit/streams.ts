import { z } from 'zod'
import { aggregates } from '../../domain/catalogue.ts'
import { type Aggregate, parseStream } from '../../domain/kernel/decider.ts'
import type { EventType } from '../../domain/kernel/event-type.ts'
import { hiddenValues } from '../../domain/kernel/sealed.ts'
import type { Application } from '../commands/application.ts'
import { type Actor, type EventMetadata, type RecordedEvent, recordedAt } from '../commands/event-registry.ts'
import { eventsOf } from '../commands/events-of.ts'
import { MASK, masked, maskedState, opened } from '../commands/sealed-fields.ts'
import type { EventLog, StoredEvent } from '../ports/event-log.ts'
import { leafOf } from './leaf.ts'
import { leafHash } from './merkle.ts'

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
  /** Of the event as it is stored, in the tree over the log; base64. */
  readonly leaf_hash: string
}

type Displayed = Pick<StoredEvent, 'position' | 'stream' | 'revision' | 'eventId' | 'type'> &
  Pick<ShownEvent, 'data' | 'metadata' | 'version'> & { readonly schema: EventType['schema'] }

/** Which events to show: those that fit all that is given. */
export interface EventFilter {
  readonly type?: string
  readonly tenantId?: string
  readonly correlationId?: string
  /** Id or type of who caused it, or `type/id`. */
  readonly actor?: string
  /** The data subject of whom it holds something, or whose erasure it is: `person/<24 hex>`, `employer/<24 hex>`. */
  readonly subject?: string
  /** When it was recorded, epoch milliseconds, both included. */
  readonly fromTime?: number
  readonly toTime?: number
}

/** A stretch of events and where to go on, null at the end. */
export interface EventPage<Place = string | number> {
  readonly events: readonly ShownEvent[]
  readonly next: Place | null
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
/** How far the order of the log may be from that of the times in it, in milliseconds: clocks of processes differ. */
const CLOCKS_DIFFER = 10 * 60_000
/** Events that are not worth a search. */
const SEARCHED = 100n

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
): Promise<EventPage<number> | null> {
  if ((await app.log.readStream(stream, { maxCount: 1 })).length === 0) return null
  const taker = new Taker(options.limit, options.filter)
  for await (const event of eventsOf(app.log, stream, { from: options.from })) {
    if (!taker.take(event)) return shown(app, taker.events, event.revision, options.reveal)
  }
  return shown<number>(app, taker.events, null, options.reveal)
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
): Promise<EventPage<string> & { readonly read_to: string }> {
  const { filter } = options
  const taker = new Taker(options.limit, filter)
  const isOver = endOf(filter)
  let after = await startAt(app.log, options.after, filter.fromTime)
  let next: bigint | null = after
  for (let pages = 0; next !== null && pages < MOST_PAGES; pages += 1) {
    const page = await app.log.readAll({
      after,
      maxCount: READ_PAGE,
      ...(filter.type === undefined ? {} : { types: [filter.type] }),
    })
    let cut = false
    for (const event of page.events) {
      if (isOver(event))
        return { ...(await shown(app, taker.events, null, options.reveal)), read_to: String(after) }
      if (!taker.take(event)) {
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
  const page = await shown(app, taker.events, next === null ? null : String(next), options.reveal)
  return { ...page, read_to: String(after) }
}

/**
 * Where to begin for events from a time on: after a position, or after what is older for sure. Positions without gaps are
 * halved until the place is found; others cannot be, and everything is looked at.
 */
async function startAt(log: EventLog, after: bigint, fromTime: number | undefined): Promise<bigint> {
  if (fromTime === undefined || !log.isGapless) return after
  const isOlder = async (position: bigint) => {
    const [event] = (await log.readAll({ after: position, maxCount: 1 })).events
    const at = event ? recordedAt(event) : null
    return at !== null && at < fromTime - CLOCKS_DIFFER
  }
  let low = after
  let high = await log.head()
  while (high - low > SEARCHED) {
    const middle = (low + high) / 2n
    if (await isOlder(middle)) low = middle
    else high = middle
  }
  return low
}

/** Events in a row that were recorded after what is asked for, until nothing that follows is looked at: a clock may be wrong. */
const LATE_IN_A_ROW = 100

/** Tells when all that follows in the log was recorded after what is asked for; it is to be asked of each event in order. */
export function endOf({ toTime }: Pick<EventFilter, 'toTime'>): (event: StoredEvent) => boolean {
  let late = 0
  return (event) => {
    const at = toTime === undefined ? null : recordedAt(event)
    late = at !== null && at > toTime! + CLOCKS_DIFFER ? late + 1 : 0
    return late > LATE_IN_A_ROW
  }
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
  take(event: StoredEvent): boolean {
    if (this.isFull()) return false
    this.#scanned += 1
    if (!fits(event, this.#filter)) return true
    this.events.push(event)
    this.#bytes += event.data.length
    return true
  }
}

/** Whether an event is one of those that are asked for. */
export function fits(event: StoredEvent, filter: EventFilter): boolean {
  const { type, tenantId, correlationId, actor, subject, fromTime, toTime } = filter
  if (type !== undefined && event.type !== type) return false
  // sealed values name their subject, as does what tells of a subject itself
  if (subject !== undefined && !['.', '"'].some((end) => event.data.includes(`${subject}${end}`)))
    return false
  const metadata = foreignMetadata(event)
  if (tenantId !== undefined && metadata.tenant_id !== tenantId) return false
  if (correlationId !== undefined && metadata.correlation_id !== correlationId) return false
  if (actor !== undefined && !isBy(metadata.actor, actor)) return false
  const at = Date.parse(metadata.recorded_at ?? '')
  if (fromTime !== undefined && !(at >= fromTime)) return false
  return toTime === undefined || at <= toTime
}

/** Another program's event may name anything as its actor. */
function isBy(actor: Partial<Actor> | undefined, named: string): boolean {
  const { type, id } = actor ?? {}
  return named === id || named === type || named === `${type}/${id}`
}

/** Events for display, sensitive values masked or opened. */
export async function shown<Place>(
  app: Application,
  stored: readonly StoredEvent[],
  next: Place | null,
  reveal: boolean,
): Promise<EventPage<Place>> {
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
      leaf_hash: leafHash(leafOf(stored[index]!)).toString('base64'),
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

/** A point in a stream, by default now: all that is given holds, each included. */
export interface Point {
  readonly revision?: number
  /** Place in the log. */
  readonly position?: bigint
  /** Time, epoch milliseconds. */
  readonly asOf?: number
}

/** What a stream comes to at a point. */
export interface Folded {
  readonly last: RecordedEvent
  /** With sensitive values: what leaves the service goes through {@link maskedState}. */
  readonly state: unknown
  /** The sensitive values of the events that count. */
  readonly sensitive: ReadonlySet<unknown>
  /** Not all events that count were read: they are too large together. */
  readonly isCut: boolean
}

/**
 * Folds a stream up to a point.
 * @param options.mostBytes of events that are read.
 * @returns null when the stream is unknown or empty at that point.
 * @throws UnreadableEvent when an event up to there does not fit its type.
 */
export async function foldedAt(
  app: Application,
  stream: string,
  { revision, position, asOf }: Point,
  { mostBytes = Number.POSITIVE_INFINITY } = {},
): Promise<Folded | null> {
  const aggregate = byCategory.get(parseStream(stream).category)
  if (!aggregate) return null
  let state = aggregate.initialState
  let last: RecordedEvent | null = null
  let bytes = 0
  const sensitive = new Set<unknown>()
  for await (const stored of eventsOf(app.log, stream)) {
    if (position !== undefined && stored.position > position) break
    const event = app.registry.decode(stored)
    if (revision !== undefined && event.revision > revision) break
    if (asOf !== undefined && Date.parse(event.metadata.recorded_at) > asOf) break
    bytes += stored.data.length
    if (last !== null && bytes > mostBytes) return { last, state, sensitive, isCut: true }
    state = aggregate.evolve(state, event)
    for (const { value } of hiddenValues(typeOf(app, event).schema, event.data)) sensitive.add(value)
    last = event
  }
  return last && { last, state, sensitive, isCut: false }
}

/** The state of a stream at a point, sensitive values masked. @see foldedAt */
export async function stateAt(app: Application, stream: string, point: Point): Promise<StateAt | null> {
  const folded = await foldedAt(app, stream, point)
  if (folded === null) return null
  const { last, state, sensitive } = folded
  const { revision, metadata } = last
  return { stream, revision, recorded_at: metadata.recorded_at, state: maskedState(state, sensitive) }
}
