import {
  type AppendResult,
  EventIdTaken,
  type EventToAppend,
  type ExpectedRevision,
  WrongExpectedRevision,
} from '../../../application/ports/event-log.ts'
import { chainHash, NO_PREDECESSOR, withHash } from '../../../application/ports/hash-chain.ts'
import type { Appended, AppendStream } from './append-stream.ts'
import type { Confirmations, Expected, Seen, Sent } from './confirmations.ts'
import { Conflict, EventStoreRefused, EventStoreUnavailable, StreamTampered } from './errors.ts'
import type { KnownStream, KnownStreams } from './known-streams.ts'
import { type LogReader, retryPause } from './log-reader.ts'

const READ_PAGE = 500
/** How long an event may take to be seen by who follows the log before it is read by itself, in milliseconds. */
const CONFIRMATION_MS = 1_000
const MOST_CONFLICTS = 50

interface Pending {
  readonly stream: string
  readonly expected: ExpectedRevision
  readonly events: readonly EventToAppend[]
  /** On the clock of `performance.now()`. */
  readonly deadline: number
}

/**
 * Appends at explicit revisions, whatever was expected: only those make a repeated append safe, and the hash chain
 * needs the predecessor anyway. Appends to one stream go one after the other, those to different streams at once.
 */
export class Appender {
  readonly #target: string
  readonly #appends: AppendStream
  readonly #reader: LogReader
  readonly #known: KnownStreams
  readonly #confirmations: Confirmations
  readonly #patienceMs: number
  readonly #queues = new Map<string, Promise<unknown>>()
  #closed = false

  constructor(parts: {
    target: string
    appends: AppendStream
    reader: LogReader
    known: KnownStreams
    confirmations: Confirmations
    patienceMs: number
  }) {
    this.#target = parts.target
    this.#appends = parts.appends
    this.#reader = parts.reader
    this.#known = parts.known
    this.#confirmations = parts.confirmations
    this.#patienceMs = parts.patienceMs
  }

