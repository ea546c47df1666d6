import {
  type EventToAppend,
  EventTooLarge,
  MAX_APPEND_BYTES,
  MAX_EVENT_BYTES,
} from '../../application/ports/event-log.ts'

const LARGEST_NAME = 512
/** What a name must not have: it would come back as another. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** Refuses what the log cannot take. @returns the size of the append in bytes. */
export function checkAppend(stream: string, events: readonly EventToAppend[]): number {
  checkName('stream', stream)
  if (events.length === 0) throw new TypeError('An append has at least one event')
  let bytes = 0
  for (const event of events) {
    checkName('event type', event.type)
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
  if (
    name === '' ||
    Buffer.byteLength(name) > LARGEST_NAME ||
    name.includes('\0') ||
    LONE_SURROGATE.test(name)
  ) {
    throw new TypeError(`A ${what} must be 1 to ${LARGEST_NAME} bytes of well-formed text without NUL`)
  }
}
