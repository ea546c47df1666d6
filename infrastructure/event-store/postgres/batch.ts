import type pg from 'pg'
import {
  type AppendResult,
  EventIdTaken,
  type EventToAppend,
  type ExpectedRevision,
  LOG_START,
  type StoredEvent,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'
import { chainHash, NO_PREDECESSOR, withHash } from '../../../application/ports/hash-chain.ts'
import { int4Array, textArray, uuidArray } from './binary-arrays.ts'
import type { EventPlace, StreamHead } from './event-queries.ts'
import { APPEND_LOCK } from './writer-session.ts'

/** The head of a stream without events. */
export const ABSENT: StreamHead = { revision: -1, hash: NO_PREDECESSOR, position: LOG_START }

/** An append on its way. */
export interface Pending {
  readonly stream: string
  readonly expected: ExpectedRevision
  readonly events: readonly EventToAppend[]
  readonly bytes: number
  /** On the clock of `performance.now()`. */
  readonly deadline: number
  readonly resolve: (result: AppendResult) => void
  readonly reject: (error: Error) => void
}

const BATCH_EVENTS = 1024
const BATCH_BYTES = 4 * 1024 * 1024

/** Appends that are written together, each decided in order on what the ones before it leave behind. */
export class Batch {
  /** Position of the log's last event before those of the batch. */
  readonly base: bigint
  readonly appends: Pending[] = []
  readonly stored: StoredEvent[] = []
  readonly #succeeded: { append: Pending; result: AppendResult }[] = []
  readonly #missed: { append: Pending; actual: number }[] = []
  readonly #failed: { append: Pending; error: Error }[] = []
  #bytes = 0

  constructor(base: bigint) {
    this.base = base
  }

  /** Position of the log's last event when the batch is written. */
  get head(): bigint {
    return this.stored.at(-1)?.position ?? this.base
  }

  /** Whether there is room for one more append; a batch takes at least one. */
  fits(append: Pending): boolean {
    return (
      this.appends.length === 0 ||
      (this.stored.length + append.events.length <= BATCH_EVENTS && this.#bytes + append.bytes <= BATCH_BYTES)
    )
  }

  /**
   * Decides an append.
   * @param head of its stream, after the appends before.
   * @param found where those of its events stand that exist; needed when {@link isLoose} only.
   * @returns the head of the stream after it.
   */
  add(append: Pending, head: StreamHead, found: ReadonlyMap<string, EventPlace>): StreamHead {
    const { stream, expected, events } = append
    this.appends.push(append)
    this.#bytes += append.bytes
    if (isLoose(expected) && events.some(({ eventId }) => found.has(eventId))) {
      const repetition = repetitionOf(append, found)
      const elsewhere = events.find(({ eventId }) => (found.get(eventId)?.stream ?? stream) !== stream)
      if (repetition) this.#succeeded.push({ append, result: repetition })
      else if (elsewhere) this.#failed.push({ append, error: idTaken(elsewhere.eventId, found) })
      else this.#missed.push({ append, actual: head.revision })
      return head
    }
    if (!holds(expected, head.revision)) {
      if (events.length > 0) this.#missed.push({ append, actual: head.revision })
      else this.#failed.push({ append, error: new WrongExpectedRevision(stream, expected, head.revision) })
      return head
    }
    if (head.hash === null && events.length > 0) {
      this.#failed.push({ append, error: new Error(`The last event of stream ${stream} carries no hash`) })
      return head
    }
    const after = events.length > 0 ? this.#store(stream, events, { ...head, hash: head.hash! }) : head
    const result = { revision: after.revision, position: after.position, repeated: false }
    this.#succeeded.push({ append, result })
    return after
  }

  /** Tells the outcome of everything that is settled by the commit. */
  settle(): void {
    for (const { append, result } of this.#succeeded) append.resolve(result)
    for (const { append, error } of this.#failed) append.reject(error)
  }

  /** Appends whose expectation failed; they may be repetitions of what is stored. */
  get missed(): readonly Pending[] {
    return this.#missed.map(({ append }) => append)
  }

  /** Tells the outcome of the missed ones. @param found where their events stand. */
  settleMissed(found: ReadonlyMap<string, EventPlace>): void {
    for (const { append, actual } of this.#missed) {
      const repetition = repetitionOf(append, found)
      if (repetition) append.resolve(repetition)
      else append.reject(new WrongExpectedRevision(append.stream, append.expected, actual))
    }
  }

  /** Inserts the events. */
  async insert(client: pg.Client): Promise<void> {
    if (this.stored.length > 0) await insertEvents(client, this.base, this.stored)
  }

  #store(
    stream: string,
    events: readonly EventToAppend[],
    head: StreamHead & { readonly hash: string },
  ): StreamHead {
    let { revision, hash } = head
    let position = this.head
    for (const event of events) {
      position += 1n
      revision += 1
      hash = chainHash(hash, stream, revision, event)
      const { eventId, type, data, writtenFrom } = event
      const metadata = withHash(event.metadata, hash)
      const stored = { position, stream, revision, eventId, type, data, metadata }
      this.stored.push(writtenFrom === undefined ? stored : { ...stored, writtenFrom })
    }
    return { revision, hash, position }
  }
}

/**
 * Inserts events behind a position: one statement, in which the append lock is taken first and held until the commit.
 */
export async function insertEvents(
  client: pg.Client,
  base: bigint,
  events: readonly StoredEvent[],
): Promise<void> {
  await client.query({
    name: 'event_log/insert',
    text: `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
           SELECT $1::bigint + n, revision, event_id, stream, type, data, metadata
             FROM pg_advisory_xact_lock(${APPEND_LOCK}),
                  unnest($2::int[], $3::uuid[], $4::text[], $5::text[], $6::json[], $7::json[])
                    WITH ORDINALITY AS event (revision, event_id, stream, type, data, metadata, n)`,
    values: [
      base,
      int4Array(events.map((event) => event.revision)),
      uuidArray(events.map((event) => event.eventId)),
      textArray(events.map((event) => event.stream)),
      textArray(events.map((event) => event.type)),
      textArray(
        events.map((event) => event.data),
        'json',
      ),
      textArray(
        events.map((event) => event.metadata),
        'json',
      ),
    ],
  })
}

/** How many of the first appends go into one batch, at least one. */
export function batchLength(appends: readonly Pending[]): number {
  let events = 0
  let bytes = 0
  for (const [index, append] of appends.entries()) {
    events += append.events.length
    bytes += append.bytes
    if (index > 0 && (events > BATCH_EVENTS || bytes > BATCH_BYTES)) return index
  }
  return appends.length
}

/** Such an expectation names no place, so a repetition is found by its ids before anything is decided. */
export function isLoose(expected: ExpectedRevision): boolean {
  return expected === 'any' || expected === 'exists'
}

/** The ids of the events of an append. */
export function idsOf(append: Pending): string[] {
  return append.events.map(({ eventId }) => eventId)
}

/** The error for an event id that stands somewhere else. */
export function idTaken(eventId: string, found: ReadonlyMap<string, EventPlace>): EventIdTaken {
  const { stream, revision } = found.get(eventId)!
  return new EventIdTaken(eventId, stream, revision)
}

function holds(expected: ExpectedRevision, revision: number): boolean {
  if (expected === 'any') return true
  if (expected === 'noStream') return revision === -1
  if (expected === 'exists') return revision >= 0
  return revision === expected.exactly
}

/** The first result when exactly these events stand where the append would have put them. */
function repetitionOf(append: Pending, found: ReadonlyMap<string, EventPlace>): AppendResult | null {
  const { expected, events, stream } = append
  const start = typeof expected === 'object' ? expected.exactly + 1 : expected === 'noStream' ? 0 : undefined
  const places = events.map(({ eventId }) => found.get(eventId))
  const first = start ?? places[0]?.revision
  if (first === undefined) return null
  const repeats = places.every((place, index) => place?.stream === stream && place.revision === first + index)
  const last = places.at(-1)
  return repeats && last ? { revision: last.revision, position: last.position, repeated: true } : null
}
