import type { Application } from '../commands/application.ts'
import { eventsOf } from '../commands/events-of.ts'
import { TimeSlice } from '../commands/time-slices.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import type { LogMemory } from '../ports/log-memory.ts'
import {
  CHAIN_START,
  type ChainLink,
  type ChainProblem,
  checkLink,
  HashChains,
  linkOf,
} from './chain-verification.ts'
import type { Witnessed } from './checkpoint-note.ts'
import type { TreeCheck, TreeDifference, TreeProblem } from './tree-check.ts'

/** What a check of the log found. */
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
  /** Signed checkpoints that the log was held against. */
  readonly checkpoints: number
  /** Of each witness that is trusted the last of these checkpoints that it signed. */
  readonly witnesses: readonly Witnessed[]
  /** Root of the tree over the events checked, base64; null of a single stream. */
  readonly root_hash: string | null
  readonly first_problem: AuditProblem | null
}

/**
 * Beside those of a stream: `missing_positions` before this event; `missing_end`: the log ends before what was read of
 * it; `unknown_signature`: no key that is trusted has signed a checkpoint, or a cosignature is not its witness's; `replaced_events`: an event that was read is not there, or fewer stand before it than were counted; `cut_stream`:
 * somebody cut or deleted it by the engine's own means.
 */
export type LogProblem =
  | ChainProblem
  | TreeProblem
  | 'missing_positions'
  | 'missing_end'
  | 'unknown_signature'
  | 'replaced_events'
  | 'cut_stream'

export interface AuditProblem {
  readonly position: string
  /** Null: of the log as a whole. */
  readonly stream: string | null
  readonly revision: number | null
  readonly event_id: string | null
  readonly problem: LogProblem
}

/** Two pages at a time are in memory; EventStoreDB does not bound their bytes. */
const READ_PAGE = 200

/** Checks the hash chain of one stream. @returns null when there is no such stream. */
export async function verifyStream(
  app: Pick<Application, 'log'>,
  stream: string,
): Promise<AuditReport | null> {
  const head = await app.log.head()
  let last: ChainLink = CHAIN_START
  let position = LOG_START
  for await (const event of eventsOf(app.log, stream)) {
    const problem = problemOf(event, checkLink(last, event))
    const counts = { events: event.revision + 1, streams: 1, head }
    if (problem) return report(counts, event.position, linkOf(event), problem)
    last = linkOf(event)
    position = event.position
  }
  if (last.revision < 0) return null
  return report({ events: last.revision + 1, streams: 1, head }, position, last, null)
}

/**
 * Checks the whole log up to the head at the time of the call: the hash chains of all streams, that no position is left
 * out where the engine has none to spare, that no stream was cut, and that what was read and counted of it before is
 * still there. What is whole is remembered with its count. Memory does not grow with the log.
 */
