import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Heartbeat } from '../../../application/followers/heartbeat.ts'

const TTL = 1_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A store that answers when it is told to, and what it is told. */
function heartbeat() {
  const asked: { answer(standing: readonly string[]): Promise<void>; fail(): Promise<void> }[] = []
  const lost: string[] = []
  const beating = new Heartbeat<string>({
    ttlMs: TTL,
    renew: () =>
      new Promise((resolve, reject) => {
        asked.push({
          answer: async (standing) => {
            resolve((held) => standing.includes(held))
            await turn()
          },
          fail: async () => {
            reject(new Error('no answer'))
            await turn()
          },
        })
      }),
    lost: (held) => lost.push(held),
  })
  return { beating, asked, lost }
}

/** Time goes by; beats come every quarter of the time to live. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= TTL / 4) {
    vi.advanceTimersByTime(Math.min(left, TTL / 4))
    await turn()
  }
}

describe('a heartbeat', () => {
  test('believes an answer, however late it comes', async () => {
    const { beating, asked, lost } = heartbeat()
    beating.keep('a', performance.now())
    beating.keep('b', performance.now())
    await pass(TTL / 4)
    await pass(TTL * 0.9)
    expect([asked.length, lost]).toEqual([1, []])
    await asked[0]!.answer(['a'])
    expect(lost).toEqual(['b'])
  })

  test('asks after it has stood still, before it believes anything lost', async () => {
    const { beating, asked, lost } = heartbeat()
    beating.keep('a', performance.now() - 10 * TTL)
    await pass(TTL / 4)
    await asked[0]!.answer(['a'])
    await pass(TTL / 2)
    expect([asked.length > 1, lost]).toEqual([true, []])
  })

  test('asks once more when a question that was asked in time failed late', async () => {
    const { beating, asked, lost } = heartbeat()
    beating.keep('a', performance.now())
    await pass(TTL / 4)
    await pass(TTL * 0.9)
    await asked[0]!.fail()
    expect([asked.length, lost]).toEqual([2, []])
    await asked[1]!.answer(['a'])
    await pass(TTL / 4)
    expect(lost).toEqual([])
  })

  test('believes lost what may have run out when nobody answers', async () => {
    const { beating, asked, lost } = heartbeat()
    beating.keep('a', performance.now())
    for (let question = 0; question < 3; question += 1) {
      await pass(TTL / 4)
      await asked[question]!.fail()
    }
    expect(lost).toEqual([])
    await pass(TTL / 4)
    await asked[3]!.fail()
    expect(lost).toEqual(['a'])
  })

  test('waits for no answer longer than the time to live', async () => {
    const { beating, lost } = heartbeat()
    beating.keep('a', performance.now())
    await pass(TTL)
    expect(lost).toEqual([])
    await pass(TTL / 2)
    expect(lost).toEqual(['a'])
  })

  test('asks for nothing that was given back', async () => {
    const { beating, asked, lost } = heartbeat()
    beating.keep('a', performance.now())
    await pass(TTL / 4)
    beating.drop('a')
    await asked[0]!.answer([])
    await pass(TTL * 3)
    expect([asked.length, lost]).toEqual([1, []])
  })
})
