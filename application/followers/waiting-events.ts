import type { EventLog, StoredEvent } from '../ports/event-log.ts'

/**
 * What a parked stream is replayed from: its events of some types, in order from the first that could not be applied up
 * to where everything else was.
 * @param options.maxCount how many events at the most; fewer are the last ones.
 */
export async function waitingEvents(
  log: Pick<EventLog, 'readStream'>,
  stream: string,
  options: { from: number; upTo: bigint; types: ReadonlySet<string>; maxCount: number },
): Promise<readonly StoredEvent[]> {
  const { upTo, types, maxCount } = options
  const waiting: StoredEvent[] = []
  for (let from = options.from; ; ) {
    const page = await log.readStream(stream, { from, maxCount })
    for (const event of page) {
      if (event.position > upTo || waiting.length === maxCount) return waiting
      if (types.has(event.type)) waiting.push(event)
    }
    if (page.length < maxCount) return waiting
    from = page.at(-1)!.revision + 1
  }
}
