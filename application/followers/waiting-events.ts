import type { EventLog, StoredEvent } from '../ports/event-log.ts'

const PAGE = 100

/** What a parked stream is replayed from: its events of some types from a revision on, up to a position, page by page. */
export async function* waitingEvents(
  log: Pick<EventLog, 'readStream'>,
  stream: string,
  options: { readonly from: number; readonly upTo: bigint; readonly types: ReadonlySet<string> },
): AsyncGenerator<readonly StoredEvent[], void, undefined> {
  const { upTo, types } = options
  for (let { from } = options; ; ) {
    const page = await log.readStream(stream, { from, maxCount: PAGE })
    const waiting = page.filter(({ position, type }) => position <= upTo && types.has(type))
    if (waiting.length > 0) yield waiting
    if (page.length < PAGE || page.at(-1)!.position > upTo) return
    from = page.at(-1)!.revision + 1
  }
}
