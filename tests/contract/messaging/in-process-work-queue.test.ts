import { expect, test } from 'vitest'
import { InProcessWorkQueue } from '../../../infrastructure/messaging/in-process/work-queue.ts'
import { hintsAt, workQueueContract } from './work-queue.contract.ts'

workQueueContract('in one process', async () => {
  const queue = new InProcessWorkQueue()
  return { here: queue, there: queue, close: async () => undefined }
})

test('a queue that is full says so, and keeps what came before', async () => {
  const queue = new InProcessWorkQueue()
  const offered = hintsAt(10_001)
  expect(await queue.offer(offered.slice(0, 10_000))).toBe(true)
  expect(await queue.offer(offered.slice(10_000))).toBe(false)
  expect(await queue.next(new AbortController().signal)).toEqual(offered[0])
  expect(await queue.offer(offered.slice(10_000))).toBe(true)
})
