/** How often is looked, in milliseconds, and how soon again after a problem was found. */
const INTERVAL_MS = 2_000
const AGAIN_MS = 300
/** Looks in a row that must find a problem: a new leader of a cluster needs a moment to know all that it holds. */
const LOOKS = 5

/** Watches that the log stays the one that the database follows. */
export interface LogWatch {
  /** Resolves with the problem: an older log was put in its place under the running service. */
  readonly problem: Promise<string>
  /** Looks now: the connection was lost, and is there again. */
  look(): void
  stop(): void
}

/**
 * Begins to watch. What a process remembers of a log that went back never was, and what is appended there may be read by
 * none, since readers are beyond it.
 * @param look finds what is wrong, null when nothing is; when it rejects, nothing is known.
 * @param options.intervalMs real milliseconds between two looks.
 */
export function watchLog(
  look: () => Promise<string | null>,
  options: { readonly intervalMs?: number } = {},
): LogWatch {
  const { intervalMs = INTERVAL_MS } = options
  let timer: NodeJS.Timeout | undefined
  let notify: (problem: string) => void = () => undefined
  const problem = new Promise<string>((resolve) => {
    notify = resolve
  })
  let misses = 0
  let isLooking = false
  let isStopped = false
  const lookOnce = async () => {
    if (isLooking || isStopped) return
    isLooking = true
    clearTimeout(timer)
    try {
      const found = await look()
      misses = found === null ? 0 : misses + 1
      if (found !== null && misses >= LOOKS) notify(found)
    } catch {
      // not reachable: readiness tells
    }
    isLooking = false
    schedule()
  }
  const schedule = () => {
    if (isStopped) return
    timer = setTimeout(() => void lookOnce(), misses > 0 ? Math.min(AGAIN_MS, intervalMs) : intervalMs)
    timer.unref()
  }
  schedule()
  return {
    problem,
    look: () => void lookOnce(),
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
