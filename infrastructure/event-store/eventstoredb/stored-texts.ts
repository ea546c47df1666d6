import { type JSONType, jsonEvent, type ResolvedEvent } from '@eventstore/db-client'
import type { EventToAppend, StoredEvent } from '../../../application/ports/event-log.ts'

/** The client takes and gives JSON as values; these are the texts' values. */
export interface EventValues {
  readonly data: unknown
  /** Without the hash. */
  readonly metadata: object
}

/**
 * The values that the client writes as exactly an event's texts.
 * @throws TypeError where there are none: for texts that `JSON.stringify` does not write. It quotes nothing of them.
 */
export function valuesOf(event: EventToAppend): EventValues {
  const { type, data, metadata, writtenFrom } = event
  // written by JSON.stringify a moment ago
  if (writtenFrom?.text === data) return writtenFrom
  const values = { data: parsed(type, data), metadata: parsed(type, metadata) as object }
  if (Object.hasOwn(values.metadata, 'hash')) {
    throw new TypeError(`The metadata of an event of type ${type} is refused: the hash is the log's to add`)
  }
  return values
}

/** The value of a text. @throws TypeError */
export function parsed(type: string, text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new TypeError(`The data or metadata of an event of type ${type} is refused: it is no JSON`)
  }
  if (JSON.stringify(value) === text) return value
  throw new TypeError(
    `The data or metadata of an event of type ${type} is refused: JSON.stringify writes it otherwise`,
  )
}

/** An event as the client takes it. @param metadata with the hash. */
export function eventToSend(id: string, type: string, data: unknown, metadata: object) {
  return jsonEvent({ id, type, data: data as JSONType, metadata: metadata as Record<string, unknown> })
}

/** An event as the client gives it, with its texts. */
export function storedEvent({ event }: ResolvedEvent): StoredEvent {
  const { position, streamId, revision, id, type, data, metadata } = event!
  return {
    position: position!.commit,
    stream: streamId,
    revision: Number(revision),
    eventId: id,
    type,
    data: textOf(data),
    metadata: textOf(metadata),
  }
}

/** Other programs' events may have no metadata, or other data than JSON. */
function textOf(value: unknown): string {
  if (value === undefined) return ''
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : JSON.stringify(value)
}

const MOST_BYTES = 8 * 1024 * 1024

/**
 * What this process appended a moment ago, by event id: when the server shows it, it need not be written and parsed
 * once more. Bounded; the oldest give way.
 */
export class RecentlySent {
  readonly #sent = new Map<string, Pick<StoredEvent, 'data' | 'metadata' | 'writtenFrom'>>()
  #bytes = 0

  add(eventId: string, { data, writtenFrom }: EventToAppend, metadata: string): void {
    this.#sent.set(eventId, { data, metadata, ...(writtenFrom && { writtenFrom }) })
    this.#bytes += data.length + metadata.length
    for (const oldest of this.#sent.keys()) {
      if (this.#bytes <= MOST_BYTES) return
      this.#take(oldest)
    }
  }

  /** The event that the server shows, as it was sent where it was sent here. */
  see(resolved: ResolvedEvent): StoredEvent {
    const sent = this.#take(resolved.event!.id)
    if (!sent) return storedEvent(resolved)
    const { position, streamId, revision, id, type } = resolved.event!
    const place = { position: position!.commit, stream: streamId, revision: Number(revision), eventId: id }
    return { ...place, type, ...sent }
  }

  #take(eventId: string) {
    const sent = this.#sent.get(eventId)
    if (!sent) return undefined
    this.#sent.delete(eventId)
    this.#bytes -= sent.data.length + sent.metadata.length
    return sent
  }
}
