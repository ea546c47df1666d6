import type pg from 'pg'
import { chainHash, withHash } from '../../../application/commands/hash-chain.ts'
import {
  type AppendResult,
  type EventToAppend,
  LOG_START,
  type StoredEvent,
} from '../../../application/ports/event-log.ts'
import { BinaryArray } from '../../database/binary-arrays.ts'
import type { StreamHead } from '../stream-heads.ts'

const BATCH_EVENTS = 1024
const BATCH_BYTES = 4 * 1024 * 1024

/** An append on its way. */
export interface Pending {
  readonly stream: string
  /** Of the stream's last event, -1 for a new stream. */
  readonly revision: number
  readonly events: readonly EventToAppend[]
  /** Of its events, one each. The same ones however often it is sent. */
  readonly ids: readonly string[]
  readonly bytes: number
  /** Its time is over: it is not sent any more. */
  isGivenUp: boolean
  /** Hash of the event at `revision`, where it was read; null: there was none. */
  predecessor: string | null | undefined
  /** Not at all; now, for the first time; or before, so that it may be stored although its place is taken. */
  sent: 'no' | 'once' | 'before'
  readonly resolve: (result: AppendResult) => void
  readonly reject: (error: Error) => void
}

/** An append that was stored. */
export interface Stored {
  readonly append: Pending
  readonly head: StreamHead
  /** Of its last event. */
  readonly position: bigint
}

/** What became of a batch. */
export interface BatchResult {
  /** Position of the log's last event before those of the batch. */
  readonly base: bigint
  readonly events: readonly StoredEvent[]
  readonly stored: readonly Stored[]
  /** To streams that are at another revision. */
  readonly conflicts: readonly Pending[]
}

/** Tells other processes how far the log reaches: `<position> <writer id>`. */
export const APPENDED_CHANNEL = 'event_log_appended'

/** Events for one call of the database's function, encoded as they are added. Those of a stream follow each other. */
export class EncodedEvents {
  readonly #expectedStreams = new BinaryArray('text')
  readonly #expectedRevisions = new BinaryArray('int4')
  readonly #streams = new BinaryArray('text')
  readonly #revisions = new BinaryArray('int4')
  readonly #ids = new BinaryArray('uuid')
  readonly #types = new BinaryArray('text')
  readonly #data = new BinaryArray('json')
  readonly #metadata = new BinaryArray('json')
  readonly #known = new Set<string>()

  add(event: Omit<StoredEvent, 'position'>): void {
    const { stream, revision } = event
    if (!this.#known.has(stream)) {
      this.#known.add(stream)
      this.#expectedStreams.addText(stream)
      this.#expectedRevisions.addInteger(revision - 1)
    }
    this.#streams.addText(stream)
    this.#revisions.addInteger(revision)
    this.#ids.addUuid(event.eventId)
    this.#types.addText(event.type)
    this.#data.addText(event.data)
    this.#metadata.addText(event.metadata)
  }

  /**
   * Stores them behind the log's last event, but for streams that are at another revision.
   * @param writer the name under which other processes are notified; null notifies none.
   * @returns the last position before them, and the streams that were refused.
   */
  async insert(
    client: pg.Client,
    writer: string | null,
  ): Promise<{ base: bigint; refused: ReadonlySet<string> }> {
    const { rows } = await client.query<{ base: string; refused: string[] }>({
      name: 'event_log/append',
      text: 'SELECT base, refused FROM event_log.append($1, $2, $3, $4, $5, $6, $7, $8, $9)',
      values: [
        this.#expectedStreams.encoded(),
        this.#expectedRevisions.encoded(),
        this.#streams.encoded(),
        this.#revisions.encoded(),
        this.#ids.encoded(),
        this.#types.encoded(),
        this.#data.encoded(),
        this.#metadata.encoded(),
        writer,
      ],
    })
    const { base, refused } = rows[0]!
    return { base: BigInt(base), refused: new Set(refused) }
  }
}

/** Appends that are sent together, each to a stream of its own. */
export class Batch {
  readonly #appends: { readonly append: Pending; readonly head: StreamHead }[] = []
  /** Their positions are known when they are stored. */
  readonly #events: (StoredEvent & { position: bigint })[] = []
  readonly #encoded = new EncodedEvents()
  #bytes = 0

  /** How many appends it has. */
  get size(): number {
    return this.#appends.length
  }

  get appends(): readonly Pending[] {
    return this.#appends.map(({ append }) => append)
  }

  /** Whether there is room for one more append; a batch takes at least one. */
  fits({ events, bytes }: Pending, mostEvents = BATCH_EVENTS): boolean {
    const count = this.#events.length
    return count === 0 || (count + events.length <= mostEvents && this.#bytes + bytes <= BATCH_BYTES)
  }

  /** Hashes and encodes an append. @param predecessor hash of the event before. */
  add(append: Pending, predecessor: string): void {
    const { stream, ids } = append
    let { revision } = append
    let hash = predecessor
    for (const [index, event] of append.events.entries()) {
      revision += 1
      const { type, data, writtenFrom } = event
      const eventId = ids[index]!
      hash = chainHash(hash, stream, revision, { eventId, type, data, metadata: event.metadata })
      const metadata = withHash(event.metadata, hash)
      const chained = { position: LOG_START, stream, revision, eventId, type, data, metadata }
      this.#encoded.add(chained)
      this.#events.push(writtenFrom === undefined ? chained : { ...chained, writtenFrom })
    }
    this.#appends.push({ append, head: { revision, hash } })
    this.#bytes += append.bytes
  }

  /** Stores it. @throws what the database says; then none of it is stored, or that is unknown. */
  async insert(client: pg.Client, writer: string | null): Promise<BatchResult> {
    const { base, refused } = await this.#encoded.insert(client, writer)
    const events: StoredEvent[] = []
    const stored: Stored[] = []
    const conflicts: Pending[] = []
    let position = base
    let first = 0
    for (const { append, head } of this.#appends) {
      const end = first + append.events.length
      if (!refused.has(append.stream)) {
        for (const event of this.#events.slice(first, end)) {
          position += 1n
          event.position = position
          events.push(event)
        }
        stored.push({ append, head, position })
      } else conflicts.push(append)
      first = end
    }
    return { base, events, stored, conflicts }
  }
}
