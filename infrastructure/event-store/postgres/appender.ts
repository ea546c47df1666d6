import type pg from 'pg'
import { RecentlyUsed } from '../../../application/command-handling/recently-used.ts'
import type {
  AppendResult,
  EventToAppend,
  ExpectedRevision,
  StoredEvent,
} from '../../../application/ports/event-log.ts'
import { DatabaseUnavailable, isConnectionLoss, oneLine, orUnavailable } from '../../database/connection.ts'
import { ABSENT, Batch, batchLength, idsOf, idTaken, isLoose, type Pending } from './batch.ts'
import {
  type EventPlace,
  findEvents,
  type Queryable,
  readHead,
  readStreamHeads,
  type StreamHead,
} from './event-queries.ts'
import { APPEND_LOCK, type WriterSession } from './writer-session.ts'

/** Tells other processes how far the log reaches: `<position> <writer id>`. */
export const APPENDED_CHANNEL = 'event_log_appended'

const CACHED_HEADS = 50_000
/** Appends that may be ready beyond the batch that is being written. */
const READY_LIMIT = 2_048
/** From so many appends on, what arrived at once is written in two halves: one is prepared while the other commits. */
const WORTH_HALVING = 64
const MISPLACED_RETRIES = 5
const INTRUDER = 'somebody else appends, whatever the lock says'

/** Hears of a commit: the position before its first event, its events, the real milliseconds it took. */
type Committed = (base: bigint, events: readonly StoredEvent[], ms: number) => void

const NOTHING_FOUND: ReadonlyMap<string, EventPlace> = new Map()

/**
 * Writes appends by group commit: while one batch is being committed the next one collects, and each batch is one
 * transaction. The appends of a batch succeed or fail each for itself; those to one stream see each other in order.
 *
 * Positions are assigned under the append lock, which is held until the commit, so that they become visible in order
 * and without gaps. A sole writer knows the heads of the log and of its streams beforehand: it prepares the next batch
 * during the commit and needs one statement. With several writers the heads are read under the lock.
 */
export class Appender {
  readonly #session: WriterSession
  readonly #readers: Queryable
  readonly #patienceMs: number
  readonly #committed: Committed
  /** Arrived; heads of their streams not yet looked up. */
  readonly #arrived: Pending[] = []
  /** To be put into a batch, in order. */
  #ready: Pending[] = []
  /** The batch that is being prepared while another one commits. */
  #next: Batch | undefined
  #looking = false
  #writing = false
  #checking = 0
  /** Heads of streams as they are when all that is prepared is written; right only for the sole writer. */
  readonly #heads = new RecentlyUsed<string, StreamHead>(CACHED_HEADS)
  /** Position of the log's last event when all that is prepared is written; undefined when not known. */
  #head: bigint | undefined
  #closed = false
  readonly #idle: (() => void)[] = []

  /**
   * @param readers for look-ups beside the writer's connection.
   * @param patienceMs how long an append waits for the database to come back.
   * @param committed hears of every batch after its commit, in order.
   */
  constructor(session: WriterSession, readers: Queryable, patienceMs: number, committed: Committed) {
    this.#session = session
    this.#readers = readers
    this.#patienceMs = patienceMs
    this.#committed = committed
  }

