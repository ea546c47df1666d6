import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { AppendCall, EventStoreConnection } from './connection.ts'
import { Conflict, EventStoreRefused, EventStoreUnavailable, oneLine, StreamTampered } from './errors.ts'
import { type AppendAnswer, type EventToSend, encodeAppend } from './wire.ts'

/** How long the server may take over an append before its outcome counts as unknown, in milliseconds. */
const APPEND_LIMIT_MS = 8_000
const SWEEP_MS = 500
/**
 * Appends that may be unanswered at once, and their bytes; more wait for their turn. A server that is behind is not
 * given more than it answers in time, else all of it would be given up and sent again.
 */
export const MOST_IN_FLIGHT = 512
const MOST_BYTES_IN_FLIGHT = 8 * 1024 * 1024

/** What the server says of an append that stands in the log. */
export interface Appended {
  readonly revision: number
  readonly position: bigint
}

interface Queued {
  readonly stream: string
  readonly revision: number
  readonly events: readonly EventToSend[]
  readonly bytes: number
  /** On the clock of `performance.now()`: it is sent by then, or not at all. */
  readonly deadline: number
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: Error) => void
}

interface Waiting extends Queued {
  readonly sentAt: number
}

/**
 * The one stream that carries all appends of this process. The server takes them in the order in which they are sent
 * and answers each for itself. When the stream breaks, the outcome of all that are unanswered is unknown.
 */
export class AppendStream {
  readonly #connection: EventStoreConnection
  #call: Promise<AppendCall> | undefined
  readonly #waiting = new Map<number, Waiting>()
  /** Not sent yet, in order. */
  #queue: Queued[] = []
  #bytesInFlight = 0
  #sent = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(connection: EventStoreConnection) {
    this.#connection = connection
  }

  /**
   * Appends events at exactly a revision.
   * @param revision of the event before them, -1 for none.
   * @param deadline on the clock of `performance.now()`: not sent by then, it is given up.
   * @throws Conflict, EventStoreRefused (nothing was stored), EventStoreUnavailable (outcome unknown).
   */
  append(
    stream: string,
    revision: number,
    events: readonly EventToSend[],
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Appended> {
    return new Promise((resolve, reject) => {
      const bytes = events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0)
      this.#queue.push({ stream, revision, events, bytes, deadline, resolve, reject })
      this.#sweep ??= setInterval(() => this.#giveUpOld(), SWEEP_MS).unref()
      this.#sendOn()
    })
  }

  close(): void {
    clearInterval(this.#sweep)
    this.#break(new EventStoreUnavailable(this.#connection.target, 'the event log is closed'))
  }

  /** Sends what waits, as far as there is room; one that is larger than all room goes alone. */
  #sendOn(): void {
    this.#giveUpLate()
    for (let next = this.#queue[0]; next && this.#hasRoomFor(next); next = this.#queue[0]) {
      this.#queue.shift()
      this.#send(next)
      // deadlines are each append's own: the next one may be late though this was not
      this.#giveUpLate()
    }
  }

  #hasRoomFor({ bytes }: Queued): boolean {
    if (this.#waiting.size === 0) return true
    return this.#waiting.size < MOST_IN_FLIGHT && this.#bytesInFlight + bytes <= MOST_BYTES_IN_FLIGHT
  }

  #send(queued: Queued): void {
    this.#sent += 1
    const id = this.#sent
    this.#waiting.set(id, { ...queued, sentAt: performance.now() })
    this.#bytesInFlight += queued.bytes
    this.#open().then(
      (call) => {
        // the stream may have broken while this one waited for it
        if (this.#waiting.has(id)) {
          call.write(encodeAppend(id, queued.stream, queued.revision, queued.events))
        }
      },
      (error) => this.#take(id)?.reject(error),
    )
  }

  /** Takes an append out of those in flight. */
  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    if (!waiting) return undefined
    this.#waiting.delete(id)
    this.#bytesInFlight -= waiting.bytes
    return waiting
  }

  #open(): Promise<AppendCall> {
    if (this.#call) return this.#call
    const call = this.#start()
    this.#call = call
    call.catch((failure: Error) => {
      // one that was given up before must not end the next
      if (this.#call === call) this.#break(failure)
    })
    return call
  }

  async #start(): Promise<AppendCall> {
    try {
      const call = await this.#connection.append()
      call.on('data', (answer) => this.#settle(answer, call))
      call.on('error', (error) => this.#broken(call, error))
      call.on('end', () => this.#broken(call, new Error('the connection ended')))
      return call
    } catch (error) {
      throw this.#connection.failureOf(error)
    }
  }

  #broken(call: AppendCall, error: Error): void {
    void this.#call?.then(
      // one that was given up before has nobody waiting
      (current) => current === call && this.#break(this.#connection.failureOf(error, call)),
      () => undefined,
    )
  }

  #break(failure: Error): void {
    const call = this.#call
    this.#call = undefined
    // what was not sent yet must not overtake what is sent again
    const waiting = [...this.#waiting.values(), ...this.#queue]
    this.#waiting.clear()
    this.#queue = []
    this.#bytesInFlight = 0
    for (const { reject } of waiting) reject(failure)
    void call?.then(
      (open) => open.cancel(),
      () => undefined,
    )
  }

  /** A server that is there and silent: everything unanswered is given up, and the stream with it. */
  #giveUpOld(): void {
    this.#giveUpLate()
    const oldest = this.#waiting.values().next().value
    if (!oldest || performance.now() - oldest.sentAt < APPEND_LIMIT_MS) return
    this.#break(this.#connection.failureOf(new Error('no answer to an append')))
  }

  /** Who waits behind others has no more time than they had. */
  #giveUpLate(): void {
    const now = performance.now()
    while (this.#queue[0] && this.#queue[0].deadline <= now) {
      const { reject } = this.#queue.shift()!
      reject(new EventStoreUnavailable(this.#connection.target, 'too many appends before this one'))
    }
  }

  #settle({ id, success, bytes }: AppendAnswer, call: AppendCall): void {
    const waiting = this.#take(id)
    if (!waiting) return
    this.#sendOn()
    if (success) waiting.resolve(success)
    else waiting.reject(this.#errorOf(bytes, waiting.stream, call))
  }

  #errorOf(answer: Buffer, stream: string, call: AppendCall): Error {
    const status = streams.BatchAppendResp.deserializeBinary(answer).getError()
    const type = status?.getDetails()?.getTypeName() ?? ''
    const name = type.slice(type.lastIndexOf('.') + 1)
    const { target } = this.#connection
    switch (name) {
      case 'WrongExpectedVersion':
        return new Conflict('not at the expected revision')
      case 'StreamDeleted':
        return new StreamTampered(stream, 'it was deleted')
      case 'AccessDenied':
        return new EventStoreRefused(target, 'access is denied to this user')
      case 'MaximumAppendSizeExceeded':
        return new EventStoreRefused(target, 'its limit for one append is below 1 MiB')
      case 'Timeout':
        return new EventStoreUnavailable(target, 'the append timed out')
      default: {
        // such as from a node that leads no more: what follows goes to the one that does
        const error = new Error(status?.getMessage() || name || 'the append failed')
        this.#broken(call, error)
        return new EventStoreUnavailable(target, oneLine(error))
      }
    }
  }
}
