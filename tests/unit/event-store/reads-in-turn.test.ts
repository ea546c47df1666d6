import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readsInTurn } from '../../../infrastructure/event-store/eventstoredb/reads-in-turn.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const answers = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms))
const fails = (ms: number, reason: string) => () =>
  new Promise<void>((_, reject) => setTimeout(() => reject(new Error(reason)), ms))

/** Asks for them together. @returns how often each ended how, and after how many milliseconds all had ended. */
async function outcomesOf(reads: readonly (() => Promise<void>)[]) {
  const inTurn = readsInTurn()
  const began = performance.now()
  const ended = Promise.all(
    reads.map((read) =>
      inTurn(read).then(
        () => 'answered',
        (error: Error) => error.message,
      ),
    ),
  ).then((outcomes) => ({ outcomes, ms: performance.now() - began }))
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  while (!isOver) await vi.advanceTimersToNextTimerAsync()
  const { outcomes, ms } = await ended
  const counts = new Map<string, number>()
  for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  return { counts: Object.fromEntries(counts), ms }
}
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

test('makes 16 at once', async () => {
  let atOnce = 0
  let most = 0
  const read = async () => {
    atOnce += 1
    most = Math.max(most, atOnce)
    await answers(10)()
    atOnce -= 1
  }
  await outcomesOf(times(100, read))
  expect(most).toBe(16)
})

test('refuses none of a server that is slow and alive', async () => {
  const { counts, ms } = await outcomesOf(times(320, answers(1_000)))
  expect(counts).toEqual({ answered: 320 })
  expect(ms).toBe(20_000)
})

test('gives those up that wait behind a silent server, for the reason of those before', async () => {
  const { counts, ms } = await outcomesOf(times(320, fails(10_000, 'no answer')))
  expect(counts).toEqual({ 'no answer': 320 })
  expect(ms).toBe(10_000)
})

test('counts the silence from the last success on', async () => {
  const { counts, ms } = await outcomesOf([
    ...times(160, answers(1_000)),
    ...times(160, fails(5_000, 'no answer')),
  ])
  expect(counts).toEqual({ answered: 160, 'no answer': 160 })
  expect(ms).toBe(20_000)
})

test('one stream that cannot be read is no concern of the others', async () => {
  const { counts } = await outcomesOf([
    ...times(160, answers(1_000)),
    fails(1_000, 'access denied'),
    ...times(159, answers(1_000)),
  ])
  expect(counts).toEqual({ answered: 319, 'access denied': 1 })
})

test('who asks anew after a failure has a read made', async () => {
  const inTurn = readsInTurn()
  const first = inTurn(fails(20_000, 'no answer')).catch((error: Error) => error.message)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await first).toBe('no answer')
  const second = inTurn(answers(1))
  await vi.advanceTimersByTimeAsync(1)
  await expect(second).resolves.toBeUndefined()
})
