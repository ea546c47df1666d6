import type { Application } from '../application.ts'
import { RecentlyUsed } from '../command-handling/recently-used.ts'
import { LOG_START, type StoredEvent } from '../ports/event-log.ts'
import { NO_PREDECESSOR, splitHash, verifyEvent } from '../ports/hash-chain.ts'

/** What a check of the hash chains found. */
export interface AuditReport {
  readonly verified: boolean
  /** Events checked. */
  readonly events: number
  /** Streams whose first event was among them. */
  readonly streams: number
  /** Position of the last event checked, as a decimal string. */
  readonly up_to: string
  /** Hash of the last event checked, as stored; null when there was none or it has none. */
  readonly last_hash: string | null
  /** Position of the last event of the log when the check began, as a decimal string. */
  readonly head: string
  readonly first_problem: AuditProblem | null
}

export interface AuditProblem {
  readonly position: string
  readonly stream: string
  readonly revision: number
  readonly event_id: string
  /** `no_hash`, `hash_mismatch` (event or predecessor changed), or `missing_events` before this one. */
  readonly problem: 'no_hash' | 'hash_mismatch' | 'missing_events'
}

const READ_PAGE = 100
/** Streams whose last hash is kept at hand; the predecessor of others is read from the log. */
const STREAMS_AT_HAND = 50_000

/** Checks the hash chain of one stream. @returns null when there is no such stream. */
export async function verifyStream(
  app: Pick<Application, 'log'>,
  stream: string,
): Promise<AuditReport | null> {
  const head = await app.log.head()
  let last: Link = { revision: -1, hash: NO_PREDECESSOR }
  let position = LOG_START
  for (let from = 0; ; from = last.revision + 1) {
    const page = await app.log.readStream(stream, { from, maxCount: READ_PAGE })
    for (const event of page) {
      const problem = check(last, event)
      if (problem) {
        return report(
          { events: event.revision + 1, streams: 1, head },
          event.position,
          linkOf(event),
          problem,
        )
      }
      last = linkOf(event)
      position = event.position
    }
    if (page.length < READ_PAGE) break
  }
  if (last.revision < 0) return null
  return report({ events: last.revision + 1, streams: 1, head }, position, last, null)
}

/**
 * Checks the hash chains of all streams, in log order, up to the head at the time of the call.
 * Memory does not grow with the log.
 */
export async function verifyLog(app: Pick<Application, 'log'>, signal?: AbortSignal): Promise<AuditReport> {
  const head = await app.log.head()
  const links = new RecentlyUsed<string, Link>(STREAMS_AT_HAND)
  let events = 0
  let streams = 0
  let after = LOG_START
  let last: Link | null = null
  while (after < head) {
    signal?.throwIfAborted()
    const page = await app.log.readAll({ after, maxCount: READ_PAGE })
    for (const event of page.events) {
      if (event.position > head) return report({ events, streams, head }, head, last, null)
      const before =
        links.get(event.stream) ??
        (await predecessor(app, event)) ??
        ({ revision: -1, hash: NO_PREDECESSOR } as Link)
      const problem = check(before, event)
      events += 1
      if (event.revision === 0) streams += 1
      last = linkOf(event)
      if (problem) return report({ events, streams, head }, event.position, last, problem)
      links.set(event.stream, last)
    }
    after = page.checkpoint
    if (page.atHead) break
  }
  return report({ events, streams, head }, after, last, null)
}

/** The last checked event of a stream. */
interface Link {
  readonly revision: number
  readonly hash: string
}

function linkOf(event: StoredEvent): Link {
  return { revision: event.revision, hash: splitHash(event.metadata)?.hash ?? '' }
}

/** The event before, from the log: it was checked earlier and is no longer at hand. */
async function predecessor(app: Pick<Application, 'log'>, event: StoredEvent): Promise<Link | null> {
  if (event.revision === 0) return null
  const [before] = await app.log.readStream(event.stream, { from: event.revision - 1, maxCount: 1 })
  return before ? linkOf(before) : null
}

function check(before: Link, event: StoredEvent): AuditProblem | null {
  const problem =
    event.revision !== before.revision + 1
      ? 'missing_events'
      : splitHash(event.metadata) === null
        ? 'no_hash'
        : verifyEvent(before.hash, event)
          ? null
          : 'hash_mismatch'
  if (problem === null) return null
  const { position, stream, revision, eventId } = event
  return { position: String(position), stream, revision, event_id: eventId, problem }
}

function report(
  { events, streams, head }: { events: number; streams: number; head: bigint },
  upTo: bigint,
  last: Link | null,
  problem: AuditProblem | null,
): AuditReport {
  return {
    verified: problem === null,
    ...{ events, streams },
    up_to: String(upTo),
    last_hash: last?.hash || null,
    head: String(head),
    first_problem: problem,
  }
}
