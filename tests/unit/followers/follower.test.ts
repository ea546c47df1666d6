import { setImmediate as othersTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Followed, Follower } from '../../../application/followers/follower.ts'
import type { LogPage, StoredEvent } from '../../../application/ports/event-log.ts'

/** A subscription that tests push pages into. */
class Pages implements AsyncIterable<LogPage> {
  readonly #pages: LogPage[] = []
  #wake: () => void = () => undefined
  /** @param position where the page ends; one event, or none. */
  push(position: number, options: { bare?: boolean; atHead?: boolean } = {}): void {
    const event = { position: BigInt(position), data: '', metadata: '' } as StoredEvent
    const { bare = false, atHead = true } = options
    this.#pages.push({ events: bare ? [] : [event], checkpoint: BigInt(position), atHead })
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

function setUp(parts: Partial<Followed> = {}) {
  const pages = new Pages()
  const taken: number[] = []
  const stored: [number, number][] = []
  const reached: number[] = []
  const ended = new AbortController()
  const follower = new Follower({
    log: { subscribe: () => pages },
    types: [],
    pageSize: 10,
    from: 0n,
    checkpointMs: () => 3_600_000,
    take: async ({ events, checkpoint }) => {
      taken.push(Number(checkpoint))
      return events.length > 0
    },
    store: async (from, to) => {
      stored.push([Number(from), Number(to)])
    },
    reached: (position) => reached.push(Number(position)),
    ...parts,
  })
  const running = follower.run(ended.signal)
  running.catch(() => undefined)
  return { follower, pages, taken, stored, reached, ended, running }
}

/** Store operations that end when the test says so. */
function heldStore() {
  const begun: { from: number; to: number; end: () => void; fail: (error: Error) => void }[] = []
  const store = (from: bigint, to: bigint) =>
    new Promise<void>((end, fail) => begun.push({ from: Number(from), to: Number(to), end, fail }))
  return { begun, store }
}

describe('a follower', () => {
  test('stores the consequences of each page before it takes the next in', async () => {
    const { begun, store } = heldStore()
    const { pages, taken, reached } = setUp({ store })
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
    const { begun, store } = heldStore()
    const { pages, taken, reached } = setUp({ store, isFull: () => false })
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

  test('counts pages without consequences as reached at once, and stores the checkpoint now and then', async () => {
    let checkpointMs = 3_600_000
    const { pages, stored, reached } = setUp({ checkpointMs: () => checkpointMs })
    pages.push(1, { bare: true })
    await expect.poll(() => reached).toEqual([1])
    expect(stored).toEqual([])
    checkpointMs = 0
    pages.push(2, { bare: true })
    await expect.poll(() => stored).toEqual([[0, 2]])
    checkpointMs = 1
    pages.push(3, { bare: true })
    // also while no page comes any more
    await expect.poll(() => stored.at(-1)).toEqual([2, 3])
    expect(reached).toEqual([1, 2, 3])
  })

  test('fails with a write that fails, and writes nothing after it', async () => {
    for (const parts of [{}, { isFull: () => false }]) {
      const { begun, store } = heldStore()
      const { pages, running, follower } = setUp({ store, ...parts })
      pages.push(1)
      await expect.poll(() => begun.length).toBe(1)
      pages.push(2)
      begun[0]!.fail(new Error('moved by another owner'))
      await expect(running).rejects.toThrow('moved by another owner')
      await expect(follower.storeRest()).rejects.toThrow('moved by another owner')
      expect(begun).toHaveLength(1)
    }
  })

  test('stores in the midst of a page when it is told to', async () => {
    const { pages, stored, follower } = setUp({
      take: async ({ checkpoint }) => {
        if (checkpoint === 5n) await follower.store(3n)
        return true
      },
    })
    pages.push(5)
    await expect
      .poll(() => stored)
      .toEqual([
        [0, 3],
        [3, 5],
      ])
  })

  test('ends when it is told to, also where the log does not; what is left is stored on request', async () => {
    const { pages, stored, reached, ended, running, follower } = setUp()
    pages.push(1, { bare: true })
    await expect.poll(() => reached).toEqual([1])
    ended.abort()
    await running
    expect(stored).toEqual([])
    await follower.storeRest()
    await follower.storeRest()
    expect(stored).toEqual([[0, 1]])
  })

  test('does what is due between pages, whether they come or not', async () => {
    let dueAt: number | null = performance.now() + 1
    const seen: bigint[] = []
    const between = {
      dueMs: () => (dueAt === null ? null : dueAt - performance.now()),
      run: async () => {
        seen.push(follower.seen)
        dueAt = null
      },
    }
    const { pages, taken, follower } = setUp({ between })
    await expect.poll(() => seen).toEqual([0n])
    pages.push(1)
    await expect.poll(() => taken).toEqual([1])
    dueAt = 0
    pages.push(2)
    await expect.poll(() => seen).toEqual([0n, 2n])
  })
})
