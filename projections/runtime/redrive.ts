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
 * Replays one parked stream from its first event that could not be applied up to the checkpoint, in order. What cannot be
 * applied yet stays parked.
 * @returns how many of its events were applied.
 */
export async function redriveStream(redrive: Redrive, parked: ParkedStream): Promise<number> {
  const { writer, write } = redrive
  const { stream } = parked
  let applied = 0
  let alone = false
  writer.free(stream)
  for (let next: ParkedStream | null = parked; next; ) {
    const from: ParkedStream = next
    const limit = alone ? 1 : PAGE
    // one more: what the stream is parked by while the rest of it waits
    const page = await heldBack(redrive, stream, from.revision, limit + 1)
    let failed: ParkedStream | null
    let count: number
    try {
      failed = await apply(redrive, page.slice(0, limit), from)
      count = writer.pending
      const rest = page[limit]
      next = failed ?? (rest ? parkedBy(rest, from.category, from.message, from.attempts) : null)
      if (next) writer.park(next)
      await write(next ? [] : [stream])
    } catch (error) {
      if (!(error instanceof RefusedPage)) throw error
      await writer.recover()
      if (alone) {
        writer.park(parkedBy(error.last, 'data', error.message, from.attempts + 1))
        await write([])
        return applied
      }
      writer.free(stream)
      next = from
      alone = true
      continue
    }
    applied += count
    if (failed) return applied
    writer.free(stream)
  }
  return applied
}

/** Counts the events of a parked stream that wait. */
export async function countWaiting(redrive: Redrive, parked: ParkedStream): Promise<number> {
  let count = 0
  for (let { revision } = parked; ; ) {
    const page = await heldBack(redrive, parked.stream, revision, PAGE)
    count += page.length
    if (page.length < PAGE) return count
    revision = page.at(-1)!.revision + 1
  }
}

/** Folds events of one stream up to the first that fails. @returns how the stream is parked again, or null. */
async function apply(
  { writer }: Redrive,
  events: readonly StoredEvent[],
  before: ParkedStream,
): Promise<ParkedStream | null> {
  for (const stored of events) {
    await writer.apply([stored], async () => undefined)
    const again = writer.parked.get(stored.stream)
    if (!again) continue
    writer.free(stored.stream)
    return { ...again, attempts: before.attempts + 1 }
  }
  return null
}

function heldBack({ log, writer }: Redrive, stream: string, from: number, maxCount: number) {
  return waitingEvents(log, stream, { from, upTo: writer.stored, types: writer.types, maxCount })
}
