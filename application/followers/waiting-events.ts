import { eventsOf } from '../commands/events-of.ts'
import type { EventLog, StoredEvent } from '../ports/event-log.ts'

/**
 * What a dead-lettered stream is replayed from: its events of some types from a revision on, up to a position.
 * @param options.pageSize events in a page, which the last one may lack; default 100.
 */
export async function* waitingEvents(
  log: Pick<EventLog, 'readStream'>,
  stream: string,
  options: { from: number; upTo: bigint; types: ReadonlySet<string>; pageSize?: number },
): AsyncGenerator<readonly StoredEvent[], void, undefined> {
  const { from, upTo, types, pageSize = 100 } = options
  let page: StoredEvent[] = []
  for await (const event of eventsOf(log, stream, { from })) {
    if (event.position > upTo) break
    if (types.has(event.type)) page.push(event)
    if (page.length < pageSize) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}
