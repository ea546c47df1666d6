import { expect } from 'vitest'
import type { Answer } from './seed.ts'

/** Seconds of refill that a bucket holds. */
const BURST_SECONDS = 2
const AT_ONCE = 50

/** Sends things, many at once, until one is refused: a slow machine sends more of them. @returns all answers. */
export async function untilRefused<Sent extends { readonly status: number }>(
  send: (n: number) => Promise<Sent>,
): Promise<readonly Sent[]> {
  const answers: Sent[] = []
  while (!answers.some(({ status }) => status === 429)) {
    const sent = Array.from({ length: AT_ONCE }, (_, n) => send(answers.length + n))
    answers.push(...(await Promise.all(sent)))
  }
  return answers
}

/**
 * {@link untilRefused} with the same thing. Checks that the burst passed, and no more than the rate allows in the time that
 * it took.
 * @param perSecond tokens that come back.
 * @param before tokens that were taken already, and since when, in milliseconds of `performance`.
 */
export async function untilLimited(
  perSecond: number,
  send: () => Promise<Answer>,
  before = { tokens: 0, since: performance.now() },
): Promise<{ readonly passed: readonly Answer[]; readonly limited: Answer }> {
  const answers = await untilRefused(send)
  const passed = answers.filter(({ status }) => status !== 429)
  const tokens = before.tokens + passed.length
  const seconds = (performance.now() - before.since) / 1000
  expect(tokens).toBeGreaterThanOrEqual(perSecond * BURST_SECONDS)
  expect(tokens).toBeLessThanOrEqual(Math.ceil(perSecond * (BURST_SECONDS + seconds)))
  return { passed, limited: answers.find(({ status }) => status === 429)! }
}
