import { type JSONType, jsonEvent, type ResolvedEvent } from '@eventstore/db-client'
import type { EventToAppend, StoredEvent } from '../../../application/ports/event-log.ts'
import type { SentEvent } from '../recently-sent.ts'

/** The client takes and gives JSON as values; these are the texts' values. */
interface EventValues {
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

/** An event as the client gives it, with its texts. @param sent them, where it was sent here. */
export function storedEvent({ event }: ResolvedEvent, sent?: SentEvent): StoredEvent {
  const { position, streamId, revision, id, type, data, metadata } = event!
  return {
    position: position!.commit,
    stream: streamId,
    revision: Number(revision),
    eventId: id,
    type,
    ...(sent ?? { data: textOf(data), metadata: textOf(metadata) }),
  }
}

/** Other programs' events may have no metadata, or other data than JSON. */
function textOf(value: unknown): string {
  if (value === undefined) return ''
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : JSON.stringify(value)
}
