import { hash } from 'node:crypto'
import type { StoredEvent } from '../ports/event-log.ts'

/**
 * Tamper evidence. Every stored event carries, as the last member of its metadata, the SHA-256 over
 * the hash of its predecessor in the stream and its own stored bytes:
 *
 *   SHA-256( predecessor's hash, or 32 zero bytes
 *            | stream NUL revision NUL event id NUL type NUL data NUL metadata without hash )
 *
 * with hashes as 64 hex characters and everything in UTF-8. Verification needs no key, and survives
 * the destruction of data keys because it covers ciphertext.
 */

export const NO_PREDECESSOR = '0'.repeat(64)

/** The hash of an event at a revision of a stream. */
export function chainHash(
  predecessor: string,
  stream: string,
  revision: number,
  event: Pick<StoredEvent, 'eventId' | 'type' | 'data' | 'metadata'>,
): string {
  return hash(
    'sha256',
    `${predecessor}${stream}\0${revision}\0${event.eventId}\0${event.type}\0${event.data}\0${event.metadata}`,
    'hex',
  )
}

/** Metadata JSON with the hash as its last member. */
export function withHash(metadata: string, chained: string): string {
  return metadata === '{}' ? `{"hash":"${chained}"}` : `${metadata.slice(0, -1)},"hash":"${chained}"}`
}

/** The hash of metadata that {@link withHash} made. */
export function hashOf(metadata: string): string {
  return metadata.slice(-66, -2)
}

const HASH_MEMBER = /,?"hash":"([0-9a-f]{64})"\}$/

/** Splits stored metadata into what was hashed and the hash. @returns null when it carries none. */
export function splitHash(metadata: string): { metadata: string; hash: string } | null {
  const match = HASH_MEMBER.exec(metadata)
  return match ? { metadata: `${metadata.slice(0, match.index)}}`, hash: match[1]! } : null
}

/** Whether a stored event's hash is right, given its predecessor's hash. */
export function verifyEvent(predecessor: string, event: StoredEvent): boolean {
  const split = splitHash(event.metadata)
  if (!split) return false
  return (
    split.hash ===
    chainHash(predecessor, event.stream, event.revision, { ...event, metadata: split.metadata })
  )
}
