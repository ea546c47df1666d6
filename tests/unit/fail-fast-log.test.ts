import { beforeEach, expect, test } from 'vitest'
import { type EventLog, EventLogUnavailable } from '../../application/ports/event-log.ts'
import { FailFastLog } from '../../infrastructure/event-store/fail-fast.ts'

/** What the log was asked, in order. */
let asked: string[]
/** Ends a read that waits. */
let answerStream: (() => void)[]
let log: FailFastLog

/** Whether the log answers the question for its head. */
let isThere: boolean

beforeEach(() => {
  asked = []
  answerStream = []
  isThere = true
  const slow = {
    readStream(stream: string) {
      asked.push(stream)
      return new Promise((resolve) => answerStream.push(() => resolve([])))
    },
    head() {
      asked.push('head')
      // what was asked of a server that is away is never answered
      return isThere ? Promise.resolve(7n) : new Promise(() => undefined)
    },
    close: async () => undefined,
  } as unknown as EventLog
  log = new FailFastLog(slow, { askAfterMs: 5, answerMs: 5 })
  return () => log.close()
})

const failed = (read: Promise<unknown>) =>
  read.then(
    () => null,
    (error: unknown) => error,
  )

test('a read of a log that is slow and answers is waited for', async () => {
  const read = log.readStream('slow')
  // it was asked several times whether it is there
  await expect.poll(() => asked.length).toBeGreaterThan(3)
  answerStream[0]!()
  expect(await read).toEqual([])
  expect(new Set(asked)).toEqual(new Set(['slow', 'head']))
})

test('reads of a log that does not answer fail together, further ones at once, until it answers', async () => {
  isThere = false
  const errors = await Promise.all(['a', 'b', 'c'].map((stream) => failed(log.readStream(stream))))
  for (const error of errors) expect(error).toBeInstanceOf(EventLogUnavailable)
  expect((errors[0] as EventLogUnavailable).passes).toBe(true)
  const before = asked.length
  expect(await failed(log.readStream('d'))).toBeInstanceOf(EventLogUnavailable)
  expect(await failed(log.head())).toBeInstanceOf(EventLogUnavailable)
  expect(asked.slice(before).filter((what) => what === 'd')).toEqual([])

  isThere = true
  await expect.poll(() => failed(log.head())).toBeNull()
})

test('a log whose answers come is not asked', async () => {
  const quick = log.readStream('quick')
  answerStream[0]!()
  await quick
  const slow = log.readStream('slow')
  await expect.poll(() => asked).toContain('head')
  answerStream[1]!()
  await slow
  expect(asked.slice(0, 3)).toEqual(['quick', 'slow', 'head'])
})

test('a log that answers another read is waited for, however long its line', async () => {
  isThere = false
  const slow = log.readStream('slow')
  // each look sees an answer
  for (let looks = 1; looks <= 5; looks += 1) {
    await expect.poll(() => asked.filter((what) => what === 'head').length, { interval: 1 }).toBe(looks)
    const quick = log.readStream('quick')
    answerStream.at(-1)!()
    await quick
  }
  isThere = true
  answerStream[0]!()
  expect(await slow).toEqual([])
})

test('a server that answers every look too late is not away for ever', async () => {
  const hung = new Promise<never>(() => undefined)
  const busy = { head: async () => 7n, readStream: () => hung, close: async () => undefined }
  const ask = () => new Promise((resolve) => setTimeout(resolve, 40))
  log = new FailFastLog(busy as unknown as EventLog, { ask, askAfterMs: 5, answerMs: 5 })
  expect(await failed(log.readStream('hung'))).toBeInstanceOf(EventLogUnavailable)
  expect(await failed(log.head())).toBeInstanceOf(EventLogUnavailable)
  await expect.poll(() => failed(log.head())).toBeNull()
})