  /** @throws EventStoreUnavailable when the outcome is unknown. */
  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
  ): Promise<AppendResult> {
    if (this.#closed)
      return Promise.reject(new EventStoreUnavailable(this.#target, 'the event log is closed'))
    const pending = { stream, expected, events, deadline: performance.now() + this.#patienceMs }
    const before = this.#queues.get(stream)
    const result = before ? before.then(() => this.#append(pending)) : this.#append(pending)
    const settled: Promise<void> = result.then(nothing, nothing).then(() => {
      if (this.#queues.get(stream) === settled) this.#queues.delete(stream)
    })
    this.#queues.set(stream, settled)
    return this.#inTime(result)
  }

  /** Ends the wait at its time, whatever the server and the appends before it do; what goes on may still be stored. */
  #inTime(result: Promise<AppendResult>): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(new EventStoreUnavailable(this.#target, 'no answer to an append, its outcome is unknown')),
        this.#patienceMs,
      )
      result.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }

  /** Takes no more appends and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#queues.values())
  }

  async #append(pending: Pending): Promise<AppendResult> {
    const { stream, expected, events, deadline } = pending
    // it may have waited long behind others of its stream; nothing of it was sent
    if (this.#closed) throw new EventStoreUnavailable(this.#target, 'the event log is closed')
    if (performance.now() > deadline) {
      throw new EventStoreUnavailable(this.#target, 'no answer to appends of the same stream')
    }
    /** Whether the end of the stream was looked up since this began. */
    let fresh = false
    for (let conflicts = 0; ; ) {
      let known = this.#known.get(stream)
      if (!fresh && !this.#suffices(pending, known)) {
        known = await this.#readOn(stream)
        fresh = true
      }
      const revision = known?.revision ?? -1
      if (!holds(expected, revision)) {
        const repetition = await this.#repetition(pending, known)
        if (repetition) return repetition
        throw new WrongExpectedRevision(stream, expected, revision)
      }
      if (events.length === 0) return { revision, position: known?.position ?? 0n, repeated: false }
      const taken = known ? events.find(({ eventId }) => known.find(eventId) >= 0) : undefined
      if (taken) {
        const repetition = isLoose(expected) ? await this.#repetition(pending, known) : null
        if (repetition) return repetition
        if (isLoose(expected)) {
          if (!fresh) await this.#readOn(stream)
          throw new WrongExpectedRevision(stream, expected, this.#known.get(stream)?.revision ?? -1)
        }
        throw new EventIdTaken(taken.eventId, stream, known!.find(taken.eventId))
      }
      const result = await this.#send(pending, known)
      if (result) return result
      conflicts += 1
      if (conflicts > MOST_CONFLICTS) {
        const why = `stream ${stream} cannot be appended to as it reads`
        throw new EventStoreUnavailable(this.#target, why, { passes: false })
      }
      await this.#readOn(stream)
      fresh = true
    }
  }

  /** Whether an append can be decided on what is known: a stream that has gone on shows itself as a conflict. */
  #suffices({ expected, events }: Pending, known: KnownStream | undefined): boolean {
    if (events.length === 0) return false
    if (isLoose(expected)) return known !== undefined && known.revision >= 0
    return holds(expected, known?.revision ?? -1)
  }

  /** Reads what a stream has beyond what is known of it. */
  async #readOn(stream: string): Promise<KnownStream> {
    const known = this.#known.open(stream)
    for (;;) {
      const before = known.revision
      const page = await this.#reader.stream(stream, { from: before + 1, maxCount: READ_PAGE })
      for (const event of page) known.add(event)
      this.#known.grew(known.revision - before)
      const got = known.revision - before
      if (got < page.length) throw new StreamTampered(stream, `revision ${before + got + 1} is missing`)
      if (page.length < READ_PAGE) return known
    }
  }

  /** The first result when exactly these events stand where the append would have put them. */
  async #repetition(pending: Pending, known: KnownStream | undefined): Promise<AppendResult | null> {
    const { stream, expected, events } = pending
    if (!known || events.length === 0) return null
    const first = isLoose(expected) ? known.find(events[0]!.eventId) : placeAfter(expected)
    if (first < 0 || first + events.length > known.revision + 1) return null
    if (known.find(events[0]!.eventId) !== first) return null
    const there = await this.#reader.stream(stream, { from: first, maxCount: events.length })
    const last = there.at(-1)
    const same = there.length === events.length && there.every((one, n) => one.eventId === events[n]!.eventId)
    return same && last ? { revision: last.revision, position: last.position, repeated: true } : null
  }

  /**
   * Sends until the outcome is known: the same ids at the same revision are the same append.
   * @returns null when the stream is at another revision.
   */
  async #send(pending: Pending, known: KnownStream | undefined): Promise<AppendResult | null> {
    const { stream, events, deadline } = pending
    const at = known?.revision ?? -1
    let hash = known?.hash ?? NO_PREDECESSOR
    const sent: Sent[] = events.map((event, index) => {
      const revision = at + 1 + index
      hash = chainHash(hash, stream, revision, event)
      return { stream, revision, event, metadata: withHash(event.metadata, hash) }
    })
    const expected = this.#confirmations.expect(sent)
    try {
      const seen = await this.#untilSeen(expected, at, sent, deadline)
      if (!seen) return null
      this.#remember(sent, seen.position)
      return { revision: sent.at(-1)!.revision, position: seen.position, repeated: false }
    } finally {
      expected.done()
    }
  }

  /** @returns null when something else stands there, be it the same events as somebody else sent them. */
  async #untilSeen(
    expected: Expected,
    at: number,
    sent: readonly Sent[],
    deadline: number,
  ): Promise<Seen | null> {
    const { seen } = expected
    const { stream } = sent[0]!
    const events = sent.map(({ event, metadata }) => ({ ...event, metadata }))
    for (let attempt = 0; ; attempt += 1) {
      try {
        // the log may show it before the server answers, or although the answer was lost
        const outcome = await Promise.race([this.#appends.append(stream, at, events, deadline), seen])
        const there = 'ours' in outcome ? outcome : await this.#confirmed(outcome, expected, sent.at(-1)!)
        return there.ours ? there : null
      } catch (error) {
        if (error instanceof Conflict) return null
        if (!(error instanceof EventStoreUnavailable) || error instanceof EventStoreRefused) throw error
        if (performance.now() > deadline) throw error
        await Promise.race([retryPause(attempt), seen])
      }
    }
  }

  /** What stands where the server says that the events were stored. */
  async #confirmed(appended: Appended, expected: Expected, last: Sent): Promise<Seen> {
    const { stream, revision } = last
    if (appended.revision !== revision) {
      throw new StreamTampered(stream, `revision ${revision} came out as ${appended.revision}`)
    }
    expected.answered()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), CONFIRMATION_MS)
    })
    const shown = await Promise.race([expected.seen, late])
    clearTimeout(timer)
    if (shown) return shown
    const [there] = await this.#reader.stream(stream, { from: revision, maxCount: 1 })
    // of a repeated append the server does not always tell the position
    return { position: there?.position ?? appended.position, ours: there?.metadata === last.metadata }
  }

  #remember(sent: readonly Sent[], position: bigint): void {
    const known = this.#known.open(sent[0]!.stream)
    for (const { stream, revision, event, metadata } of sent) {
      known.add({ stream, revision, position, eventId: event.eventId, metadata })
    }
    this.#known.grew(sent.length)
  }
}

/** Such an expectation names no place. */
function isLoose(expected: ExpectedRevision): expected is 'any' | 'exists' {
  return expected === 'any' || expected === 'exists'
}

function placeAfter(expected: Exclude<ExpectedRevision, 'any' | 'exists'>): number {
  return expected === 'noStream' ? 0 : expected.exactly + 1
}

function holds(expected: ExpectedRevision, revision: number): boolean {
  if (expected === 'any') return true
  if (expected === 'noStream') return revision === -1
  if (expected === 'exists') return revision >= 0
  return revision === expected.exactly
}

function nothing(): void {
  // the outcome is told to whoever asked for it
}
