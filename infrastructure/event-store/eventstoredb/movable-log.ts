import { MAX_APPEND_BYTES, type StoredEvent } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveInterrupted } from '../../../application/ports/movable-log.ts'
import { AppendStream } from './append-stream.ts'
import { EventStoreConnection } from './connection.ts'
import { Conflict, EventStoreRefused, EventStoreUnavailable, StreamTampered } from './errors.ts'
import { LogReader } from './log-reader.ts'
import { storedEvent } from './wire.ts'

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
  const reading = new EventStoreConnection(url)
  const writing = new EventStoreConnection(url)
  const closing = new AbortController()
  const reader = new LogReader(reading, PATIENCE_MS, closing.signal)
  const appends = new AppendStream(writing)
  const close = async () => {
    closing.abort()
    appends.close()
    await Promise.all([reading.close(), writing.close()])
  }
  try {
    await new LogReader(reading, OPENING_PATIENCE_MS, closing.signal).head()
  } catch (error) {
    await close()
    throw error
  }
  return {
    name: `EventStoreDB at ${reading.target}`,
    readPage: (options) => orInterrupted(() => reader.page(options)),
    eventAt: (stream, revision) =>
      orInterrupted(async () => {
        const [event] = await reader.stream(stream, { from: revision, maxCount: 1 })
        return event?.revision === revision ? storedEvent(event) : null
      }),
    head: () => orInterrupted(() => reader.head()),
    write: (events) => orInterrupted(() => writeInOrder(appends, events)),
    close,
  }
}

/**
 * Sends all events at once over the one stream of appends, whose order the server keeps. Nothing is sent again here:
 * after a failure it has to be looked at what was stored, lest something overtakes what was lost.
 */
async function writeInOrder(appends: AppendStream, events: readonly StoredEvent[]): Promise<void> {
  const sent = runsOf(events).map(async (run) => {
    const first = run[0]!
    const last = run.at(-1)!
    const { revision } = await appends.append(first.stream, first.revision - 1, run)
    if (revision !== last.revision) {
      throw new StreamTampered(first.stream, `revision ${last.revision} came out as ${revision}`)
    }
  })
  const failed = (await Promise.allSettled(sent)).find((one) => one.status === 'rejected')
  if (failed) throw failed.reason
}

/** Consecutive events of one stream, as far as they fit into one append. */
function runsOf(events: readonly StoredEvent[]): StoredEvent[][] {
  const runs: StoredEvent[][] = []
  let run: StoredEvent[] = []
  let bytes = 0
  for (const event of events) {
    const size = Buffer.byteLength(event.data) + Buffer.byteLength(event.metadata) + EVENT_OVERHEAD_BYTES
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

async function orInterrupted<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EventStoreRefused) throw error
    // a conflict: an append of before was on its way still
    if (error instanceof EventStoreUnavailable || error instanceof Conflict) {
      throw new MoveInterrupted(error.message)
    }
    throw error
  }
}