  /** @param bytes size of data and metadata. @throws DatabaseUnavailable when the outcome is unknown. */
  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    bytes: number,
  ): Promise<AppendResult> {
    if (this.#closed) return Promise.reject(new DatabaseUnavailable('the event log', 'it is closed'))
    return new Promise((settle, fail) => {
      const deadline = performance.now() + this.#patienceMs
      // whatever becomes of the connection, and of what stands before it
      const timer = setTimeout(() => {
        // it may still be stored, after somebody has read its stream without it
        this.#session.makeRoom('the outcome of an append is unknown')
        reject(new DatabaseUnavailable('the event log', 'no answer to an append, its outcome is unknown'))
      }, this.#patienceMs)
      const resolve = (result: AppendResult) => {
        clearTimeout(timer)
        settle(result)
      }
      const reject = (error: Error) => {
        clearTimeout(timer)
        fail(error)
      }
      this.#arrived.push({ stream, expected, events, bytes, deadline, resolve, reject })
      this.#lookUp()
    })
  }

  /** Takes no more appends and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    if (!this.#busy) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  get #busy(): boolean {
    return this.#looking || this.#writing || this.#checking > 0
  }

  #tellWhenIdle(): void {
    if (!this.#busy) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Reads the heads that the sole writer does not know yet, beside the batch that is being committed. */
  #lookUp(): void {
    if (this.#looking || this.#arrived.length === 0 || this.#ready.length > READY_LIMIT) return
    this.#looking = true
    // everything that arrives in this turn of the event loop goes together
    setImmediate(async () => {
      const appends = this.#arrived.splice(0)
      if (this.#session.sole) {
        try {
          await this.#learnHeads(this.#readers, this.#unknownStreams(appends, false))
        } catch {
          // looked up again when written
        }
      }
      this.#ready.push(...appends)
      this.#looking = false
      this.#lookUp()
      if (this.#writing) this.#prepare()
      else {
        this.#writing = true
        void this.#write()
      }
    })
  }

  async #write(): Promise<void> {
    let flight: Flight | undefined
    while (flight || this.#next || this.#ready.length > 0) {
      if (!flight) {
        if (this.#session.sole) this.#head ??= await readHead(this.#readers).catch(() => undefined)
        flight = this.#launch()
        if (!flight) {
          this.#undo()
          this.#forgetLate()
          await this.#persist(this.#ready.splice(0, batchLength(this.#ready)))
          continue
        }
      }
      const { batch, sentAt, failure }: Flight = flight
      const error = await failure
      const ms = performance.now() - sentAt
      if (error === undefined) {
        this.#session.alive()
        // on its way before the callers of this one go on
        flight = this.#launch()
        this.#finish({ batch, ms })
      } else {
        flight = undefined
        this.#undo(batch)
        // a stream believed absent explains a taken revision, nothing explains a taken position
        if (takenPlace(error) === 'position') this.#session.makeRoom(INTRUDER)
        await this.#persist(batch.appends)
      }
    }
    this.#writing = false
    this.#tellWhenIdle()
  }

  /**
   * Sends the next batch, when this is the sole writer and knows enough; then prepares the one after it.
   * Nothing else can run between the check and the sending.
   */
  #launch(): Flight | undefined {
    const { connected } = this.#session
    if (!connected || !this.#session.sole) return undefined
    const halving = !this.#next && this.#ready.length >= WORTH_HALVING
    this.#prepare(halving ? this.#ready.length >>> 1 : undefined)
    const batch = this.#next
    if (!batch) return undefined
    this.#next = undefined
    const sentAt = performance.now()
    const failure = batch.insert(connected).then(
      () => undefined,
      (error: Error) => error,
    )
    this.#prepare()
    return { batch, sentAt, failure }
  }

  /** Puts what is ready into the next batch, as far as what is known suffices. */
  #prepare(limit = Number.POSITIVE_INFINITY): void {
    if (this.#head === undefined || !this.#session.sole) return
    this.#forgetLate()
    const batch = this.#next ?? new Batch(this.#head)
    let count = 0
    for (const append of this.#ready) {
      if (count >= limit || !batch.fits(append) || (isLoose(append.expected) && append.events.length > 0))
        break
      const head = this.#heads.get(append.stream) ?? (append.expected === 'noStream' ? ABSENT : undefined)
      if (!head) break
      this.#heads.set(append.stream, batch.add(append, head, NOTHING_FOUND))
      count += 1
    }
    if (count === 0) return
    this.#ready = this.#ready.slice(count)
    this.#next = batch
    this.#head = batch.head
    this.#lookUp()
  }

  /** Takes back what was prepared on a batch that failed, and forgets what would be true after it. */
  #undo(failed?: Batch): void {
    const next = this.#next
    this.#next = undefined
    for (const batch of [failed, next]) {
      for (const { stream } of batch?.appends ?? []) this.#heads.delete(stream)
    }
    this.#head = undefined
    if (next) this.#ready.unshift(...next.appends)
  }

  /** Publishes a committed batch and settles its appends. */
  #finish({ batch, ms }: Written): void {
    if (batch.stored.length > 0) this.#committed(batch.base, batch.stored, ms)
    batch.settle()
    if (batch.missed.length > 0) void this.#check(batch)
  }

  /** Tells repetitions among the appends that missed their expectation. */
  async #check(batch: Batch): Promise<void> {
    this.#checking += 1
    try {
      batch.settleMissed(await findEvents(this.#readers, batch.missed.flatMap(idsOf)))
    } catch (error) {
      for (const append of batch.missed) append.reject(await explain(error, append, this.#readers))
    } finally {
      this.#checking -= 1
      this.#tellWhenIdle()
    }
  }

  /**
   * Writes appends whatever happens to the connection, with all heads read before. After a commit of unknown outcome
   * the same appends are tried again: those that were stored are then found by their ids.
   */
  async #persist(appends: readonly Pending[]): Promise<void> {
    let rest = appends
    let misplaced = 0
    for (let attempt = 0; rest.length > 0; attempt += 1) {
      try {
        const client = await this.#session.client()
        const written = this.#session.sole
          ? await this.#writeAsSoleWriter(client, rest)
          : await this.#writeUnderLock(client, rest)
        this.#session.alive()
        this.#finish(written)
        return
      } catch (error) {
        if (isConnectionLoss(error)) {
          rest = this.#giveUpLate(rest, error)
          if (rest.length > 0) await this.#session.retryPause(attempt)
        } else if (takenPlace(error) && misplaced < MISPLACED_RETRIES) {
          misplaced += 1
          this.#session.makeRoom(INTRUDER)
        } else if (rest.length > 1 && isDataError(error)) {
          // one of them cannot be stored; the others must not suffer
          await this.#persist(rest.slice(0, rest.length >>> 1))
          rest = rest.slice(rest.length >>> 1)
        } else {
          for (const append of rest) append.reject(await explain(error, append, this.#readers))
          return
        }
      }
    }
  }

  /** Drops those that were given up before their turn. */
  #forgetLate(): void {
    const now = performance.now()
    if (this.#ready.some(({ deadline }) => deadline <= now)) {
      this.#ready = this.#ready.filter(({ deadline }) => deadline > now)
    }
  }

  /** Rejects the appends that have waited too long. @returns the others. */
  #giveUpLate(appends: readonly Pending[], error: unknown): readonly Pending[] {
    const now = performance.now()
    const isLate = (append: Pending) => this.#closed || append.deadline <= now
    const why = error instanceof DatabaseUnavailable ? error.message : 'the connection was lost'
    for (const append of appends.filter(isLate)) {
      append.reject(new DatabaseUnavailable('the event log', `outcome of an append unknown, ${why}`))
    }
    return appends.filter((append) => !isLate(append))
  }

  async #writeAsSoleWriter(client: pg.Client, appends: readonly Pending[]): Promise<Written> {
    await this.#learnHeads(client, this.#unknownStreams(appends, true))
    const base = await readHead(client)
    const found = await findEvents(client, looseIds(appends))
    // it may have ended meanwhile; from here to the query nothing else can run
    if (!this.#session.sole) return this.#writeUnderLock(client, appends)
    const heads = new Map(appends.map(({ stream }) => [stream, this.#heads.get(stream) ?? ABSENT]))
    const batch = fill(new Batch(base), appends, heads, found)
    const sentAt = performance.now()
    await batch.insert(client)
    const ms = performance.now() - sentAt
    for (const [stream, head] of heads) this.#heads.set(stream, head)
    return { batch, ms }
  }

  /** Several writers: everything is read after the lock was taken and before it is given back at the commit. */
  async #writeUnderLock(client: pg.Client, appends: readonly Pending[]): Promise<Written> {
    const begunAt = performance.now()
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${APPEND_LOCK})`)
    try {
      const known = await readStreamHeads(client, [...new Set(appends.map(({ stream }) => stream))])
      const found = await findEvents(client, looseIds(appends))
      const batch = fill(new Batch(known.head), appends, known.streams, found)
      if (batch.stored.length > 0) {
        await batch.insert(client)
        const payload = `${batch.head} ${this.#session.id}`
        await client.query(`SELECT pg_notify('${APPENDED_CHANNEL}', '${payload}'); COMMIT`)
      } else await client.query('ROLLBACK')
      return { batch, ms: performance.now() - begunAt }
    } catch (error) {
      if (!isConnectionLoss(error)) await client.query('ROLLBACK').catch(() => undefined)
      throw error
    }
  }

  /**
   * Streams whose heads must be read first. One that its writer believes absent need not be, unless `all`: should it
   * exist after all, the insert fails on its unique index and is repeated with all heads read.
   */
  #unknownStreams(appends: readonly Pending[], all: boolean): string[] {
    const unknown = new Set<string>()
    for (const { stream, expected } of appends) {
      if (!this.#heads.get(stream) && (all || expected !== 'noStream')) unknown.add(stream)
    }
    return [...unknown]
  }

  async #learnHeads(db: Queryable, unknown: readonly string[]): Promise<void> {
    if (unknown.length === 0) return
    const { streams } = await readStreamHeads(db, unknown)
    // what was written meanwhile is younger
    for (const stream of unknown) {
      if (!this.#heads.get(stream)) this.#heads.set(stream, streams.get(stream) ?? ABSENT)
    }
  }
}

/** A batch that was committed, or that had nothing to commit. */
interface Written {
  readonly batch: Batch
  /** Real milliseconds of its transaction. */
  readonly ms: number
}

/** A batch on its way. */
interface Flight {
  readonly batch: Batch
  /** On the clock of `performance.now()`. */
  readonly sentAt: number
  /** Why it was not committed, or nothing when it was. */
  readonly failure: Promise<Error | undefined>
}

/** Adds appends to a batch; `heads` moves on with them. */
function fill(
  batch: Batch,
  appends: readonly Pending[],
  heads: Map<string, StreamHead>,
  found: ReadonlyMap<string, EventPlace>,
): Batch {
  for (const append of appends) {
    heads.set(append.stream, batch.add(append, heads.get(append.stream) ?? ABSENT, found))
  }
  return batch
}

function looseIds(appends: readonly Pending[]): string[] {
  return appends.flatMap((append) => (isLoose(append.expected) ? idsOf(append) : []))
}

/** What another session has taken, if that is what went wrong. */
function takenPlace(error: unknown): 'position' | 'revision' | undefined {
  const { code, constraint } = error as { code?: string; constraint?: string }
  if (code !== '23505') return undefined
  if (constraint === 'events_position') return 'position'
  return constraint === 'events_stream_revision' ? 'revision' : undefined
}

/** An error that lies in what is stored (data exception, constraint, limit), not in the server's condition. */
function isDataError(error: unknown): boolean {
  return /^(22|23|54)/.test((error as { code?: string }).code ?? '')
}

/** The error of an append that cannot be stored, without the values that PostgreSQL's own errors quote. */
async function explain(error: unknown, append: Pending, readers: Queryable): Promise<Error> {
  const { code, constraint } = error as { code?: string; constraint?: string }
  const told = orUnavailable('the event log', error)
  if (told instanceof DatabaseUnavailable) return told
  if (code === undefined) return error as Error
  if (code === '23505' && constraint === 'events_event_id') {
    const found = await findEvents(readers, idsOf(append)).catch(() => NOTHING_FOUND)
    const one = idsOf(append).find((id) => found.has(id))
    if (one !== undefined) return idTaken(one, found)
  }
  return new Error(`The event log refused an append to ${append.stream}: ${oneLine(error)} (${code})`)
}
