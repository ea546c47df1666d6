import type { EventLog, LogPage } from '../../application/ports/event-log.ts'
import type { LiveFeed } from './live-feed.ts'
import { retryPause } from './retry.ts'

/** What of the log is read, and until when. */
export interface PagesOptions {
  readonly types?: readonly string[] | undefined
  readonly pageSize: number
  readonly signal: AbortSignal
}

/** What an engine offers to readers that follow its log. */
export interface FollowedLog {
  readonly feed: LiveFeed
  /** Ends its readers. */
  readonly closing: AbortSignal
  /** Has the feed hold events of these types from its end on, all where none are named. @returns how to end that. */
  want(types: readonly string[] | undefined): () => void
  head(): Promise<bigint>
  /**
   * Reads from a position to another that the log reaches, or further. It may fail: it is asked again, from the last
   * checkpoint on.
   */
  pages(after: bigint, upTo: bigint, options: PagesOptions): AsyncIterable<LogPage>
  /** Hears of each failure before it is tried again. @throws it where that does not help. */
  failed(error: unknown, attempt: number): void
}

/**
 * Follows a log as {@link EventLog.subscribe} says: what lies before the feed is read from the engine, the rest comes
 * from the feed.
 */
export async function* followLog(
  log: FollowedLog,
  options: Parameters<EventLog['subscribe']>[0],
): AsyncGenerator<LogPage, void, undefined> {
  const { feed } = log
  const { types, pageSize } = options
  const signal = AbortSignal.any([options.signal, log.closing])
  const wanted = types && new Set(types)
  let position = options.after
  let release: (() => void) | undefined
  let wasAtHead = false
  try {
    for (let attempt = 0; !signal.aborted && !feed.closed; ) {
      try {
        if (!release) {
          // a feed that nobody wanted anything of goes on where the log ends now
          if (feed.isResting) feed.announce(await untilAborted(log.head(), signal))
          release = log.want(types)
          // a consumer that is ended while it works on a page may never come back to say so
          signal.addEventListener('abort', release)
        }
        const page = feed.after(position, pageSize, wanted)
        if (page === 'behind') {
          for await (const one of log.pages(position, feed.to, { types, pageSize, signal })) {
            attempt = 0
            position = one.checkpoint
            wasAtHead ||= one.atHead
            yield one
          }
        } else if (!wasAtHead && (page === 'nothing' || page.atHead)) {
          // the feed may be a moment behind other processes, and being at the head is to be true when first told
          const head = await untilAborted(log.head(), signal)
          feed.announce(head)
          await feed.beyond(head - 1n, signal)
          wasAtHead = true
          const isAtHead = feed.after(position, 1, wanted) === 'nothing' && !signal.aborted && !feed.closed
          if (isAtHead) yield { events: [], checkpoint: position, atHead: true }
        } else if (page === 'nothing') {
          await feed.beyond(position, signal)
        } else {
          position = page.checkpoint
          yield page
        }
        attempt = 0
      } catch (error) {
        if (signal.aborted) return
        log.failed(error, attempt)
        await retryPause(attempt, signal)
        attempt += 1
      }
    }
  } finally {
    if (release) signal.removeEventListener('abort', release)
    release?.()
  }
}

/** What a promise brings. @throws when the signal aborts first. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
