import { waitingEvents } from '../../application/following/waiting-events.ts'
import type { EventLog, StoredEvent } from '../../application/ports/event-log.ts'
import { type GenerationWriter, parkedBy, RefusedPage } from './generation-writer.ts'
import type { ParkedStream } from './store.ts'

const PAGE = 200

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
 * @returns how many of its events were applied.
 */
export async function redriveStream(redrive: Redrive, parked: ParkedStream): Promise<number> {
  const { writer, write } = redrive
  const { stream } = parked
  let applied = 0
  for (let from = parked.revision; ; ) {
    const page = await heldBack(redrive, stream, from)
    for (const event of page) {
      from = event.revision + 1
      try {
        if (!(await applyOne(redrive, event, parked))) return applied
      } catch (error) {
        if (!(error instanceof RefusedPage)) throw error
        await writer.recover()
        writer.park(parkedBy(event, 'data', error.message, parked.attempts + 1))
        await write([])
        return applied
      }
      applied += 1
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
  const { stream, position, revision } = event
  writer.free(stream)
  await writer.apply([event], async () => undefined)
  const again = writer.parked.get(stream)
  writer.free(stream)
  writer.park(
    again ? { ...again, attempts: parked.attempts + 1 } : { ...parked, position, revision: revision + 1 },
  )
  await write([])
  return again === undefined
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
