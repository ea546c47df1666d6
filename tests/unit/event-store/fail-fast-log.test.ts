import { beforeEach, expect, test } from 'vitest'
import { type EventLog, EventLogUnavailable } from '../../../application/ports/event-log.ts'
import { FailFastLog } from '../../../infrastructure/event-store/fail-fast.ts'

/** What the log was asked, in order. */
let asked: string[]
/** Ends a read that waits. */
let answerStream: (() => void)[]
/** Gives a look the answer that the log is there, or ends it without one. */
let looks: { answer: () => void; end: (error: Error) => void }[]
let log: FailFastLog

/** What becomes of looks by themselves. */
let server: 'there' | 'away' | 'slow'

/** @param answerMs default longer than any test: a look ends by itself. */
function open(answerMs = 600_000): void {
  const slow = {
    readStream(stream: string) {
      asked.push(stream)
      return new Promise((resolve) => answerStream.push(() => resolve([])))
    },
    async head() {
      asked.push('head')
      if (server === 'away') throw new Error('refused')
      return server === 'there'
        ? 7n
        : new Promise((answer, end) => looks.push({ answer: () => answer(7n), end }))
    },
    close: async () => undefined,
  } as unknown as EventLog
  log = new FailFastLog(slow, { askAfterMs: 1, answerMs })
}

beforeEach(() => {
  asked = []
  answerStream = []
  looks = []
  server = 'there'
  return () => log.close()
})

const failed = (read: Promise<unknown>) =>
  read.then(
    () => null,
    (error: unknown) => error,
  )

test('a read of a log that is slow and answers is waited for', async () => {
  open()
  const read = log.readStream('slow')
  // it was asked several times whether it is there
  await expect.poll(() => asked.length).toBeGreaterThan(3)
  answerStream[0]!()
  expect(await read).toEqual([])
  expect(new Set(asked)).toEqual(new Set(['slow', 'head']))
})

test.each([
  ['refuses', 'away', 600_000],
  ['is silent', 'slow', 5],
] as const)(
  'reads of a log that %s fail together, further ones at once, until it answers',
  async (_, how, answerMs) => {
    server = how
    open(answerMs)
    const errors = await Promise.all(['a', 'b', 'c'].map((stream) => failed(log.readStream(stream))))
    for (const error of errors) expect(error).toBeInstanceOf(EventLogUnavailable)
    expect((errors[0] as EventLogUnavailable).passes).toBe(true)
    expect(await failed(log.readStream('d'))).toBeInstanceOf(EventLogUnavailable)
    expect(await failed(log.head())).toBeInstanceOf(EventLogUnavailable)
    expect(asked).not.toContain('d')

    server = 'there'
    await expect.poll(() => failed(log.head())).toBeNull()
  },
)

test('a log whose answers come is not asked', async () => {
  open()
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
  server = 'slow'
  open()
  const slow = log.readStream('slow')
  // while each look has no answer, another read has
  for (let look = 0; look < 5; look += 1) {
    await expect.poll(() => looks.length, { interval: 1 }).toBe(look + 1)
    const quick = log.readStream('quick')
    answerStream.at(-1)!()
    await quick
    looks[look]!.end(new Error('no connection is free'))
  }
  answerStream[0]!()
  expect(await slow).toEqual([])
})

test('a server that answers every look too late is not away for ever', async () => {
  server = 'slow'
  open(5)
  expect(await failed(log.readStream('hung'))).toBeInstanceOf(EventLogUnavailable)
  expect(await failed(log.head())).toBeInstanceOf(EventLogUnavailable)
  // its time is over
  looks[0]!.answer()
  await expect
    .poll(() => {
      void failed(log.readStream('again'))
      return asked
    })
    .toContain('again')
})
