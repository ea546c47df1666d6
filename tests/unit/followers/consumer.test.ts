import { setImmediate as othersTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Consumed, Consumer } from '../../../application/followers/consumer.ts'
import type { LogPage, StoredEvent } from '../../../application/ports/event-log.ts'

/** A subscription that tests push pages into. */
class Pages implements AsyncIterable<LogPage> {
  readonly #pages: LogPage[] = []
  #wake: () => void = () => undefined
  /** @param position where the page ends. @param options.events positions of its events, default one there. */
  push(position: number, options: { events?: number[]; atHead?: boolean } = {}): void {
    const { events = [position], atHead = true } = options
    const of = (at: number) => ({ position: BigInt(at), stream: 'one', revision: at - 1 }) as StoredEvent
    this.#pages.push({ events: events.map(of), checkpoint: BigInt(position), atHead })
    this.#wake()
  }
  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#pages.length > 0) yield this.#pages.shift()!
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

function setUp(parts: Partial<Consumed> = {}, upTo?: bigint) {
  const pages = new Pages()
  const taken: number[] = []
  const stored: [number, number][] = []
  const reached: number[] = []
  const ended = new AbortController()
  const consumer = new Consumer({
    log: { subscribe: () => pages, readStream: async () => [] },
    types: new Set(),
    pageSize: 10,
    from: 0n,
    deadLettered: [],
    checkpointMs: () => 3_600_000,
    apply: async (events) => {
      taken.push(...events.map(({ position }) => Number(position)))
      return { hasChanges: true, stops: [] }
    },
    commit: async ({ from, to }) => {
      stored.push([Number(from), Number(to)])
    },
    reached: (position) => reached.push(Number(position)),
    ...parts,
  })
  const running = consumer.run(ended.signal, upTo)
  running.catch(() => undefined)
  return { consumer, pages, taken, stored, reached, ended, running }
}

/** Commits that end when the test says so. */
function heldCommits() {
  const begun: { from: number; to: number; end: () => void; fail: (error: Error) => void }[] = []
  const commit: Consumed['commit'] = ({ from, to }) =>
    new Promise<void>((end, fail) => begun.push({ from: Number(from), to: Number(to), end, fail }))
  return { begun, commit }
}

describe('a consumer of the log', () => {
  test('commits what each page came to before it takes the next in', async () => {
    const { begun, commit } = heldCommits()
    const { pages, taken, reached } = setUp({ commit })
    pages.push(1)
    await expect.poll(() => begun.length).toBe(1)
    pages.push(2)
    await othersTurn()
    expect([begun[0]!.from, begun[0]!.to, taken, reached]).toEqual([0, 1, [1], []])
    begun[0]!.end()
    await expect.poll(() => begun.length).toBe(2)
    expect([begun[1]!.from, begun[1]!.to, taken, reached]).toEqual([1, 2, [1, 2], [1]])
  })

  test('that may collect takes pages in while others are stored, and stores them together', async () => {
    const { begun, commit } = heldCommits()
    const { pages, taken, reached } = setUp({ commit, isFull: () => false })
    pages.push(1)
    await expect.poll(() => begun.length).toBe(1)
    pages.push(2)
    await expect.poll(() => taken).toEqual([1, 2])
    pages.push(3)
    await othersTurn()
    begun[0]!.end()
    await expect.poll(() => begun.length).toBe(2)
    expect(begun[1]).toMatchObject({ from: 1, to: 3 })
    begun[1]!.end()
    await expect.poll(() => reached).toEqual([1, 3])
  })

  test('that may collect stores before the head of the log only what is much', async () => {
    let full = false
    const { pages, taken, stored } = setUp({ isFull: () => full })
    pages.push(1, { atHead: false })
    await expect.poll(() => taken).toEqual([1])
    expect(stored).toEqual([])
    full = true
    pages.push(2, { atHead: false })
    await expect.poll(() => stored).toEqual([[0, 2]])
  })

  test('that has time stores what many pages came to at a moment for checkpoints, and has reached it only then', async () => {
    let everyMs = 3_600_000
    const { pages, taken, stored, reached } = setUp({
      isFull: () => false,
      hasTime: true,
      checkpointMs: () => everyMs,
    })
    pages.push(1)
    pages.push(2)
    await expect.poll(() => taken).toEqual([1, 2])
    expect([stored, reached]).toEqual([[], []])
    everyMs = 1
    pages.push(3)
    await expect.poll(() => reached).toEqual([3])
    expect(stored).toEqual([[0, 3]])
  })

  test('counts pages without consequences as reached at once, and stores the checkpoint now and then', async () => {
    let checkpointMs = 3_600_000
    const { pages, stored, reached } = setUp({ checkpointMs: () => checkpointMs })
    pages.push(1, { events: [] })
    await expect.poll(() => reached).toEqual([1])
    expect(stored).toEqual([])
    checkpointMs = 0.001
    pages.push(2, { events: [] })
    await expect.poll(() => stored).toEqual([[0, 2]])
    checkpointMs = 1
    pages.push(3, { events: [] })
    // also while no page comes any more
    await expect.poll(() => stored.at(-1)).toEqual([2, 3])
    expect(reached).toEqual([1, 2, 3])
  })

  test('fails with a write that fails, and writes nothing after it', async () => {
    for (const parts of [{}, { isFull: () => false }]) {
      const { begun, commit } = heldCommits()
      const { pages, running, consumer } = setUp({ commit, ...parts })
      pages.push(1)
      await expect.poll(() => begun.length).toBe(1)
      pages.push(2)
      begun[0]!.fail(new Error('moved by another owner'))
      await expect(running).rejects.toThrow('moved by another owner')
      await expect(consumer.storeRest()).rejects.toThrow('moved by another owner')
      expect(begun).toHaveLength(1)
    }
  })

  test('commits in the midst of a page what is enough, and applies the rest then', async () => {
    const applied: number[][] = []
    const { pages, stored } = setUp({
      apply: async (events) => {
        applied.push(events.map(({ position }) => Number(position)))
        return { hasChanges: true, stops: [], left: events.slice(2) }
      },
    })
    pages.push(5, { events: [1, 2, 3, 4, 5] })
    await expect.poll(() => stored.at(-1)).toEqual([4, 5])
    expect(stored).toEqual([
      [0, 2],
      [2, 4],
      [4, 5],
    ])
    expect(applied).toEqual([[1, 2, 3, 4, 5], [3, 4, 5], [5]])
  })

  test('reads on to exactly a position where it is told to', async () => {
    const { pages, taken, stored, running } = setUp({}, 4n)
    pages.push(5, { events: [2, 4, 5] })
    await running
    expect([taken, stored]).toEqual([[2, 4], [[0, 4]]])
  })

  test('ends when it is told to, also where the log does not; what is left is stored on request', async () => {
    const { pages, stored, reached, ended, running, consumer } = setUp()
    pages.push(1, { events: [] })
    await expect.poll(() => reached).toEqual([1])
    ended.abort()
    await running
    expect(stored).toEqual([])
    await consumer.storeRest()
    await consumer.storeRest()
    expect(stored).toEqual([[0, 1]])
  })

  test('dead-letters a stream with the checkpoint behind an event that stops it, and retries it while no page comes', async () => {
    const deadLettered: unknown[] = []
    const retries: number[] = []
    const { pages, taken, reached } = setUp({
      apply: async ([at]) => {
        taken.push(Number(at!.position))
        return { hasChanges: false, stops: [{ at: at!, error: 'broken' }] }
      },
      commit: async ({ to, deadLetter }) =>
        void deadLettered.push(...deadLetter.map(({ from, error }) => ({ to, from, error }))),
      retry: { everyMs: 1, run: async () => void retries.push(1) },
    })
    pages.push(1)
    await expect.poll(() => retries.length).toBeGreaterThan(1)
    expect(deadLettered).toEqual([{ to: 1n, from: 0, error: 'broken' }])
    // what follows in the stream is left alone
    pages.push(2)
    await expect.poll(() => reached.at(-1)).toBe(2)
    expect(taken).toEqual([1])
  })
})
