/** How often is looked, in milliseconds. */
const INTERVAL_MS = 2_000
/** Looks in a row that must find a problem: a new leader of a cluster needs a moment to know all that it holds. */
const LOOKS = 5

/** Watches that the log stays the one that the database follows. */
export interface LogWatch {
  /** Resolves with the problem: another log was put in its place under the running service. */
  readonly problem: Promise<string>
  stop(): void
}

/**
 * Begins to watch. What is appended to a log that went back would be read by nobody, since every reader is beyond it.
 * @param look finds what is wrong, null when nothing is; when it rejects, nothing is known.
 * @param options.intervalMs real milliseconds between two looks.
 */
export function watchLog(
  look: () => Promise<string | null>,
  options: { readonly intervalMs?: number } = {},
): LogWatch {
  let timer: NodeJS.Timeout | undefined
  const problem = new Promise<string>((resolve) => {
    let misses = 0
    let looking = false
    const lookOnce = async () => {
      if (looking) return
      looking = true
      try {
        const found = await look()
        misses = found === null ? 0 : misses + 1
        if (found !== null && misses >= LOOKS) resolve(found)
      } catch {
        // not reachable: readiness tells
      } finally {
        looking = false
      }
    }
    timer = setInterval(() => void lookOnce(), options.intervalMs ?? INTERVAL_MS)
    timer.unref()
  })
  return { problem, stop: () => clearInterval(timer) }
}
