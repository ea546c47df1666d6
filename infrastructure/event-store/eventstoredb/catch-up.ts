import type { LogPage, StoredEvent } from '../../../application/ports/event-log.ts'
import type { EventStoreConnection } from './connection.ts'
import { type Following, follow } from './following.ts'
import { storedEvent } from './wire.ts'

/** Size of the data after which a page ends although it has fewer events than asked for. */
const PAGE_BYTES = 4 * 1024 * 1024
/** Pages that may be ready before the server is told to wait. */
const READY_PAGES = 2
/** While something is expected of it, the server may be silent for so long, in milliseconds. */
const SILENCE_LIMIT_MS = 10_000

/**
 * Reads the log from a position to where it ended when it was asked for, filtered by the server, page by page. The
 * server is held back while the consumer works: a subscription that has caught up would be cut off for that, but this
 * one ends there.
 * @param options.upTo position that the log is known to reach.
 * @throws EventStoreUnavailable; what was yielded until then is right, and `after` its last checkpoint goes on.
 */
export async function* catchUp(
  connection: EventStoreConnection,
  options: {
    after: bigint
    upTo: bigint
    types?: readonly string[] | undefined
    pageSize: number
    signal: AbortSignal
  },
): AsyncGenerator<LogPage, void, undefined> {
  const { upTo, pageSize, signal } = options
  const pages: LogPage[] = []
  let events: StoredEvent[] = []
  let bytes = 0
  let checkpoint = options.after
  let told = options.after
  let finished = false
  let paused = false
  let failure: Error | undefined
  let wake: () => void = () => undefined
  let following: Following | undefined

  const cut = () => {
    if (events.length === 0 && checkpoint <= told) return
    pages.push({ events, checkpoint, atHead: false })
    told = checkpoint
    events = []
    bytes = 0
    wake()
    if (pages.length >= READY_PAGES && !paused) {
      paused = true
      following?.pause()
    }
  }
  const reach = (position: bigint) => {
    // the server's own events may stand behind the log's last one: a checkpoint never lies behind its end
    const reached = position < upTo ? position : upTo
    if (reached > checkpoint) checkpoint = reached
    if (checkpoint >= upTo) finish()
  }
  const finish = () => {
    if (finished) return
    finished = true
    // all of it was there when the subscription began
    if (upTo > checkpoint) checkpoint = upTo
    cut()
    following?.end()
    wake()
  }

  following = await follow(connection, options, {
    event(recorded) {
      if (finished) return
      const event = storedEvent(recorded)
      events.push(event)
      bytes += recorded.dataBytes
      checkpoint = event.position
      if (events.length >= pageSize || bytes >= PAGE_BYTES) cut()
      if (checkpoint >= upTo) finish()
    },
    checkpoint(position) {
      if (finished) return
      reach(position)
      cut()
    },
    caughtUp: finish,
  })
  if (paused) following.pause()
  if (finished) following.end()
  const followed = following
  followed.ended.catch((error: Error) => {
    failure = error
    wake()
  })
  const watch = setInterval(() => {
    if (!paused && performance.now() - followed.heardAt() >= SILENCE_LIMIT_MS) followed.giveUp()
  }, 1_000)
  // a consumer that ends while it works on a page may never come back to say so
  const release = () => {
    clearInterval(watch)
    signal.removeEventListener('abort', release)
    finished = true
    followed.end()
    pages.length = 0
    events = []
    wake()
  }
  signal.addEventListener('abort', release)
  if (signal.aborted) release()
  try {
    while (!signal.aborted) {
      const page = pages.shift()
      if (page) {
        yield page
        continue
      }
      if (finished) return
      // what arrived before the failure is on its way to the consumer first
      if (failure) throw failure
      if (paused) {
        paused = false
        followed.resume()
      } else if (events.length > 0) {
        // rather a small page than a consumer that waits
        cut()
        continue
      }
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } finally {
    release()
  }
}
