import { setTimeout as delay } from 'node:timers/promises'
import { type EventData, NO_STREAM, NotLeaderError, WrongExpectedVersionError } from '@eventstore/db-client'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import { type Connection, connect } from './client.ts'
import { failureOf } from './client-errors.ts'
import { EventStoreRefused, EventStoreUnavailable, StreamTampered } from './errors.ts'

/** How long the server may take over an append before its outcome counts as unknown, in milliseconds. */
const APPEND_LIMIT_MS = 8_000
/**
 * Appends that may be unanswered at once, and their bytes; more wait for their turn. A server that is behind is not
 * given more than it answers in time, else all of it would be given up and sent again.
 */
export const MOST_IN_FLIGHT = 256
const MOST_BYTES_IN_FLIGHT = 8 * 1024 * 1024
/**
 * The client holds 16 messages that gRPC has not taken; what it holds beyond them it rejects, when the connection breaks,
 * where nobody can catch it. gRPC takes at once what fits into its 1 MiB, so fewer appends than that at a time, or
 * of few bytes together, are never held.
 */
const MOST_AT_A_TIME = 15
const BYTES_TAKEN_AT_ONCE = 512 * 1024
/** How long a broken connection may take to end, in milliseconds, and how often it is told to. */
const ENDING_LIMIT_MS = 10_000
const ENDING_PAUSE_MS = 20
/** Server and client may disagree about what time it is; how long an append is waited for is decided here. */
const NO_DEADLINE_MS = Number.MAX_SAFE_INTEGER

/** What the server says of an append that stands in the log. */
export interface Appended {
  /** Of the last event. */
  readonly revision: number
  /** Of the last event; a repeated append may be answered without. */
  readonly position: bigint | undefined
}

interface Queued {
  readonly stream: string
  readonly revision: number
  readonly events: EventData[]
  readonly bytes: number
  /** Whether it is not to be sent any more. */
  readonly isGivenUp: () => boolean
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: Error) => void
  /** Ends the connection when there is no answer in time. */
  limit?: NodeJS.Timeout
}

/**
 * All appends of this process to one server: the client keeps those of all its instances in one map, which the failure
 * of one empties for all. The server takes them in the order in which they are sent and answers each for itself. When
 * the connection breaks, the outcome of all that are unanswered is unknown.
 */
export class Appends {
  readonly #url: string
  #connection: Connection
  readonly #inFlight = new Set<Queued>()
  #bytesInFlight = 0
  /** Calls that the client of the connection has not brought to an end, given up or not. */
  #calls = new Set<Queued>()
  /** Not sent yet, in order. */
  #queue: Queued[] = []
  /** Sent in this turn of the event loop. */
  #sentNow = 0
  /** Whether the connection has answered: until then the client would mix up the order. */
  #hasAnswered = false
  /** While a broken connection ends: what still came from it would be taken for answers to what is sent next. */
  #ending: Promise<void> | undefined
  #closed = false

  /** @throws EventStoreRefused when the address cannot be used. */
  constructor(url: string) {
    this.#url = url
    this.#connection = connect(url)
  }

  /** `host:port`, for messages. */
  get target(): string {
    return this.#connection.target
  }

