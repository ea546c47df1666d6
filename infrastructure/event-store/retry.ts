import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

const LONGEST_BACKOFF_MS = 1_000

/** Waits before the next attempt, longer each time, and not as long as others do; no longer when `signal` aborts. */
export async function retryPause(attempt: number, signal?: AbortSignal): Promise<void> {
  const longest = Math.min(50 * 2 ** attempt, LONGEST_BACKOFF_MS)
  const options = signal ? { signal } : {}
  await delay(longest / 2 + randomInt(Math.ceil(longest / 2)), undefined, options).catch(() => undefined)
}

/**
 * Repeats work that fails in a way that may pass.
 * @param options.patienceMs for how long, in milliseconds; default as often as `attempts` says.
 * @throws its last failure.
 */
export async function retried<T>(
  work: () => Promise<T>,
  options: {
    mayPass: (error: unknown) => boolean
    patienceMs: number
    attempts?: number
    signal: AbortSignal
  },
): Promise<T> {
  const { mayPass, patienceMs, attempts = Number.POSITIVE_INFINITY, signal } = options
  const deadline = performance.now() + patienceMs
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      const isOver = attempt >= attempts || performance.now() > deadline || signal.aborted
      if (isOver || !mayPass(error)) throw error
      await retryPause(attempt - 1, signal)
    }
  }
}
