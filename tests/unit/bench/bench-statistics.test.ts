import { describe, expect, it } from 'vitest'
import { cells, pooled, type Row } from '../../../bench/report.ts'
import {
  fasterOf,
  inTurns,
  median,
  percentile,
  spread,
  throughput,
  verdict,
} from '../../../bench/statistics.ts'
import { passes } from '../../../bench/timesheets.ts'

const figures = (...values: number[]) => values.map((value) => ({ value }))

describe('median', () => {
  it('is the middle value, or the mean of the two middle ones, whatever the order', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([4, 1, 100, 2])).toBe(3)
    expect(() => median([])).toThrow(RangeError)
  })
})

describe('percentile', () => {
  it('is the value that so large a share does not exceed', () => {
    const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
    expect(percentile(hundred, 0.5)).toBe(50)
    expect(percentile(hundred, 0.99)).toBe(99)
    expect(percentile([7], 0.99)).toBe(7)
    expect(percentile([], 0.99)).toBe(0)
  })
})

describe('inTurns', () => {
  it('lets every contender run once per round, each first in turn, and tells every round', async () => {
    const order: string[] = []
    const contender = (name: string, values: readonly number[]) => async (round: number) => {
      order.push(name)
      return { value: values[round]! }
    }

    const measured = await inTurns(3, { a: contender('a', [1, 50, 3]), b: contender('b', [7, 8, 9]) })

    expect(measured).toEqual({ a: figures(1, 50, 3), b: figures(7, 8, 9) })
    expect(order).toEqual(['a', 'b', 'b', 'a', 'a', 'b'])
  })
})

describe('fasterOf', () => {
  it('takes the faster way of each round', () => {
    expect(fasterOf(figures(1, 5), figures(2, 4))).toEqual(figures(2, 5))
  })
})

