import type { Application } from '../application.ts'
import {
  CHAIN_START,
  type ChainLink,
  type ChainProblem,
  checkLink,
  HashChains,
  linkOf,
} from '../chain-verification.ts'
import { LOG_START, type StoredEvent } from '../ports/event-log.ts'

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
  readonly problem: ChainProblem
}

const READ_PAGE = 100

/** Checks the hash chain of one stream. @returns null when there is no such stream. */
export async function verifyStream(
  app: Pick<Application, 'log'>,
  stream: string,
): Promise<AuditReport | null> {
  const head = await app.log.head()
  let last: ChainLink = CHAIN_START
  let position = LOG_START
  for (let from = 0; ; from = last.revision + 1) {
    const page = await app.log.readStream(stream, { from, maxCount: READ_PAGE })
    for (const event of page) {
      const problem = problemOf(event, checkLink(last, event))
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
  const chains = new HashChains(
    async (stream, revision) => (await app.log.readStream(stream, { from: revision, maxCount: 1 }))[0],
  )
  let events = 0
  let streams = 0
  let after = LOG_START
  let last: ChainLink | null = null
  while (after < head) {
    signal?.throwIfAborted()
    const page = await app.log.readAll({ after, maxCount: READ_PAGE })
    for (const event of page.events) {
      if (event.position > head) return report({ events, streams, head }, head, last, null)
      const problem = problemOf(event, await chains.check(event))
      events += 1
      if (event.revision === 0) streams += 1
      last = linkOf(event)
      if (problem) return report({ events, streams, head }, event.position, last, problem)
    }
    after = page.checkpoint
    if (page.atHead) break
  }
  return report({ events, streams, head }, after, last, null)
}

function problemOf(event: StoredEvent, problem: ChainProblem | null): AuditProblem | null {
  if (problem === null) return null
  const { position, stream, revision, eventId } = event
  return { position: String(position), stream, revision, event_id: eventId, problem }
}

function report(
  { events, streams, head }: { events: number; streams: number; head: bigint },
  upTo: bigint,
  last: ChainLink | null,
  problem: AuditProblem | null,
): AuditReport {
  return {
    verified: problem === null,
    events,
    streams,
    up_to: String(upTo),
    last_hash: last?.hash || null,
    head: String(head),
    first_problem: problem,
  }
}
