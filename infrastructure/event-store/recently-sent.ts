import type { StoredEvent } from '../../application/ports/event-log.ts'

const MOST_BYTES = 8 * 1024 * 1024

/** What an event says, as it was appended. */
export type SentEvent = Pick<StoredEvent, 'data' | 'metadata' | 'writtenFrom'>

/**
 * What this process appended a moment ago, by event id: when the log shows it, it need not be read and parsed once
 * more. Bounded; the oldest give way.
 */
export class RecentlySent {
  readonly #sent = new Map<string, SentEvent>()
  #bytes = 0

  add(eventId: string, { data, metadata, writtenFrom }: SentEvent): void {
    this.#sent.set(eventId, { data, metadata, ...(writtenFrom && { writtenFrom }) })
    this.#bytes += data.length + metadata.length
    for (const oldest of this.#sent.keys()) {
      if (this.#bytes <= MOST_BYTES) return
      this.take(oldest)
    }
  }

  /** An event as it was sent, once, where it was sent here. */
  take(eventId: string): SentEvent | undefined {
    const sent = this.#sent.get(eventId)
    if (!sent) return undefined
    this.#sent.delete(eventId)
    this.#bytes -= sent.data.length + sent.metadata.length
    return sent
  }
}
