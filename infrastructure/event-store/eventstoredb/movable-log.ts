import { WrongExpectedVersionError } from '@eventstore/db-client'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import { MAX_APPEND_BYTES, type StoredEvent } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveInterrupted, MoveRefused } from '../../../application/ports/movable-log.ts'
import { type Appends, shareAppends } from './appends.ts'
import { connect } from './client.ts'
import { passes } from './errors.ts'
import { LogReader } from './log-reader.ts'
import { readsInTurn } from './reads-in-turn.ts'
import { eventToSend, parsed } from './stored-texts.ts'

const PATIENCE_MS = 10_000
const OPENING_PATIENCE_MS = 3_000
/** Of one append. */
const MOST_EVENTS = 500
/** What an event takes beside data and metadata, at the most: names, id, content type, lengths. */
const EVENT_OVERHEAD_BYTES = 1_200

/**
 * Opens a log to be moved.
 * @throws EventStoreUnavailable when the server cannot be reached, or refuses.
 */
export async function openMovableEventStoreLog(url: string): Promise<MovableLog> {
  const connection = connect(url)
  const { appends, release } = shareAppends(url)
  const [opened, closing] = [new AbortController(), new AbortController()]
  const reader = new LogReader(connection, appends, technicalDeadline(PATIENCE_MS), closing.signal)
  try {
    await new LogReader(connection, appends, technicalDeadline(OPENING_PATIENCE_MS), opened.signal).head()
  } catch (error) {
    await Promise.all([release(), connection.client.dispose()])
    throw error
  } finally {
    opened.abort()
  }
  return {
    name: `EventStoreDB at ${connection.target}`,
    readPage: (options) => orInterrupted(() => reader.page(options)),
    eventsAt: (places) =>
      orInterrupted(async () => {
        const inTurn = readsInTurn()
        const read = places.map(({ stream, revision: from }) =>
          reader.stream(stream, { from, maxCount: 1 }, inTurn),
        )
        const found = await Promise.all(read)
        return found.flatMap((events, n) => events.filter(({ revision }) => revision === places[n]!.revision))
      }),
    findCut: () => orInterrupted(() => reader.findCut()),
    isGapless: false,
    head: () => orInterrupted(() => reader.head()),
    write: (events) => orInterrupted(() => writeInOrder(appends, reader, events)),
    async close() {
      closing.abort()
      await Promise.all([release(), connection.client.dispose()])
    },
  }
}

/**
 * Sends all events at once in their order, which client and server keep. Nothing is sent again here: after a failure it
 * has to be looked at what was stored, lest something overtakes what was lost.
 */
async function writeInOrder(
  appends: Appends,
  reader: LogReader,
  events: readonly StoredEvent[],
): Promise<void> {
  const runs = runsOf(events).map((run) => {
    const { stream, revision } = run[0]!
    const sent = run.map(({ eventId, type, data, metadata }) =>
      eventToSend(eventId, type, parsed(type, data), parsed(type, metadata) as object),
    )
    const bytes = run.reduce((sum, event) => sum + bytesOf(event), 0)
    return { stream, revision: revision - 1, events: sent, bytes }
  })
  const outcomes = await Promise.allSettled(runs.map((run) => appends.append(run)))
  const failed = outcomes.find((one) => one.status === 'rejected')
  if (failed) throw failed.reason
  for (const [n, outcome] of outcomes.entries()) {
    const { stream, revision, events } = runs[n]!
    // ids that the server has had before: it says where the events would stand, and has stored nothing
    if (outcome.status === 'rejected' || outcome.value.position !== undefined) continue
    const last = events.at(-1)!.id
    const [there] = await reader.stream(stream, { from: revision + events.length, maxCount: 1 })
    if (there?.eventId === last) continue
    throw new MoveRefused(
      `Stream ${stream} was deleted in EventStoreDB at ${appends.target}, which takes its events for stored: take an ` +
        'empty target',
    )
  }
}

/** Consecutive events of one stream, as far as they fit into one append. */
function runsOf(events: readonly StoredEvent[]): StoredEvent[][] {
  const runs: StoredEvent[][] = []
  let run: StoredEvent[] = []
  let bytes = 0
  for (const event of events) {
    const size = bytesOf(event)
    const isNext = run.at(-1)?.stream === event.stream && run.length < MOST_EVENTS
    if (!isNext || bytes + size > MAX_APPEND_BYTES) {
      run = []
      bytes = 0
      runs.push(run)
    }
    run.push(event)
    bytes += size
  }
  return runs
}

function bytesOf({ data, metadata }: StoredEvent): number {
  return Buffer.byteLength(data) + Buffer.byteLength(metadata) + EVENT_OVERHEAD_BYTES
}

async function orInterrupted<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    // a conflict: an append of before was on its way still
    if (passes(error) || error instanceof WrongExpectedVersionError) throw new MoveInterrupted(error.message)
    throw error
  }
}
