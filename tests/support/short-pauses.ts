import { vi } from 'vitest'

/** What takes longer is a deadline, in milliseconds. */
const LONGEST_PAUSE = 1_000
const TIMES_FASTER = 20

/**
 * Pauses between tries (`setTimeout` of a second at the most) pass twenty times faster: for what comes to the same however
 * long somebody waits, as nobody is there who would answer.
 * @returns what ends it: `onTestFinished(shortPauses())`, or `beforeEach(shortPauses)`.
 */
export function shortPauses(): () => void {
  const { setTimeout } = globalThis
  const shorter = (ms = 0) => (ms > LONGEST_PAUSE ? ms : ms / TIMES_FASTER)
  const pause = (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
    setTimeout(run, shorter(ms), ...args)
  const timer = vi.spyOn(globalThis, 'setTimeout').mockImplementation(pause as typeof setTimeout)
  return () => timer.mockRestore()
}