describe('throughput', () => {
  it('does every piece once and never more at once than asked for', async () => {
    const done: number[] = []
    let running = 0
    let most = 0

    const { value, p50, p99 } = await throughput(10, 3, async (index) => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      done.push(index)
    })

    expect(done.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(most).toBe(3)
    expect(value).toBeGreaterThan(0)
    expect(p99).toBeGreaterThanOrEqual(p50)
  })

  it('fails when a piece fails', async () => {
    await expect(throughput(2, 1, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  })
})

describe('a log to catch up with', () => {
  const appended = (interleaved: boolean) => passes({ streams: 3, events: 4, interleaved })

  it('holds the same events in either layout, each stream in its order', () => {
    for (const interleaved of [true, false]) {
      const revisions = new Map<string, number>()
      for (const { id, count, revision } of appended(interleaved).flat()) {
        expect(revisions.get(id) ?? -1).toBe(revision)
        revisions.set(id, revision + count)
      }
      expect([...revisions.values()]).toEqual([3, 3, 3])
    }
  })

  it('is interleaved by one event of every stream at a time, the same way each time it is made', () => {
    for (const pass of appended(true)) expect(new Set(pass.map(({ id }) => id)).size).toBe(3)
    expect(appended(true)).toEqual(appended(true))
    expect(appended(false)).toHaveLength(1)
  })
})

describe('verdict', () => {
  const atLeast = { kind: 'at least', ratio: 0.6, unit: 'percent' } as const
  const atMost = { kind: 'at most', ratio: 3 } as const
  const below = { kind: 'below', value: 150 } as const

  it.each([
    { rule: 'the least wanted, reached by all', target: atLeast, rounds: [0.9, 0.6, 0.7], says: 'met' },
    { rule: 'it, reached by none', target: atLeast, rounds: [0.5999, 0.3, 0.2], says: 'MISSED' },
    { rule: 'it, missed by the lowest', target: atLeast, rounds: [0.59, 0.9, 0.9, 0.9], says: 'undecided' },
    { rule: 'it, reached by the highest', target: atLeast, rounds: [0.2, 0.3, 0.6], says: 'undecided' },
    { rule: 'it, reached by two rounds only', target: atLeast, rounds: [0.9, 0.9], says: 'undecided' },
    { rule: 'it, missed by one round only', target: atLeast, rounds: [0.1], says: 'undecided' },
    { rule: 'a limit with all values below', target: below, rounds: [149.9, 3, 20], says: 'met' },
    { rule: 'a limit with none below', target: below, rounds: [150, 151, 152], says: 'MISSED' },
    { rule: 'a limit with some below', target: below, rounds: [149, 150, 151], says: 'undecided' },
    { rule: 'the most that is allowed, kept by all', target: atMost, rounds: [1, 2, 3], says: 'met' },
    { rule: 'it, passed by all', target: atMost, rounds: [3.1, 4, 5], says: 'MISSED' },
    { rule: 'it, passed by some', target: atMost, rounds: [2, 3, 4], says: 'undecided' },
    { rule: 'nothing that is wanted', target: { kind: 'none' } as const, rounds: [0, 0, 0], says: '' },
  ])('on $rule: $says', ({ target, rounds, says }) => {
    expect(verdict(target, rounds)).toBe(says)
  })

  it('knows the median beside the range', () => {
    expect(spread([5, 1, 3])).toEqual({ median: 3, lowest: 1, highest: 5 })
  })
})

describe('a row of the result', () => {
  const row: Row = {
    work: 'append',
    unit: 'per second',
    ours: figures(20, 30, 24),
    peer: { name: 'peer', rounds: figures(10, 10, 12) },
    target: { kind: 'at least', ratio: 3, unit: 'times' },
  }

  it('shows the median of the ratios of all rounds, their range, and the verdict by them', () => {
    expect(cells(row)).toMatchObject({
      ours: '24/s',
      peer: '10/s peer',
      ratio: '2.00x',
      'all rounds': '2.00x to 3.00x',
      target: '>= 3x',
      verdict: 'undecided',
    })
    const percent = cells({ ...row, target: { kind: 'at least', ratio: 0.6, unit: 'percent' } })
    expect(percent).toMatchObject({ ratio: '200 %', target: '>= 60 %', verdict: 'met' })
  })

  it('shows what else was measured beside, as medians', () => {
    const ours = [
      { value: 1, p50: 4, p99: 20, served: 7, refused: 0 },
      { value: 3, p50: 6, p99: 40, served: 9, refused: 2 },
    ]
    expect(cells({ ...row, ours, peer: null }).ours).toBe(
      '2/s, p50 5.0 ms, p99 30 ms, 8/s served, 1/s refused',
    )
  })

  it('holds an absolute target against the values, whatever the peer did', () => {
    const late = cells({
      ...row,
      unit: 's',
      ours: figures(1.2, 1.1, 1.4),
      target: { kind: 'below', value: 1 },
    })
    expect(late).toMatchObject({
      ours: '1.20 s',
      ratio: '',
      'all rounds': '1.10 s to 1.40 s',
      target: '< 1 s',
      verdict: 'MISSED',
    })
  })

  it('holds the most that is allowed against the ratio', () => {
    const slow = cells({ ...row, unit: 'ms', target: { kind: 'at most', ratio: 1.5 } })
    expect(slow).toMatchObject({ ratio: '2.00x', target: '<= 1.5x', verdict: 'MISSED' })
  })

  it('is one with the same row of other runs, so that the verdict counts all rounds of all of them', () => {
    const other: Row = { ...row, ours: figures(90), peer: { name: 'peer', rounds: figures(10) } }
    const elsewhere: Row = { ...row, peer: { name: 'another', rounds: figures(10, 10, 12) } }
    const [both, alone, ...none] = pooled([row, elsewhere, other])

    expect(both).toMatchObject({ ours: figures(20, 30, 24, 90), peer: { rounds: figures(10, 10, 12, 10) } })
    expect(cells(both!)).toMatchObject({ ratio: '2.50x', 'all rounds': '2.00x to 9.00x' })
    expect(alone).toBe(elsewhere)
    expect(none).toEqual([])
  })
})
