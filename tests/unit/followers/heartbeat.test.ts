import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Heartbeat } from '../../../infrastructure/ownership/heartbeat.ts'

const TTL = 1_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** A lease whose store answers when it is told to. */
function heartbeat() {
  const asked: { answer(): Promise<void>; fail(): Promise<void> }[] = []
  const lapsed = vi.fn()
  const renew = () =>
    new Promise<void>((resolve, reject) => {
      const then = (settle: () => void) => async () => {
        settle()
        await turn()
      }
      asked.push({ answer: then(resolve), fail: then(() => reject(new Error('no answer'))) })
    })
  const beating = new Heartbeat(TTL, renew, lapsed)
  onTestFinished(() => beating.stop())
  return { beating, asked, lapsed }
}

/** Time goes by; beats come every quarter of the time to live. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= TTL / 4) {
    vi.advanceTimersByTime(Math.min(left, TTL / 4))
    await turn()
  }
}

/** Time goes by of which this process sees nothing. */
function standStill(ms: number): void {
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ms)
}

describe('a heartbeat', () => {
  test('believes an answer, however late it comes', async () => {
    const { asked, lapsed } = heartbeat()
    await pass(TTL / 4)
    await pass(TTL * 0.9)
    expect(asked).toHaveLength(1)
    await asked[0]!.answer()
    await pass(TTL / 4)
    expect(lapsed).not.toHaveBeenCalled()
  })

  test('asks after it has stood still, before it believes the lease lost', async () => {
    const { asked, lapsed } = heartbeat()
    await pass(TTL / 4)
    await asked[0]!.answer()
    standStill(10 * TTL)
    await pass(TTL / 4)
    await asked[1]!.answer()
    await pass(TTL / 2)
    expect(lapsed).not.toHaveBeenCalled()
  })

  test('asks once more when a question that was asked in time failed late', async () => {
    const { asked, lapsed } = heartbeat()
    await pass(TTL / 4)
    await pass(TTL * 0.9)
    await asked[0]!.fail()
    expect(asked).toHaveLength(2)
    await asked[1]!.answer()
    await pass(TTL / 4)
    expect(lapsed).not.toHaveBeenCalled()
  })

  test('believes the lease lost that may have run out when nobody answers, and tells so once', async () => {
    const { asked, lapsed } = heartbeat()
    for (let question = 0; question < 3; question += 1) {
      await pass(TTL / 4)
      await asked[question]!.fail()
    }
    expect(lapsed).not.toHaveBeenCalled()
    for (let question = 3; question < 6; question += 1) {
      await pass(TTL / 4)
      await asked[question]!.fail()
    }
    expect(lapsed).toHaveBeenCalledTimes(1)
  })

  test('tells again of a lease that was renewed and lost once more', async () => {
    const { asked, lapsed } = heartbeat()
    const failAll = async (first: number) => {
      for (let question = first; question < first + 5; question += 1) {
        await pass(TTL / 4)
        await asked[question]!.fail()
      }
    }
    await failAll(0)
    await pass(TTL / 4)
    await asked[5]!.answer()
    await failAll(6)
    expect(lapsed).toHaveBeenCalledTimes(2)
  })

  test('waits for no answer longer than the time to live', async () => {
    const { lapsed } = heartbeat()
    await pass(TTL)
    expect(lapsed).not.toHaveBeenCalled()
    await pass(TTL / 2)
    expect(lapsed).toHaveBeenCalledTimes(1)
  })

  test('asks for nothing when it has ended', async () => {
    const { beating, asked, lapsed } = heartbeat()
    await pass(TTL / 4)
    beating.stop()
    await asked[0]!.fail()
    await pass(TTL * 3)
    expect(asked).toHaveLength(1)
    expect(lapsed).not.toHaveBeenCalled()
  })
})
