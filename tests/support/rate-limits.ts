import { expect } from 'vitest'
import type { Answer } from './seed.ts'

/** Seconds of refill that a bucket holds. */
const BURST_SECONDS = 2
const AT_ONCE = 50

/**
 * Sends the same thing, many at once, until one is refused: a slow machine sends more of them. Checks that the burst
 * passed, and no more than the rate allows in the time that it took.
 * @param perSecond tokens that come back.
 * @param cost tokens of each.
 */
export async function untilLimited(
  perSecond: number,
  send: () => Promise<Answer>,
  cost = 1,
): Promise<{ readonly passed: readonly Answer[]; readonly limited: Answer }> {
  const passed: Answer[] = []
  const began = performance.now()
  for (;;) {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, send))
    passed.push(...answers.filter(({ status }) => status !== 429))
    const limited = answers.find(({ status }) => status === 429)
    if (!limited) continue
    const tokens = passed.length * cost
    const seconds = (performance.now() - began) / 1000
    expect(tokens).toBeGreaterThanOrEqual(perSecond * BURST_SECONDS)
    expect(tokens).toBeLessThanOrEqual(perSecond * (BURST_SECONDS + seconds) + cost)
    return { passed, limited }
  }
}
