import { randomUUID } from 'node:crypto'
import { NO_PREDECESSOR } from '../../../application/commands/hash-chain.ts'
import { Turns } from '../../../application/commands/turns.ts'
import {
  type AppendResult,
  type EventPlace,
  type EventToAppend,
  type StoredEvent,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'
import {
  type DatabaseLog,
  DatabaseUnavailable,
  isConnectionLoss,
  oneLine,
  orUnavailable,
} from '../../database/connection.ts'
import { Gathered } from '../../gathered.ts'
import { retried, retryPause } from '../retry.ts'
import { recentHeads } from '../stream-heads.ts'
import { Batch, type BatchResult, type Pending } from './batch.ts'
import { type ChainLink, type Queryable, readLinks } from './event-queries.ts'
import type { WriterSession } from './writer-session.ts'

/** From so many events on, what is ready is sent in two halves: one is prepared while the other is on its way. */
const WORTH_HALVING = 64
const UNIQUE_VIOLATION = '23505'

/** What hears of appends that are stored. */
interface AppendListener {
  /** A batch of this process, in order: the position before its first event, its events, the real milliseconds it took. */
  committed(base: bigint, events: readonly StoredEvent[], ms: number): void
  /** An append whose answer was lost is found at this position. */
  found(position: bigint): void
}

/**
 * Writes appends by group commit: one batch is on its way at a time, and what arrives meanwhile is hashed and encoded
 * for the next one. The appends of a batch are to different streams and succeed or fail each for itself.
 *
 * The hash of an event stands for ever, so an append can be prepared on any predecessor that was read or stored once;
 * the database proves that the predecessor is still the last one, whatever else is written.
 */
export class Appender {
  readonly #session: WriterSession
  readonly #readers: Queryable
  readonly #patienceMs: number
  readonly #listener: AppendListener
  readonly #log: DatabaseLog
  readonly #links = new Gathered((places: readonly EventPlace[]) => this.#readLinks(places))
  /** To be put into a batch, in order. */
  #ready: Pending[] = []
  /** Being prepared while another one is on its way. */
  #next = new Batch()
  readonly #heads = recentHeads()
  /** Appends in a batch at the most: fewer while one is looked for that the database refuses. */
  #mostAppends = Number.POSITIVE_INFINITY
  /** Appends to one stream, in their order. */
  readonly #turns = new Turns()
  #isScheduled = false
  #writing = false
  #closed = false
  /** The appender lost its connection after it was closed: nothing is sent any more. */
  #isOver = false

  /**
   * @param parts.readers for look-ups beside the writer's connection.
   * @param parts.patienceMs how long an append waits for its turn, for an answer and for the database to come back.
   */
  constructor(parts: {
    session: WriterSession
    readers: Queryable
    patienceMs: number
    listener: AppendListener
    log: DatabaseLog
  }) {
    this.#session = parts.session
    this.#readers = parts.readers
    this.#patienceMs = parts.patienceMs
    this.#listener = parts.listener
    this.#log = parts.log
  }

  /**
   * @param revision of the stream's last event, -1 for a new stream.
   * @param bytes size of data and metadata.
   * @throws WrongExpectedRevision, or DatabaseUnavailable when it was not sent in its time or its outcome is unknown.
   */
  append(
    stream: string,
    revision: number,
    events: readonly EventToAppend[],
    bytes: number,
  ): Promise<AppendResult> {
    if (this.#closed) return Promise.reject(unavailable('it is closed'))
    let end: Pick<Pending, 'resolve' | 'reject'> | undefined
    const stored = new Promise<AppendResult>((resolve, reject) => {
      end = { resolve, reject }
    })
    const append: Pending = {
      stream,
      revision,
      events,
      bytes,
      ids: events.map(() => randomUUID()),
      predecessor: undefined,
      isGivenUp: false,
      sent: 'no',
      resolve: end!.resolve,
      reject: end!.reject,
    }
    const turn = this.#turns.run(stream, () => {
      this.#enqueue(append)
      return stored
    })
    return new Promise((settle, fail) => {
      // whatever becomes of the connection, and of what stands before it
      const timer = setTimeout(() => fail(this.#giveUp(append)), this.#patienceMs)
      turn.finally(() => clearTimeout(timer)).then(settle, fail)
    })
  }

  /** Takes no more appends and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#turns.idle()
  }

  /** Its time is over. @returns what its callers hear. */
  #giveUp(append: Pending): Error {
    append.isGivenUp = true
    if (append.sent === 'no') return notSent()
    this.#session.inDoubt = true
    return unavailable('no answer to an append, its outcome is unknown')
  }

  #enqueue(append: Pending): void {
    if (this.#isOver) {
      append.reject(unavailable('it is closed, outcome of an append unknown'))
      return
    }
    this.#ready.push(append)
    this.#prepareSoon()
  }

  /** Everything that arrives in this turn of the event loop goes together. */
  #prepareSoon(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#writing) this.#prepare()
      else void this.#write()
    })
  }

  /** Lines an append up again when its predecessor is read. */
  #readPredecessor(append: Pending): void {
    void this.#lookFor(append, append.revision, (link) => {
      if (link?.hash === null) {
        append.reject(new Error(`The last event of stream ${append.stream} carries no hash`))
        return
      }
      append.predecessor = link?.hash ?? null
      this.#enqueue(append)
    })
  }

  /** Tells what stands at a revision of an append's stream; rejects the append when nobody answers in its time. */
  async #lookFor(
    append: Pending,
    revision: number,
    found: (link: ChainLink | undefined) => void,
  ): Promise<void> {
    const { stream } = append
    const mayPass = (error: unknown) => isConnectionLoss(error) && !append.isGivenUp && !this.#closed
    try {
      const links = await retried(() => this.#links.ask({ stream, revision }), {
        mayPass,
        patienceMs: this.#patienceMs,
        signal: this.#session.closing,
      })
      found(links.get(`${revision}@${stream}`))
    } catch (error) {
      append.reject(explain(error, append))
    }
  }

  async #readLinks(places: readonly EventPlace[]): Promise<ReadonlyMap<string, ChainLink | undefined>> {
    const links = await readLinks(this.#readers, places)
    return new Map(places.map(({ stream, revision }, n) => [`${revision}@${stream}`, links[n]]))
  }

  async #write(): Promise<void> {
    this.#writing = true
    let flight = this.#launch()
    for (let failures = 0; flight; ) {
      const { batch, sentAt, outcome }: Flight = flight
      // an answer that was given up will not come on this connection
      const limit = setTimeout(() => this.#session.cut(), this.#patienceMs)
      const result = await outcome
      clearTimeout(limit)
      if (!result) {
        this.#putBack(...batch.appends)
        flight = this.#launch()
        continue
      }
      if (result instanceof Error) {
        failures += 1
        this.#takeBack(batch, result)
        if (isConnectionLoss(result) || isTaken(result)) await retryPause(failures, this.#session.closing)
        flight = this.#launch()
        continue
      }
      failures = 0
      const ms = performance.now() - sentAt
      this.#mostAppends = Number.POSITIVE_INFINITY
      for (const { append, head } of result.stored) this.#heads.set(append.stream, head)
      for (const { stream } of result.conflicts) this.#heads.delete(stream)
      // on its way before the callers of this one go on
      flight = this.#launch()
      if (result.events.length > 0) this.#notify((to) => to.committed(result.base, result.events, ms))
      for (const { append, position } of result.stored)
        append.resolve({ position, eventId: append.ids.at(-1)! })
      for (const append of result.conflicts) this.#refuse(append)
    }
    this.#writing = false
  }

  /** Sends the next batch, and prepares the one after it. */
  #launch(): Flight | undefined {
    // what was given up must not be stored behind its sender's back
    if (this.#next.appends.some(({ isGivenUp }) => isGivenUp)) this.#putBack()
    const ready = this.#ready.reduce((sum, { events }) => sum + events.length, 0)
    const isHalved = this.#next.size === 0 && ready >= WORTH_HALVING
    this.#prepare(isHalved ? Math.ceil(ready / 2) : undefined)
    const batch = this.#next
    if (batch.size === 0) return undefined
    this.#next = new Batch()
    const sentAt = performance.now()
    const outcome = this.#send(batch).catch((error: Error) => error)
    // hashing and encoding take their time: the request leaves first
    this.#prepareSoon()
    return { batch, sentAt, outcome }
  }

  /** @returns undefined, with nothing sent, when an append of it was given up while there was no connection. */
  async #send(batch: Batch): Promise<BatchResult | undefined> {
    const client = this.#session.connected ?? (await this.#session.client())
    if (batch.appends.some(({ isGivenUp }) => isGivenUp)) return undefined
    for (const append of batch.appends) if (append.sent === 'no') append.sent = 'once'
    // without other writers there are no listeners
    const writer = this.#session.isExclusive ? null : this.#session.id
    return batch.insert(client, writer)
  }

  /** Puts what is ready into the next batch. @param mostEvents how many it takes, the batch's own limit where not given. */
  #prepare(mostEvents?: number): void {
    const ready = this.#ready
    let index = 0
    for (; index < ready.length; index += 1) {
      const append = ready[index]!
      if (append.isGivenUp) {
        append.reject(notSent())
        continue
      }
      if (!this.#next.fits(append, mostEvents) || this.#next.size >= this.#mostAppends) break
      const predecessor = this.#predecessorOf(append)
      if (predecessor === undefined) this.#readPredecessor(append)
      else if (predecessor === null) this.#refuse(append)
      else this.#next.add(append, predecessor)
    }
    this.#ready = ready.slice(index)
  }

  /** Hash of the event that an append follows; null: its stream has gone on, or does not reach there. */
  #predecessorOf({ stream, revision, predecessor }: Pending): string | null | undefined {
    const head = this.#heads.get(stream)
    if (head && head.revision >= revision) return head.revision === revision ? head.hash : null
    return revision < 0 ? NO_PREDECESSOR : predecessor
  }

  /** Has the appends of a batch that failed sent again where that may help, and tells the others why not. */
  #takeBack({ appends }: Batch, error: Error): void {
    const isLost = isConnectionLoss(error)
    for (const append of appends) {
      if (append.sent === 'once') append.sent = isLost ? 'before' : 'no'
    }
    if (isLost && this.#closed) {
      this.#isOver = true
      this.#putBack(...appends)
      for (const append of this.#ready.splice(0)) this.#enqueue(append)
    } else if (isLost || isTaken(error)) {
      this.#putBack(...appends)
    } else if (isDataError(error) && appends.length > 1) {
      // one of them cannot be stored; the others must not suffer
      this.#mostAppends = Math.ceil(appends.length / 2)
      this.#putBack(...appends)
    } else {
      for (const append of appends) append.reject(explain(error, append))
    }
  }

  /** Has appends prepared again, and before what is prepared already. */
  #putBack(...appends: readonly Pending[]): void {
    this.#ready.unshift(...appends, ...this.#next.appends)
    this.#next = new Batch()
  }

  /** Its place is taken: by itself, where it was sent before and its own event stands there. */
  #refuse(append: Pending): void {
    const { stream, revision, events, ids } = append
    const conflict = new WrongExpectedRevision(stream, revision)
    if (append.sent !== 'before') {
      append.reject(conflict)
      return
    }
    void this.#lookFor(append, revision + events.length, (link) => {
      if (link?.eventId !== ids.at(-1)) {
        append.reject(conflict)
        return
      }
      this.#notify((to) => to.found(link!.position))
      append.resolve({ position: link!.position, eventId: link!.eventId })
    })
  }

  /** The append is stored, whatever the listener makes of it. */
  #notify(notify: (listener: AppendListener) => void): void {
    try {
      notify(this.#listener)
    } catch (error) {
      this.#log.warn({ reason: oneLine(error) }, 'a listener of the event log failed')
    }
  }
}

