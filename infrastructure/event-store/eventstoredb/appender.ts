import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { WrongExpectedVersionError } from '@eventstore/db-client'
import {
  chainHash,
  hashOf,
  NO_PREDECESSOR,
  splitHash,
  withHash,
} from '../../../application/commands/hash-chain.ts'
import { Turns } from '../../../application/commands/turns.ts'
import {
  type AppendResult,
  type EventToAppend,
  type StoredEvent,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'
import { retryPause } from '../retry.ts'
import { recentHeads } from '../stream-heads.ts'
import type { Appends } from './appends.ts'
import { EventStoreUnavailable, passes, StreamTampered } from './errors.ts'
import type { LogReader } from './log-reader.ts'
import { eventToSend, valuesOf } from './stored-texts.ts'

/** Between two looks for what an append is in conflict with; the first ones follow soon. */
const LONGEST_LOOK_PAUSE_MS = 100

interface Pending {
  readonly stream: string
  readonly revision: number
  readonly events: readonly EventToAppend[]
  readonly values: readonly ReturnType<typeof valuesOf>[]
  readonly bytes: number
  /** Its time is over: it is not sent any more. */
  isGivenUp: boolean
}

/**
 * Appends at explicit revisions and sends the same append again until its outcome is known: its random ids tell it from
 * every other one. Appends to one stream go one after the other, those to different streams at once.
 */
export class Appender {
  readonly #appends: Appends
  readonly #reader: LogReader
  readonly #onSend: (eventId: string, event: EventToAppend, metadata: string) => void
  readonly #patienceMs: number
  readonly #heads = recentHeads()
  readonly #turns = new Turns()
  #closed = false

  /** @param parts.onSend hears of each event before it is sent, and the metadata that it is stored with. */
  constructor(parts: {
    appends: Appends
    reader: LogReader
    onSend: (eventId: string, event: EventToAppend, metadata: string) => void
    patienceMs: number
  }) {
    this.#appends = parts.appends
    this.#reader = parts.reader
    this.#onSend = parts.onSend
    this.#patienceMs = parts.patienceMs
  }

  /** @param bytes of all data and metadata. @throws WrongExpectedRevision, EventStoreUnavailable (outcome unknown). */
  async append(
    stream: string,
    revision: number,
    events: readonly EventToAppend[],
    bytes: number,
  ): Promise<AppendResult> {
    const values = events.map(valuesOf)
    if (this.#closed) throw this.#unavailable('the event log is closed')
    const pending = { stream, revision, events, values, bytes, isGivenUp: false }
    return new Promise((resolve, reject) => {
      // whatever the server and the appends before it do; what goes on may still be stored
      const timer = setTimeout(() => {
        pending.isGivenUp = true
        reject(this.#unavailable('no answer to an append, its outcome is unknown'))
      }, this.#patienceMs)
      this.#turns
        .run(stream, () => this.#append(pending))
        .finally(() => clearTimeout(timer))
        .then(resolve, reject)
    })
  }

  /** Takes note of the last event of a stream, as far as it was read. */
  learn({ stream, revision, metadata }: StoredEvent): void {
    if (revision < (this.#heads.get(stream)?.revision ?? -1) || !splitHash(metadata)) return
    this.#heads.set(stream, { revision, hash: hashOf(metadata) })
  }

  /** Takes no more appends and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#turns.idle()
  }

  async #append(pending: Pending): Promise<AppendResult> {
    const { stream, revision, events, values, bytes } = pending
    // it may have waited long behind others of its stream; nothing of it was sent
    if (this.#closed) throw this.#unavailable('the event log is closed')
    if (pending.isGivenUp) throw this.#unavailable('no answer to appends of the same stream')
    let hash = await this.#predecessor(stream, revision)
    let lastId = ''
    const sent = events.map((event, n) => {
      const eventId = randomUUID()
      lastId = eventId
      hash = chainHash(hash, stream, revision + 1 + n, { ...event, eventId })
      this.#onSend(eventId, event, withHash(event.metadata, hash))
      return eventToSend(eventId, event.type, values[n]!.data, { ...values[n]!.metadata, hash })
    })
    const append = { stream, revision, events: sent, bytes, isGivenUp: () => pending.isGivenUp }
    for (let attempt = 0; ; attempt += 1) {
      try {
        const { position } = await this.#appends.append(append)
        const at = position ?? (await this.#positionOf(pending, lastId))
        return this.#stored(pending, hash, { position: at, eventId: lastId })
      } catch (error) {
        if (error instanceof WrongExpectedVersionError) {
          await this.#untilMoved(pending)
          if (attempt === 0) throw new WrongExpectedRevision(stream, revision)
          const at = await this.#positionOf(pending, lastId)
          return this.#stored(pending, hash, { position: at, eventId: lastId })
        }
        if (!passes(error) || pending.isGivenUp) throw error
        await retryPause(attempt)
      }
    }
  }

  /** Hash of the event that an append is to stand behind. @throws WrongExpectedRevision when that is not the last one. */
  async #predecessor(stream: string, revision: number): Promise<string> {
    const known = this.#heads.get(stream)
    if (known && known.revision > revision) throw new WrongExpectedRevision(stream, revision)
    if (revision < 0) return NO_PREDECESSOR
    if (known?.revision === revision) return known.hash
    const last = await this.#reader.last(stream)
    if (last?.revision !== revision) throw new WrongExpectedRevision(stream, revision)
    if (!splitHash(last.metadata)) throw new StreamTampered(stream, `revision ${revision} carries no hash`)
    this.learn(last)
    return hashOf(last.metadata)
  }

  /**
   * The server refuses an append for another one that is on its way still: a caller that gets a conflict finds what it is
   * with.
   */
  async #untilMoved(pending: Pending): Promise<void> {
    for (let look = 0; !pending.isGivenUp; look += 1) {
      const last = await this.#reader.last(pending.stream)
      if ((last?.revision ?? -1) !== pending.revision) return
      await delay(Math.min(2 ** look, LONGEST_LOOK_PAUSE_MS))
    }
  }

  /** Where an append stands that was sent more than once. @throws WrongExpectedRevision when another stands there. */
  async #positionOf({ stream, revision, events }: Pending, lastId: string): Promise<bigint> {
    const [there] = await this.#reader.stream(stream, { from: revision + events.length, maxCount: 1 })
    if (there?.eventId !== lastId) throw new WrongExpectedRevision(stream, revision)
    return there.position
  }

  #stored({ stream, revision, events }: Pending, hash: string, last: AppendResult): AppendResult {
    this.#heads.set(stream, { revision: revision + events.length, hash })
    return last
  }

  #unavailable(why: string): EventStoreUnavailable {
    return new EventStoreUnavailable(this.#appends.target, why)
  }
}
