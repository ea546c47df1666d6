import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { AppendCall, EventStoreConnection } from './connection.ts'
import { Conflict, EventStoreRefused, EventStoreUnavailable, oneLine, StreamTampered } from './errors.ts'
import { type AppendAnswer, type EventToSend, encodeAppend } from './wire.ts'

/** How long the server may take over an append before its outcome counts as unknown, in milliseconds. */
const APPEND_LIMIT_MS = 8_000
const SWEEP_MS = 500

/** What the server says of an append that stands in the log. */
export interface Appended {
  readonly revision: number
  readonly position: bigint
}

interface Waiting {
  readonly stream: string
  readonly sentAt: number
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: Error) => void
}

/**
 * The one stream that carries all appends of this process. The server takes them in the order in which they are sent
 * and answers each for itself. When the stream breaks, the outcome of all that are unanswered is unknown.
 */
export class AppendStream {
  readonly #connection: EventStoreConnection
  #call: Promise<AppendCall> | undefined
  readonly #waiting = new Map<number, Waiting>()
  #sent = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(connection: EventStoreConnection) {
    this.#connection = connection
  }

  /**
   * Appends events at exactly a revision.
   * @param revision of the event before them, -1 for none.
   * @throws Conflict, EventStoreRefused (nothing was stored), EventStoreUnavailable (outcome unknown).
   */
  append(stream: string, revision: number, events: readonly EventToSend[]): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#sent += 1
      const id = this.#sent
      this.#waiting.set(id, { stream, sentAt: performance.now(), resolve, reject })
      this.#sweep ??= setInterval(() => this.#giveUpOld(), SWEEP_MS).unref()
      this.#open().then(
        (call) => {
          // the stream may have broken while this one waited for it
          if (!this.#waiting.has(id)) return
          call.write(encodeAppend(id, stream, revision, events))
        },
        (error) => {
          if (this.#waiting.delete(id)) reject(error)
        },
      )
    })
  }

  close(): void {
    clearInterval(this.#sweep)
    this.#break(new EventStoreUnavailable(this.#connection.target, 'the event log is closed'))
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
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(failure)
    void call?.then(
      (open) => open.cancel(),
      () => undefined,
    )
  }

  /** A server that is there and silent: everything unanswered is given up, and the stream with it. */
  #giveUpOld(): void {
    const oldest = this.#waiting.values().next().value
    if (!oldest || performance.now() - oldest.sentAt < APPEND_LIMIT_MS) return
    this.#break(this.#connection.failureOf(new Error('no answer to an append')))
  }

  #settle({ id, success, bytes }: AppendAnswer, call: AppendCall): void {
    const waiting = this.#waiting.get(id)
    if (!waiting) return
    this.#waiting.delete(id)
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
