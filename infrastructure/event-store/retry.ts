import { type Backoff, backOff } from '../../application/followers/backoff.ts'

/** Between attempts to reach a server. */
const RECONNECTING: Backoff = { firstMs: 50, mostMs: 1_000 }

/** Waits before the next attempt; no longer when `signal` aborts. @param attempt from 0. */
export function retryPause(attempt: number, signal?: AbortSignal): Promise<void> {
  return backOff(attempt + 1, RECONNECTING, signal)
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
