import type { StoredEvent } from '../ports/event-log.ts'

/**
 * The bytes of an event in the tree: `stream NUL revision NUL event id NUL type NUL data NUL metadata` as stored, without its
 * position: a log that was moved or restored has the same tree.
 */
export function leafOf({
  stream,
  revision,
  eventId,
  type,
  data,
  metadata,
}: Omit<StoredEvent, 'position'>): string {
  return `${stream}\0${revision}\0${eventId}\0${type}\0${data}\0${metadata}`
}