/** A batch on its way. */
interface Flight {
  readonly batch: Batch
  /** On the clock of `performance.now()`. */
  readonly sentAt: number
  /** What became of it, or why it failed; undefined: it was not sent. */
  readonly outcome: Promise<BatchResult | Error | undefined>
}

/** A writer that does not take the lock was faster. */
function isTaken(error: unknown): boolean {
  return (error as { code?: string }).code === UNIQUE_VIOLATION
}

/** An error that lies in what is stored (data exception, constraint, limit), not in the server's condition. */
function isDataError(error: unknown): boolean {
  return /^(22|23|54)/.test((error as { code?: string }).code ?? '')
}

function notSent(): DatabaseUnavailable {
  return unavailable('no turn for an append in its time, it was not sent')
}

function unavailable(why: string): DatabaseUnavailable {
  return new DatabaseUnavailable('the event log', why)
}

/** The error of an append that cannot be stored, without the values that PostgreSQL's own errors quote. */
function explain(error: unknown, append: Pending): Error {
  const { code } = error as { code?: string }
  const told = orUnavailable('the event log', error)
  if (told instanceof DatabaseUnavailable) return told
  if (code === undefined) return error as Error
  return new Error(`The event log refused an append to ${append.stream}: ${oneLine(error)} (${code})`)
}
