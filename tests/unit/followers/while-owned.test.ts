import { describe, expect, test } from 'vitest'
import { type OwnedWork, whileOwned } from '../../../application/followers/while-owned.ts'
import type { Lease, Leases } from '../../../application/ports/leases.ts'

/** Leases of one name that nobody else wants. */
function someLeases() {
  const asked = { times: 0 }
  const given: { lease: Lease; lose: () => void; released: boolean }[] = []
  const leases: Leases = {
    owner: 'this process',
    async acquire(name) {
      asked.times += 1
      const lost = new AbortController()
      const one = {
        lease: {
          name,
          epoch: given.length + 1,
          lost: lost.signal,
          release: async () => {
            one.released = true
          },
        },
        lose: () => lost.abort(),
        released: false,
      }
      given.push(one)
      return one.lease
    },
    holders: async () => new Map(),
    onLapse: () => undefined,
  }
  return { leases, asked, given }
}

function owned(parts: Partial<OwnedWork> & Pick<OwnedWork, 'leases' | 'run' | 'stopping'>): Promise<void> {
  return whileOwned({
    name: 'some work',
    pauseMs: 1,
    longestPauseMs: 4,
    failed: (error) => {
      throw error
    },
    ...parts,
  })
}

describe('whileOwned', () => {
  test('counts failures until there is progress, and tells of each with the lease it had', async () => {
    const { leases, given } = someLeases()
    const stopping = new AbortController()
    const told: [string, number, number | undefined][] = []
    await owned({
      leases,
      stopping: stopping.signal,
      run: async ({ epoch }, _ended, progressed) => {
        if (epoch === 3) progressed()
        if (epoch === 5) stopping.abort()
        throw new Error(`failure ${epoch}`)
      },
      failed: (error, lease, failures) => {
        told.push([(error as Error).message, failures, lease?.epoch])
      },
    })
    expect(told).toEqual([
      ['failure 1', 1, 1],
      ['failure 2', 2, 2],
      ['failure 3', 1, 3],
      ['failure 4', 2, 4],
      ['failure 5', 3, 5],
    ])
    expect(given.every(({ released }) => released)).toBe(true)
  })

  test('ends the work whose lease is lost, and takes the lease anew', async () => {
    const { leases, given, asked } = someLeases()
    const stopping = new AbortController()
    await owned({
      leases,
      stopping: stopping.signal,
      run: async ({ epoch }, ended) => {
        if (epoch === 3) stopping.abort()
        else given[epoch - 1]!.lose()
        expect(ended.aborted).toBe(true)
      },
    })
    expect(asked.times).toBe(3)
    expect(given.every(({ released }) => released)).toBe(true)
  })

  test('does not ask for the lease while this process may not own the work', async () => {
    const { leases, asked } = someLeases()
    const stopping = new AbortController()
    let looks = 0
    await owned({
      leases,
      stopping: stopping.signal,
      mayOwn: async () => {
        looks += 1
        if (looks === 3) stopping.abort()
        return false
      },
      run: async () => undefined,
    })
    expect(asked.times).toBe(0)
  })
})
