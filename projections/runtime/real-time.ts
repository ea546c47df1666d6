/**
 * Real time for waits, backoff and rates: how long something takes, never what time it is. What a
 * projection writes depends on events alone, so the service's clock has no part in the runtime.
 */

/** Milliseconds since some fixed moment; only differences mean anything. */
export function elapsed(): number {
  return performance.now()
}

/** Waits real milliseconds, or until `signal` aborts, whichever comes first. Never throws. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}