export async function verifyLog(
  app: { readonly log: EventLog; readonly memory: LogMemory; readonly tree: TreeCheck },
  signal?: AbortSignal,
): Promise<AuditReport> {
  // in this order: meanwhile the log moves on, before what is remembered of it
  const { marks, reached } = await app.memory.recall()
  const { tree } = app
  const head = await app.log.head()
  const chains = new HashChains(async (places) => {
    const reads = places.map(({ stream, revision }) =>
      app.log.readStream(stream, { from: revision, maxCount: 1 }),
    )
    return (await Promise.all(reads)).flat()
  })
  let events = 0
  let streams = 0
  let after = LOG_START
  let last: ChainLink | null = null
  let lastEvent: StoredEvent | null = null
  let next = 0
  const slice = new TimeSlice()
  const read = (from: bigint) => {
    const page = app.log.readAll({ after: from, maxCount: READ_PAGE })
    // it is waited for later, or not at all
    page.catch(() => undefined)
    return page
  }
  for (let reading = read(after); after < head; ) {
    signal?.throwIfAborted()
    const page = await reading
    const isLast = page.atHead || page.checkpoint >= head
    // the store reads on while this page is checked
    if (!isLast) reading = read(page.checkpoint)
    await chains.prepare(page.events)
    for (const event of page.events) {
      if (event.position > head) break
      const turn = slice.over()
      if (turn) await turn
      const isNext = !app.log.isGapless || event.position === (lastEvent?.position ?? LOG_START) + 1n
      const problem = problemOf(event, isNext ? chains.check(event) : 'missing_positions')
      events += 1
      if (event.revision === 0) streams += 1
      last = linkOf(event)
      lastEvent = event
      const counts = { events, streams, head, tree }
      if (problem) {
        const cut = await cutOf(app.log)
        const found = cut?.stream === event.stream ? cut : problem
        return report(counts, event.position, last, found)
      }
      const taken = tree.take(event)
      const difference = taken instanceof Promise ? await taken : taken
      if (difference) {
        return report(counts, event.position, last, (await cutOf(app.log)) ?? problemOfTree(difference))
      }
      for (let mark = marks[next]; mark && mark.position <= event.position; mark = marks[++next]) {
        const isThere = mark.position === event.position && mark.eventId === event.eventId
        if (!isThere || (mark.events ?? events) !== events) {
          const replaced = problemOfLog(mark.position, 'replaced_events', mark.eventId)
          return report(counts, event.position, last, (await cutOf(app.log)) ?? replaced)
        }
      }
    }
    after = page.checkpoint
    if (isLast) break
  }
  const upTo = lastEvent?.position ?? LOG_START
  const [mark] = marks.slice(next)
  const lost = mark?.position ?? (reached > head ? reached : null)
  const missing = lost === null ? null : problemOfLog(lost, 'missing_end', mark?.eventId ?? null)
  const difference = missing ? null : await tree.finish()
  const problem = (await cutOf(app.log)) ?? missing ?? (difference && atEnd(difference, upTo))
  if (!problem && lastEvent) {
    await app.memory.remember({ position: upTo, eventId: lastEvent.eventId, events })
  }
  return report({ events, streams, head, tree }, upTo, last, problem)
}

/** A stream that was cut: what it lacks since would read as lost. */
async function cutOf(log: EventLog): Promise<AuditProblem | null> {
  const cut = await log.findCut()
  return cut && { ...problemOfLog(cut.position, 'cut_stream', null), stream: cut.stream }
}

function problemOfLog(position: bigint, problem: LogProblem, event_id: string | null): AuditProblem {
  return { position: String(position), stream: null, revision: null, event_id, problem }
}

function atEnd(found: NonNullable<Awaited<ReturnType<TreeCheck['finish']>>>, upTo: bigint): AuditProblem {
  if (found === 'unknown_signature') return problemOfLog(upTo, found, null)
  return 'missing' in found ? problemOfLog(upTo, 'missing_end', found.missing) : problemOfTree(found)
}

function problemOfTree({ problem, at, eventId }: TreeDifference): AuditProblem {
  const { position, stream, revision } = at
  return { position: String(position), stream, revision, event_id: eventId, problem }
}

function problemOf(event: StoredEvent, problem: LogProblem | null): AuditProblem | null {
  if (problem === null) return null
  const { position, stream, revision, eventId } = event
  return { position: String(position), stream, revision, event_id: eventId, problem }
}

function report(
  counted: { events: number; streams: number; head: bigint; tree?: TreeCheck },
  upTo: bigint,
  last: ChainLink | null,
  problem: AuditProblem | null,
): AuditReport {
  const { events, streams, head, tree } = counted
  return {
    verified: problem === null,
    events,
    streams,
    up_to: String(upTo),
    last_hash: last?.hash || null,
    head: String(head),
    checkpoints: tree?.compared ?? 0,
    witnesses: tree?.witnesses ?? [],
    root_hash: tree?.root.toString('base64') ?? null,
    first_problem: problem,
  }
}
