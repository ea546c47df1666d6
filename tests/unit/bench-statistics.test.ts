import { describe, expect, it } from 'vitest'
import { cells } from '../../bench/report.ts'
import { eachInTurns, inTurns, median, medianRatio, throughput, verdict } from '../../bench/statistics.ts'

describe('median', () => {
  it('is the middle value, whatever the order', () => {
    expect(median([9, 1, 5])).toBe(5)
  })

  it('is the mean of the two middle values of an even number', () => {
    expect(median([4, 1, 100, 2])).toBe(3)
  })

  it('refuses an empty list', () => {
    expect(() => median([])).toThrow(RangeError)
  })
})

describe('inTurns', () => {
  it('lets every contender run once per round, each first in turn, and takes medians', async () => {
    const order: string[] = []
    const contender = (name: string, values: readonly number[]) => async (round: number) => {
      order.push(name)
      return values[round]!
    }

    const medians = await inTurns(3, { a: contender('a', [1, 50, 3]), b: contender('b', [7, 8, 9]) })

    expect(medians).toEqual({ a: 3, b: 8 })
    expect(order).toEqual(['a', 'b', 'b', 'a', 'a', 'b'])
  })
})

describe('eachInTurns', () => {
  it('tells every round, so that rounds can be compared one by one', async () => {
    const measured = await eachInTurns(3, {
      a: async (round) => [2, 30, 4][round]!,
      b: async (round) => [1, 60, 1][round]!,
    })

    expect(measured).toEqual({ a: [2, 30, 4], b: [1, 60, 1] })
    expect(medianRatio(measured.a, measured.b)).toBe(2)
  })
})

describe('throughput', () => {
  it('does every piece once and never more at once than asked for', async () => {
    const done: number[] = []
    let running = 0
    let most = 0

    const rate = await throughput(10, 3, async (index) => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      done.push(index)
    })

    expect(done.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(most).toBe(3)
    expect(rate).toBeGreaterThan(0)
  })

  it('fails when a piece fails', async () => {
    await expect(throughput(2, 1, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  })
})

describe('verdict', () => {
  it('holds a ratio against the least that is wanted', () => {
    const target = { kind: 'at least', ratio: 0.6, unit: 'percent' } as const
    expect(verdict(target, 0.6)).toBe('met')
    expect(verdict(target, 0.5999)).toBe('MISSED')
  })

  it('holds a value against a limit that it must stay below', () => {
    const target = { kind: 'below', value: 150, unit: 'MiB' } as const
    expect(verdict(target, 149.9)).toBe('met')
    expect(verdict(target, 150)).toBe('MISSED')
  })

  it('says nothing where nothing is wanted', () => {
    expect(verdict({ kind: 'none' }, 0)).toBe('')
  })
})

describe('a row of the result', () => {
  const row = { work: 'append', ours: '20/s', peer: { name: 'peer', value: '10/s' }, ratio: 2 } as const

  it('shows the ratio in the unit of its target', () => {
    const times = cells({ ...row, target: { kind: 'at least', ratio: 3, unit: 'times' } })
    expect(times).toMatchObject({ peer: '10/s peer', ratio: '2.00x', target: '>= 3x', verdict: 'MISSED' })
    const percent = cells({ ...row, target: { kind: 'at least', ratio: 0.6, unit: 'percent' } })
    expect(percent).toMatchObject({ ratio: '200 %', target: '>= 60 %', verdict: 'met' })
  })

  it('holds an absolute target against the value, whatever the ratio', () => {
    const late = cells({ ...row, ratio: 0.04, target: { kind: 'below', value: 1, unit: 's' }, value: 1.2 })
    expect(late).toMatchObject({ ratio: '0.04x', target: '< 1 s', verdict: 'MISSED' })
  })

  it('shows no ratio without a peer', () => {
    const alone = cells({
      ...row,
      peer: null,
      ratio: null,
      target: { kind: 'below', value: 6, unit: 's' },
      value: 5.9,
    })
    expect(alone).toMatchObject({ peer: '', ratio: '', target: '< 6 s', verdict: 'met' })
  })
})
