import type { EventLog, StoredEvent } from '../ports/event-log.ts'

/** Reads a stream to its end, from a revision on. @param options.pageSize events that are read at once. */
export async function* eventsOf(
  log: Pick<EventLog, 'readStream'>,
  stream: string,
  { from = 0, pageSize = 100 } = {},
): AsyncGenerator<StoredEvent, void, undefined> {
  for (let next = from; ; ) {
    const page = await log.readStream(stream, { from: next, maxCount: pageSize })
    yield* page
    if (page.length < pageSize) return
    next = page.at(-1)!.revision + 1
  }
}
