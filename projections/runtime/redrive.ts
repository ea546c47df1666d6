import { waitingEvents } from '../../application/followers/waiting-events.ts'
import type { EventLog, StoredEvent } from '../../application/ports/event-log.ts'
import { type GenerationWriter, parkedBy, RefusedPage } from './generation-writer.ts'
import type { ParkedStream } from './store.ts'

const PAGE = 200
const REBUILD = 'an earlier event of the stream was never applied: rebuild the projection'

/** What parked streams are replayed with. */
export interface Redrive {
  readonly log: EventLog
  readonly writer: GenerationWriter
  /** Writes what was folded, with the checkpoint as it stands. */
  readonly write: (unpark: readonly string[]) => Promise<void>
}

/**
 * Replays one parked stream from its first event that could not be applied up to the checkpoint, each event in a write of
 * its own with the place where the stream goes on. What cannot be applied yet stays parked.
 *
 * An event can also fail because one before it was never applied. Where the tables hold no row that the stream's earlier
 * events change, the stream is applied from its beginning; where they hold some, they may hold too little or too much, and
 * the stream's message says that only a rebuild mends them.
 * @returns how many events were applied.
 */
export async function redriveStream(redrive: Redrive, parked: ParkedStream): Promise<number> {
  const { writer, write } = redrive
  const { stream } = parked
  let applied = 0
  for (let from = parked.revision; ; ) {
    const page = await heldBack(redrive, stream, from)
    for (const event of page) {
      from = event.revision + 1
      let events = 0
      try {
        events = (await applyOne(redrive, event, parked)) ? 1 : await applyFromStart(redrive, event)
      } catch (error) {
        if (!(error instanceof RefusedPage)) throw error
        await writer.recover()
        writer.park(parkedBy(event, 'data', error.message, parked.attempts + 1))
        await write([])
      }
      if (events === 0) return applied
      applied += events
    }
    if (page.length < PAGE) break
  }
  writer.free(stream)
  await write([stream])
  return applied
}

/** @returns whether its handler took it; the stream is parked behind it, else by it. */
async function applyOne(
  { writer, write }: Redrive,
  event: StoredEvent,
  parked: ParkedStream,
): Promise<boolean> {
  const { stream } = event
  writer.free(stream)
  await writer.apply([event], async () => undefined)
  const again = writer.parked.get(stream)
  writer.free(stream)
  writer.park(again ? { ...again, attempts: parked.attempts + 1 } : behind(event, parked))
  await write([])
  return again === undefined
}

/**
 * Applies a stream from its first event to one that its handler could not take, in one write.
 * @returns how many events that were, 0 where the stream stays parked.
 */
async function applyFromStart(redrive: Redrive, failed: StoredEvent): Promise<number> {
  const { writer, write } = redrive
  const parked = writer.parked.get(failed.stream)!
  const { stream } = parked
  const apply = async (events: readonly StoredEvent[]) => {
    await writer.apply(events, async () => undefined)
    return !writer.parked.has(stream)
  }
  writer.free(stream)
  let count = 0
  let isTaken = true
  for (let from = 0; isTaken && from < failed.revision; ) {
    const page = await heldBack(redrive, stream, from)
    const before = page.filter(({ revision }) => revision < failed.revision)
    isTaken = await apply(before)
    count += before.length
    from = before.length < PAGE ? failed.revision : before.at(-1)!.revision + 1
  }
  const isMissing = count > 0 && isTaken && (await writer.changesNewRowsOnly())
  isTaken &&= await apply([failed])
  if (isMissing && isTaken) {
    writer.park(behind(failed, parked))
    await write([])
    return count + 1
  }
  // forgets what is not written
  await writer.recover()
  if (isTaken && count > 0) {
    writer.park({ ...parked, message: `${parked.message}; ${REBUILD}` })
    await write([])
  }
  return 0
}

/** A stream that goes on behind an event. */
function behind({ position, revision }: StoredEvent, parked: ParkedStream): ParkedStream {
  return { ...parked, position, revision: revision + 1 }
}

/** Counts the events of a parked stream that wait. */
export async function countWaiting(redrive: Redrive, parked: ParkedStream): Promise<number> {
  let count = 0
  for (let { revision } = parked; ; ) {
    const page = await heldBack(redrive, parked.stream, revision)
    count += page.length
    if (page.length < PAGE) return count
    revision = page.at(-1)!.revision + 1
  }
}

function heldBack({ log, writer }: Redrive, stream: string, from: number) {
  const { stored: upTo, types } = writer
  return waitingEvents(log, stream, { from, upTo, types, maxCount: PAGE })
}