  /**
   * Appends events at exactly a revision, once.
   * @param revision of the event before them, -1 for none.
   * @param bytes of their data and metadata.
   * @param isGivenUp whether it is not to be sent any more, default never.
   * @throws WrongExpectedVersionError, StreamTampered, EventStoreRefused (nothing was stored), EventStoreUnavailable
   *   (outcome unknown).
   */
  async append(append: {
    stream: string
    revision: number
    events: EventData[]
    bytes: number
    isGivenUp?: () => boolean
  }): Promise<Appended> {
    if (this.#closed) throw new EventStoreUnavailable(this.target, 'the event log is closed')
    const { stream, revision, events } = append
    const appended = await new Promise<Appended>((resolve, reject) => {
      this.#queue.push({ isGivenUp: () => false, ...append, resolve, reject })
      this.#sendOn()
    })
    const last = revision + events.length
    if (appended.revision === last) return appended
    throw new StreamTampered(stream, `revision ${last} came out as ${appended.revision}`)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#break(new EventStoreUnavailable(this.target, 'the event log is closed'))
    await this.#ending
  }

  /** Sends what waits, as far as there is room. */
  #sendOn(): void {
    for (;;) {
      const next = this.#queue[0]
      if (!next || !(next.isGivenUp() || this.#hasRoomFor(next))) return
      this.#queue.shift()
      if (next.isGivenUp())
        next.reject(new EventStoreUnavailable(this.target, 'too many appends before this one'))
      else this.#send(next)
    }
  }

  #hasRoomFor({ bytes }: Queued): boolean {
    if (this.#ending) return false
    if (this.#inFlight.size === 0) return true
    if (!this.#hasAnswered || this.#sentNow >= MOST_AT_A_TIME) return false
    const bytesThen = this.#bytesInFlight + bytes
    if (this.#inFlight.size < MOST_AT_A_TIME) return bytesThen <= MOST_BYTES_IN_FLIGHT
    return this.#inFlight.size < MOST_IN_FLIGHT && bytesThen <= BYTES_TAKEN_AT_ONCE
  }

  #send(queued: Queued): void {
    const { stream, revision, events, resolve } = queued
    if (this.#sentNow === 0) {
      setImmediate(() => {
        this.#sentNow = 0
        this.#sendOn()
      })
    }
    this.#sentNow += 1
    // a server that is there and silent: everything unanswered is given up, and the connection with it
    queued.limit = setTimeout(
      () => this.#break(new Error('no answer to an append')),
      technicalDeadline(APPEND_LIMIT_MS),
    )
    this.#inFlight.add(queued)
    this.#bytesInFlight += queued.bytes
    const calls = this.#calls
    calls.add(queued)
    this.#connection.client
      .appendToStream(stream, events, {
        expectedRevision: revision < 0 ? NO_STREAM : BigInt(revision),
        requiresLeader: true,
        deadline: NO_DEADLINE_MS,
      })
      .then(
        ({ nextExpectedRevision, position }) => {
          if (!this.#settle(queued)) return
          resolve({ revision: Number(nextExpectedRevision), position: position?.commit })
        },
        (error: Error) => this.#failed(queued, error),
      )
      .finally(() => calls.delete(queued))
  }

  /** @returns false when it was given up before. */
  #settle(queued: Queued): boolean {
    if (!this.#inFlight.delete(queued)) return false
    clearTimeout(queued.limit)
    this.#bytesInFlight -= queued.bytes
    this.#hasAnswered = true
    this.#sendOn()
    return true
  }

  #failed(queued: Queued, error: Error): void {
    if (!this.#inFlight.has(queued)) return
    const failure = failureOf(this.target, error)
    const isAnswer =
      failure instanceof WrongExpectedVersionError ||
      failure instanceof StreamTampered ||
      failure instanceof EventStoreRefused ||
      (error as { type?: string }).type === 'deadline-exceeded'
    // all others are of the connection, or of a node that leads no more
    if (!isAnswer) this.#break(error)
    else if (this.#settle(queued)) queued.reject(failure)
  }

  /** Gives up everything unanswered and unsent: what was not sent yet must not overtake what is sent again. */
  #break(error: Error): void {
    const failure = failureOf(this.target, error)
    const lost = [...this.#inFlight, ...this.#queue]
    this.#inFlight.clear()
    this.#bytesInFlight = 0
    this.#queue = []
    this.#hasAnswered = false
    for (const { reject, limit } of lost) {
      clearTimeout(limit)
      reject(failure)
    }
    this.#ending ??= this.#connectAnew(error)
  }

  /**
   * The client drops what waits on all its streams when one of them fails, and throws where nobody can catch it when an
   * answer comes to what it has dropped: so no stream begins before the last one has ended. A call that has not got its
   * stream yet, at a server that is there and slow, makes one after the connection was told to end.
   */
  async #connectAnew(error: Error): Promise<void> {
    const limit = performance.now() + ENDING_LIMIT_MS
    for (;;) {
      await this.#connection.client.dispose()
      if (this.#calls.size === 0 || this.#closed || performance.now() > limit) break
      await delay(ENDING_PAUSE_MS)
    }
    this.#calls = new Set()
    // the client goes to the leader that the answer names
    if (!(error instanceof NotLeaderError) && !this.#closed) this.#connection = connect(this.#url)
    this.#ending = undefined
    this.#sendOn()
  }
}

const open = new Map<string, { readonly appends: Appends; users: number }>()

export interface SharedAppends {
  readonly appends: Appends
  /** Lets go of them. */
  release(): Promise<void>
}

/** The appends of this process to a server. @throws EventStoreRefused */
export function shareAppends(url: string): SharedAppends {
  const shared = open.get(url) ?? { appends: new Appends(url), users: 0 }
  shared.users += 1
  open.set(url, shared)
  return {
    appends: shared.appends,
    async release() {
      shared.users -= 1
      if (shared.users > 0) return
      open.delete(url)
      await shared.appends.close()
    },
  }
}
