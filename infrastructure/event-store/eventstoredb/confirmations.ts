import type { EventToAppend, StoredEvent } from '../../../application/ports/event-log.ts'
import { type RecordedEvent, storedEvent } from './wire.ts'

/** An event on its way into the log. */
export interface Sent {
  readonly stream: string
  readonly revision: number
  readonly event: EventToAppend
  /** As it is to be stored, with the hash. */
  readonly metadata: string
}

/** What the log shows where an append was to stand. */
export interface Seen {
  /** Of the last event. */
  readonly position: bigint
  /** Whether it is what was sent, to the last byte. */
  readonly ours: boolean
}

/** An append that is waited for. */
export interface Expected {
  /** What stands where its last event was to stand. */
  readonly seen: Promise<Seen>
  /** To be called when the server says that it is stored. */
  answered(): void
  /** To be called when it is waited for no more. */
  done(): void
}

/**
 * Events of this process that the log has not shown yet. The server compares ids only: when two processes send the
 * same event at the same place, it tells both of success and keeps the one that came first. What stands there is
 * known when it is seen, and then the hash tells whether it is ours to the last byte.
 */
export class Confirmations {
  readonly #sent = new Map<string, Sent>()
  readonly #waiting = new Map<string, (seen: Seen) => void>()
  readonly #overdue = new Set<string>()
  /** Told of every append that the server has answered and the log has not shown. */
  onOverdue: () => void = () => undefined

  /** Appends that are waited for. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Those of them that the server has answered and the log has not shown. */
  get overdue(): number {
    return this.#overdue.size
  }

  /** Waits for the last of these events to be seen in the log. */
  expect(sent: readonly Sent[]): Expected {
    const last = keyOf(sent.at(-1)!)
    for (const one of sent) this.#sent.set(keyOf(one), one)
    const seen = new Promise<Seen>((resolve) => this.#waiting.set(last, resolve))
    return {
      seen,
      answered: () => {
        if (!this.#sent.has(last)) return
        this.#overdue.add(last)
        this.onOverdue()
      },
      done: () => {
        this.#waiting.delete(last)
        this.#overdue.delete(last)
        for (const one of sent) this.#sent.delete(keyOf(one))
      },
    }
  }

  /** Takes an event that the log shows. @returns it, with what it was written from when that was here. */
  see(recorded: RecordedEvent): StoredEvent {
    if (this.#sent.size === 0) return storedEvent(recorded)
    const key = keyOf(recorded)
    const sent = this.#sent.get(key)
    if (!sent) return storedEvent(recorded)
    this.#sent.delete(key)
    this.#overdue.delete(key)
    const { event, metadata } = sent
    const ours = recorded.metadata === metadata && recorded.dataBytes === Buffer.byteLength(event.data)
    this.#waiting.get(key)?.({ position: recorded.position, ours })
    if (!ours) return storedEvent(recorded)
    const { position, stream, revision, eventId } = recorded
    const stored = { position, stream, revision, eventId, type: event.type, data: event.data, metadata }
    return event.writtenFrom === undefined ? stored : { ...stored, writtenFrom: event.writtenFrom }
  }
}

function keyOf(place: { readonly stream: string; readonly revision: number }): string {
  return `${place.revision}@${place.stream}`
}
