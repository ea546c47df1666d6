import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OfferedWork, TakenOffer, WorkQueue } from '../../application/ports/work-queue.ts'

/** A work queue as two processes hold it: the same object inside one process, one each between processes. */
export interface WorkQueueUnderTest {
  readonly here: WorkQueue
  readonly there: WorkQueue
  close(): Promise<void>
}

/** A piece of a process manager that no other test has. */
export function pieces(count: number): OfferedWork[] {
  const run = randomUUID()
  return Array.from({ length: count }, (_, n) => ({
    ...{ processManager: 'parcels', kind: 'deliver', key: `${run}/${n}`, version: `v${n}` },
  }))
}

/** Offers pieces one by one to two workers who take them one by one. @returns who took which. */
export async function takenBy(
  queue: WorkQueueUnderTest,
  offered: readonly OfferedWork[],
): Promise<readonly { readonly by: 'here' | 'there'; readonly key: string }[]> {
  const taken: { readonly by: 'here' | 'there'; readonly key: string }[] = []
  const all = new AbortController()
  const work = async (by: 'here' | 'there') => {
    for (;;) {
      const offer = await queue[by].next(all.signal)
      if (!offer) return
      taken.push({ by, key: offer.work.key })
      offer.acknowledge()
      if (taken.length === offered.length) all.abort()
    }
  }
  const workers = [work('here'), work('there')]
  for (const one of offered) await queue.here.offer([one])
  await Promise.all(workers)
  return taken
}

/** What every adapter of {@link WorkQueue} does. */
export function workQueueContract(name: string, open: () => Promise<WorkQueueUnderTest>): void {
  describe(`work queue ${name}`, () => {
    let queue: WorkQueueUnderTest
    const never = new AbortController().signal
    beforeAll(async () => {
      queue = await open()
    })
    afterAll(async () => {
      await queue?.close()
    })
    const take = async (from: WorkQueue): Promise<TakenOffer> => {
      const offer = await from.next(never)
      if (!offer) throw new Error('the queue ended')
      return offer
    }

    test('brings an offer as it was made, also to who has asked before', async () => {
      const [before, after] = pieces(2) as [OfferedWork, OfferedWork]
      const asked = take(queue.there)
      expect(await queue.here.offer([before])).toBe(true)
      const first = await asked
      expect(first.work).toEqual(before)
      first.acknowledge()
      await queue.there.offer([after])
      const second = await take(queue.here)
      expect(second.work).toEqual(after)
      second.acknowledge()
    })

    test('brings offers in order', async () => {
      const offered = pieces(20)
      await queue.here.offer(offered.slice(0, 10))
      await queue.here.offer(offered.slice(10))
      const taken: OfferedWork[] = []
      for (let n = 0; n < offered.length; n += 1) {
        const offer = await take(queue.there)
        taken.push(offer.work)
        offer.acknowledge()
      }
      expect(new Set(taken)).toEqual(new Set(offered))
      expect(taken.findIndex(({ key }) => key === offered[0]!.key)).toBeLessThan(10)
    })

    test('brings each offer to one of all who wait', async () => {
      const offered = pieces(40)
      const taken = await takenBy(queue, offered)
      expect(taken.map(({ key }) => key).sort()).toEqual(offered.map(({ key }) => key).sort())
    })

    test('keeps nothing back from the next when a wait is given up', async () => {
      const impatient = new AbortController()
      const given = queue.there.next(impatient.signal)
      impatient.abort()
      expect(await given).toBeNull()
      expect(await queue.there.next(impatient.signal)).toBeNull()
      const [only] = pieces(1)
      await queue.here.offer([only!])
      const offer = await take(queue.there)
      expect(offer.work).toEqual(only)
      offer.acknowledge()
    })
  })
}
