import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { WorkHint, WorkQueue } from '../../../application/ports/work-queue.ts'

/** A work queue as two processes hold it: the same object inside one process, one each between processes. */
export interface WorkQueueUnderTest {
  readonly here: WorkQueue
  readonly there: WorkQueue
  close(): Promise<void>
}

/** Hints at kinds that no other test has. */
export function hintsAt(count: number): WorkHint[] {
  const processManager = randomUUID()
  return Array.from({ length: count }, (_, n) => ({ processManager, kind: `kind-${n}` }))
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

    test('brings a hint as it was offered, also to who has asked before', async () => {
      const [before, after] = hintsAt(2) as [WorkHint, WorkHint]
      const asked = queue.there.next(never)
      expect(await queue.here.offer([before])).toBe(true)
      expect(await asked).toEqual(before)
      await queue.there.offer([after])
      expect(await queue.here.next(never)).toEqual(after)
    })

    test('brings as many hints as were offered, those first that were offered first', async () => {
      const [first, second] = hintsAt(2) as [WorkHint, WorkHint]
      const offered = [...Array(10).fill(first), ...Array(10).fill(second)]
      await queue.here.offer(offered.slice(0, 10))
      await queue.here.offer(offered.slice(10))
      const taken: (WorkHint | null)[] = []
      while (taken.length < offered.length) taken.push(await queue.there.next(never))
      expect(taken).toEqual(offered)
    })

    test('brings each hint to one of all who wait', async () => {
      const hints = hintsAt(40)
      const taken: WorkHint[] = []
      const all = new AbortController()
      const take = async (from: WorkQueue) => {
        for (let hint = await from.next(all.signal); hint; hint = await from.next(all.signal)) {
          taken.push(hint)
          if (taken.length === hints.length) all.abort()
        }
      }
      const waits = [take(queue.here), take(queue.there)]
      for (const hint of hints) await queue.here.offer([hint])
      await Promise.all(waits)
      const kinds = (of: readonly WorkHint[]) => of.map(({ kind }) => kind).sort()
      expect(kinds(taken)).toEqual(kinds(hints))
    })

    test('keeps nothing back from the next when a wait is given up', async () => {
      const impatient = new AbortController()
      const given = queue.there.next(impatient.signal)
      impatient.abort()
      expect(await given).toBeNull()
      expect(await queue.there.next(impatient.signal)).toBeNull()
      const [only] = hintsAt(1)
      await queue.here.offer([only!])
      expect(await queue.there.next(never)).toEqual(only)
    })
  })
}
