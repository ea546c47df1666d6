// @module-tag each-log
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Stop } from '../../../application/followers/consumer.ts'
import { type Handled, OwnedFollower } from '../../../application/followers/owned-follower.ts'
import { DEAD_LETTERED_STREAM, type WorkToStore } from '../../../application/followers/work-store.ts'
import type { StoredEvent } from '../../../application/ports/event-log.ts'
import { PostgresDeadLetters } from '../../../infrastructure/work/dead-letters.ts'
import { someEvents } from '../../contract/event-store/event-log.contract.ts'
import { openWorkbench, pieceOfWork, until, type Workbench } from '../../support/workbench.ts'

const NAME = 'clerks'

let bench: Workbench
beforeEach(async () => {
  bench = await openWorkbench()
})
afterEach(() => bench.close())

async function append(stream: string, count: number): Promise<void> {
  await bench.log.append(stream, -1, someEvents(count, { type: 'Noted' }))
}

/** Follows until it is ended. @returns why it failed, each time that it did. */
function follow(handle: (events: readonly StoredEvent[]) => Promise<Handled>) {
  const { log, leases, store } = bench
  const ended = new AbortController()
  const failures: string[] = []
  const follower = new OwnedFollower({
    name: NAME,
    log,
    leases,
    store,
    types: ['Noted'],
    pageSize: 500,
    checkpointMs: 1,
    pauseMs: 1,
    longestPauseMs: 1,
    handle,
    deadLettered: () => undefined,
    failed: (why) => failures.push(why),
  })
  const running = follower.run(ended.signal)
  const end = async () => {
    ended.abort()
    await running
  }
  return { failures, end }
}

const placeOf = ({ stream, revision }: StoredEvent) => `${stream}@${revision}`

/** One piece of work for each event. */
const workFor = (event: StoredEvent) =>
  pieceOfWork({ processManager: NAME, kind: 'file', key: placeOf(event), dueAt: 1e15 })

const work = () => bench.store.keysOf(NAME, 'file')
const deadLettered = () => bench.store.keysOf(NAME, DEAD_LETTERED_STREAM)

describe('a stream behind an event that cannot be handled', () => {
  test('waits alone, and is replayed from there in one pass that an outage only interrupts', async () => {
    let isBroken = true
    let outages = 0
    const times = new Map<string, number>()
    const handle = async (events: readonly StoredEvent[]): Promise<Handled> => {
      const stops: Stop[] = []
      const store: WorkToStore[] = []
      for (const event of events) {
        if (stops.some(({ at }) => at.stream === event.stream)) continue
        if (event.stream === 'bad-1' && event.revision === 1 && isBroken) {
          stops.push({ at: event, error: new Error('broken') })
          continue
        }
        // the second page of the replay meets an outage, once
        if (event.revision === 150 && outages === 0) {
          outages += 1
          throw new Error('away')
        }
        times.set(placeOf(event), (times.get(placeOf(event)) ?? 0) + 1)
        store.push(workFor(event))
      }
      return { changes: store.length > 0 ? { store, cancel: [] } : null, stops }
    }
    const { failures, end } = follow(handle)
    await append('bad-1', 300)
    await append('good-1', 3)
    await until(async () => (await work()).includes('good-1@2'))
    expect(await work()).toEqual(['bad-1@0', 'good-1@0', 'good-1@1', 'good-1@2'])
    expect(await deadLettered()).toEqual(['bad-1'])
    await until(async () => (await bench.store.failed(10)).length === 1)
    expect(await bench.store.failed(10)).toMatchObject([
      { kind: DEAD_LETTERED_STREAM, key: 'bad-1', attempts: 3 },
    ])
    const scope = { reader: null, kind: null }
    const names = { projections: [], processManagers: [NAME] }
    const listed = await new PostgresDeadLetters(bench.database.pool, names).list(scope, {
      page: 1,
      limit: 9,
    })
    expect(listed).toEqual({
      total: 1,
      items: [
        {
          reader: NAME,
          kind: 'process_manager',
          generation: null,
          stream: 'bad-1',
          revision: 1,
          error: expect.stringContaining('Error at '),
          attempts: 3,
          since: expect.any(Date),
        },
      ],
    })
    isBroken = false
    expect(await bench.store.redrive({ dryRun: false })).toBe(1)
    await until(async () => (await deadLettered()).length === 0)
    await end()
    expect(failures).toEqual([expect.stringContaining('dead-lettered-streams.test.ts')])
    const all = Array.from({ length: 300 }, (_, revision) => `bad-1@${revision}`)
    expect((await work()).filter((key) => key.startsWith('bad-1')).sort()).toEqual(all.sort())
    // nothing that was stored is handled again
    expect([times.get('bad-1@1'), times.get('bad-1@100'), times.get('bad-1@299')]).toEqual([1, 1, 1])
  })

  test('is freed by nobody but the owner of the checkpoint', async () => {
    let isBroken = true
    const handle = async (events: readonly StoredEvent[]): Promise<Handled> => {
      const [at] = events
      if (at && isBroken) return { changes: null, stops: [{ at, error: new Error('broken') }] }
      // another owner takes over while this one replays; a page at the head may be empty
      if (at) await bench.store.takeOver(NAME, 99)
      return { changes: null, stops: [] }
    }
    const { failures, end } = follow(handle)
    await append('bad-1', 1)
    await until(async () => (await bench.store.failed(10)).length === 1)
    isBroken = false
    await bench.store.redrive({ dryRun: false })
    await until(() => failures.length > 0)
    await end()
    expect(failures[0]).toContain('moved by another owner')
    expect(await deadLettered()).toEqual(['bad-1'])
  })
})
