import { setTimeout as delay } from 'node:timers/promises'
import type { LogPage } from './ports/event-log.ts'

/**
 * Pages of a subscription, and null whenever the next one takes longer than its follower can wait without storing how
 * far it is. When the follower stops, however it does, the subscription ends.
 * @param patienceMs how long the follower can wait now, in real milliseconds; null: as long as it takes.
 */
export async function* pagesInTime(
  subscription: AsyncIterable<LogPage>,
  patienceMs: () => number | null,
): AsyncGenerator<LogPage | null, void, undefined> {
  const pages = subscription[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = pages.next()
      // awaited below; until then nobody else looks at it
      next.catch(() => undefined)
      for (;;) {
        const patience = patienceMs()
        if (patience === null || (await settlesWithin(next, patience))) break
        yield null
      }
      const page = await next
      if (page.done) return
      yield page.value
    }
  } finally {
    // not waited for: it may itself be waiting for a server that does not answer
    void pages.return?.()?.catch(() => undefined)
  }
}

/** Whether a promise settles before the time is up. */
async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController()
  try {
    return await Promise.race([
      promise.then(
        () => true,
        () => true,
      ),
      delay(Math.max(0, ms), false, { signal: timer.signal }),
    ])
  } finally {
    timer.abort()
  }
}
