import {
  type EventToAppend,
  EventTooLarge,
  MAX_APPEND_BYTES,
  MAX_EVENT_BYTES,
} from '../../application/ports/event-log.ts'

const LARGEST_NAME = 512
const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Refuses what the log cannot take. @returns the size of the append in bytes. */
export function checkAppend(stream: string, events: readonly EventToAppend[]): number {
  checkName('stream', stream)
  const ids = new Set<string>()
  let bytes = 0
  for (const event of events) {
    checkName('event type', event.type)
    if (!EVENT_ID.test(event.eventId)) throw new TypeError('An event id must be a UUID in lower case')
    if (ids.has(event.eventId)) throw new TypeError(`Event id ${event.eventId} stands twice in one append`)
    ids.add(event.eventId)
    if (!event.metadata.startsWith('{') || !event.metadata.endsWith('}')) {
      throw new TypeError(`The metadata of an event of type ${event.type} is no JSON object`)
    }
    const size = Buffer.byteLength(event.data) + Buffer.byteLength(event.metadata)
    if (size > MAX_EVENT_BYTES) throw new EventTooLarge(event.type, size)
    bytes += size
  }
  if (bytes > MAX_APPEND_BYTES) throw new EventTooLarge(events[0]!.type, bytes, MAX_APPEND_BYTES)
  return bytes
}

function checkName(what: string, name: string): void {
  if (name === '' || Buffer.byteLength(name) > LARGEST_NAME || name.includes('\0')) {
    throw new TypeError(`A ${what} must be 1 to ${LARGEST_NAME} bytes without NUL`)
  }
}
