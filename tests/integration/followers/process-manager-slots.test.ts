import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import {
  backoff,
  ladder,
  on,
  type ProcessManager,
  perform,
  processManager,
  type WorkItem,
  type WorkKind,
  type WorkOutcome,
  work,
} from '../../../application/followers/process-manager.ts'
import type { ProcessManagerRunner } from '../../../application/followers/runner.ts'
import { advanceClock } from '../../../application/operations/advance-clock.ts'
import type { Decider } from '../../../domain/kernel/decider.ts'
import { type EventOf, eventType } from '../../../domain/kernel/event-type.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { CLAIM, claimParameters } from '../../../infrastructure/work/work-claims.ts'
import { gate } from '../../support/gate.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, pieceOfWork, until, type Workbench } from '../../support/workbench.ts'

// a sender of letters: each goes to a host, and hosts may be dead
const LetterWritten = eventType('LetterWritten', { letter: z.string(), host: z.string() })
const FileBegun = eventType('FileBegun', { file: z.string() })
type LetterEvent = EventOf<typeof LetterWritten | typeof FileBegun>
const letters: Decider<null, LetterEvent, LetterEvent> = {
  category: 'letter',
  events: [LetterWritten, FileBegun],
  initialState: null,
  evolve: () => null,
  decide: (command) => [command],
}

const payload = z.object({ host: z.string(), failures: z.number().optional() })
type Letter = WorkItem<z.output<typeof payload>>
type Post = (item: Letter) => Promise<WorkOutcome<z.output<typeof payload>>>
type Declared = Partial<
  Pick<WorkKind<z.output<typeof payload>>, 'slots' | 'perKey' | 'retry' | 'timeLimitMs'>
>

const byHost = (slots: number) => ({ slots, of: ({ host }: { host: string }) => host })

function post(run: Post, declared: Declared = {}, startAt: ProcessManager['startAt'] = 'beginning') {
  return processManager({
    name: 'post',
    startAt,
    on: [
      on(LetterWritten, ({ data: { letter, host } }) => [perform('deliver', letter, { host })]),
      on(FileBegun, ({ data }) => [perform('file', data.file, {})]),
    ],
    work: {
      deliver: work({ payload, retry: backoff(), timeLimitMs: 60_000, ...declared }, run),
      file: work({ payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 }, async ({ key }) => {
        files.push(key)
        return { outcome: 'done' }
      }),
    },
  })
}

let bench: Workbench
const files: string[] = []

beforeEach(async () => {
  files.length = 0
  bench = await openWorkbench(undefined, { aggregates: [letters] })
})
afterEach(() => bench.close())

async function happen(stream: string, event: LetterEvent): Promise<void> {
  const done = await bench.commands.execute(letters, stream, event, operatorContext())
  if (isRejection(done)) throw new Error(done.message)
}

const write = (letter: string, host: string) => happen(letter, LetterWritten.of({ letter, host }))
const begin = (file: string) => happen(file, FileBegun.of({ file }))

/** Stores many letters at once, as one page does. */
async function storeLetters(store: readonly { key: string; host: string }[]): Promise<void> {
  const position = await bench.store.takeOver('many', 1)
  await bench.store.advance('many', { position, epoch: 1 }, position, {
    store: store.map(({ key, host }) =>
      pieceOfWork({ processManager: 'post', kind: 'deliver', key, payload: { host }, concurrencyKey: host }),
    ),
    cancel: [],
  })
}

/** A post that delivers each letter when it is told to. */
function slowPost() {
  const waiting = new Map<string, () => void>()
  const begun: string[] = []
  const atOnce = new Map<string, number>()
  let most = 0
  const run: Post = async ({ key, payload: { host } }) => {
    begun.push(key)
    atOnce.set(host, (atOnce.get(host) ?? 0) + 1)
    most = Math.max(most, atOnce.get(host)!)
    await new Promise<void>((resolve) => waiting.set(key, resolve))
    atOnce.set(host, atOnce.get(host)! - 1)
    return { outcome: 'done' }
  }
  const deliverOne = () => {
    const [key, deliver] = [...waiting][0]!
    waiting.delete(key)
    deliver()
  }
  return { run, begun, waiting, deliverOne, most: () => most }
}

describe('slots', () => {
  test('ten dead receivers hold up neither the payroll file nor a receiver that lives', async () => {
    const delivered: string[] = []
    const dead: string[] = []
    const run: Post = async ({ key, payload: { host }, signal }) => {
      if (host === 'alive') {
        delivered.push(key)
        return { outcome: 'done' }
      }
      dead.push(key)
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      return { outcome: 'done' }
    }
    for (let host = 0; host < 10; host += 1) {
      for (let n = 0; n < 5; n += 1) await write(`to-${host}-${n}`, `dead-${host}`)
    }
    const runner = await bench.run([post(run, { slots: 11, perKey: byHost(1) })])
    await until(() => dead.length === 10)
    await begin('payroll')
    for (let n = 0; n < 20; n += 1) await write(`alive-${n}`, 'alive')
    await until(() => files.length === 1 && delivered.length === 20)
    expect(dead).toHaveLength(10)
    // the last one that lives ends after it was delivered
    const counts = () => bench.store.counts({ now: bench.clock.now() })
    await expect.poll(counts).toMatchObject({ leased: 10, due: 40 })
    await runner.stop()
  })

  test('of one key no more than allowed is done at once, of all no more than there are slots', async () => {
    const { run, begun, waiting, deliverOne, most } = slowPost()
    await storeLetters(Array.from({ length: 30 }, (_, n) => ({ key: `${n}`, host: `host-${n % 3}` })))
    const runner = await bench.run([post(run, { slots: 5, perKey: byHost(2) })])
    await until(() => waiting.size === 5)
    for (let done = 0; done < 30; done += 1) {
      await until(() => waiting.size > 0)
      expect(begun.length - done).toBeLessThanOrEqual(5)
      deliverOne()
    }
    expect(most()).toBe(2)
    expect(await bench.drain(runner)).toBe(true)
    expect(new Set(begun).size).toBe(30)
  })

  test('whoever is done with what its key stands for leaves it to others before its own end', async () => {
    const posted: string[] = []
    const { opened: isStored, open: store } = gate()
    const run: Post = async ({ key, freeKey }) => {
      posted.push(key)
      freeKey(true)
      await isStored
      return { outcome: 'done' }
    }
    await storeLetters(Array.from({ length: 5 }, (_, n) => ({ key: `${n}`, host: 'host' })))
    const runner = await bench.run([post(run, { slots: 3, perKey: byHost(1) })])
    // of all there are no more than before
    await until(() => posted.length === 3)
    expect(await bench.store.counts({ now: bench.clock.now() })).toMatchObject({ leased: 3, due: 2 })
    store()
    expect(await bench.drain(runner)).toBe(true)
    expect(new Set(posted).size).toBe(5)
  })

  test('what is to be done again long after makes nobody look for what is due', async () => {
    const looks = vi.spyOn(bench.store, 'makeDue')
    const run: Post = async () => ({ outcome: 'again', at: bench.clock.now() + 86_400_000 })
    await storeLetters(Array.from({ length: 20 }, (_, n) => ({ key: `${n}`, host: 'host' })))
    await bench.run([post(run, { slots: 1 })], { pollMs: 600_000 })
    await until(async () => (await bench.store.counts({ now: bench.clock.now() })).later === 20)
    // as it began
    expect(looks).toHaveBeenCalledTimes(1)
    looks.mockRestore()
  })

  test('many keys that share something hold up nobody else, and all have their turn', async () => {
    const { run, begun, waiting } = slowPost()
    const hosts = Array.from({ length: 10 }, (_, n) => `dead-${n}`)
    await storeLetters(hosts.flatMap((host) => [1, 2].map((n) => ({ key: `${host}-${n}`, host }))))
    const shared = { slots: 3, of: ({ host }: { host: string }) => [host.split('-')[0]!] }
    const perKey = { ...byHost(2), growth: { upTo: 4, shared } }
    const runner = await bench.run([post(run, { slots: 6, perKey })])
    await until(() => waiting.size === 3)
    await storeLetters([{ key: 'alive-1', host: 'alive-1' }])
    bench.notices.wake('work')
    await until(() => begun.includes('alive-1'))
    expect(waiting.size).toBe(4)
    while (begun.length < 21 || waiting.size > 0) {
      await until(() => waiting.size > 0)
      expect([...waiting.keys()].filter((key) => key.startsWith('dead')).length).toBeLessThanOrEqual(3)
      for (const [key, deliver] of [...waiting]) {
        waiting.delete(key)
        deliver()
      }
    }
    expect(await bench.drain(runner)).toBe(true)
    expect(new Set(begun).size).toBe(21)
    expect(begun).toHaveLength(21)
    expect((await bench.database.pool.query('SELECT FROM runtime.work')).rows).toEqual([])
  })

  test('keys take turns, however much one of them has', async () => {
    const { run, begun, waiting, deliverOne } = slowPost()
    const ofMany = Array.from({ length: 200 }, (_, n) => ({ key: `many-${n}`, host: 'b-many' }))
    const ofFew = ['a', 'c', 'd'].flatMap((host) => [1, 2, 3].map((n) => ({ key: `${host}-${n}`, host })))
    await storeLetters([...ofMany, ...ofFew])
    const runner = await bench.run([post(run, { slots: 1, perKey: byHost(1) })])
    for (let done = 0; done < 12; done += 1) {
      await until(() => waiting.size === 1)
      deliverOne()
    }
    await until(() => begun.length >= 12)
    expect(begun.slice(0, 12).filter((key) => !key.startsWith('many'))).toEqual(
      [1, 2, 3].flatMap((n) => ['a', 'c', 'd'].map((host) => `${host}-${n}`)),
    )
    // within a key in the order in which it was stored
    expect(begun.slice(0, 12).filter((key) => key.startsWith('many'))).toEqual(['many-0', 'many-1', 'many-2'])
    let isStopped = false
    const stopping = runner.stop().then(() => {
      isStopped = true
    })
    await until(() => waiting.size > 0 || isStopped)
    if (!isStopped) deliverOne()
    await stopping
  })

  test('of processes that claim at the same time, one that gets fewer pieces than slots leaves none behind', async () => {
    await storeLetters(Array.from({ length: 200 }, (_, n) => ({ key: `${n}`, host: 'one' })))
    const claimed: string[] = []
    const claimAll = async (owner: string) => {
      const kinds = [{ processManager: 'post', kind: 'deliver', slots: 3 }]
      for (;;) {
        const claims = await bench.store.claim({ owner, leaseMs: 60_000, kinds })
        claimed.push(...claims.map(({ key }) => key))
        if (claims.length < 3) return
      }
    }
    await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(claimAll))
    expect(new Set(claimed).size).toBe(200)
    expect(claimed).toHaveLength(200)
  })

  test('a claim looks at few pages, however much work of a busy key is due', async () => {
    const all = Array.from({ length: 20_000 }, (_, n) => ({ key: `${n}`, host: 'busy' }))
    await storeLetters([...all, { key: 'last', host: 'other' }])
    await bench.database.pool.query('VACUUM ANALYZE runtime.work').catch(() => undefined)
    const ask = {
      owner: 'me',
      leaseMs: 60_000,
      kinds: [{ processManager: 'post', kind: 'deliver', slots: 4, perKey: 1, busy: new Map([['busy', 1]]) }],
    }
    const { rows } = await bench.database.pool.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${CLAIM}`,
      claimParameters(ask),
    )
    const plan = rows[0]!['QUERY PLAN'][0].Plan
    expect(plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!).toBeLessThan(200)
    expect(await bench.store.counts({ now: 0 })).toMatchObject({ leased: 1, due: 20_000 })
  })
})

describe('retries', () => {
  const MINUTE = 60_000
  const advance = (runner: ProcessManagerRunner, seconds: number) => {
    const { commands, clock, store, leases, notices } = bench
    const settle = (ms: number) => bench.drain(runner, ms)
    const parts = { commands, clock, work: store, leases, notices, settle }
    return advanceClock(parts, { seconds }, operatorContext())
  }

  test('climb a ladder on the service clock, then go on at an age, with rung and payload stored', async () => {
    const start = bench.clock.now()
    const tries: unknown[] = []
    const run: Post = async ({ attempt, isLastTry, payload: { host, failures = 0 } }) => {
      tries.push([(bench.clock.now() - start) / MINUTE, attempt, failures])
      const payload = { host, failures: failures + 1 }
      if (failures === 5) return { outcome: 'done' }
      if (isLastTry) return { outcome: 'again', at: start + 2 * 60 * MINUTE, payload }
      return { outcome: 'retry', why: 'it did not answer', payload }
    }
    const manager = post(run, { retry: ladder(MINUTE, 5 * MINUTE, 30 * MINUTE) })
    const first = await bench.run([manager])
    await write('a', 'host')
    expect(await bench.drain(first)).toBe(true)
    await advance(first, 6 * 60 - 1)
    await first.stop()
    expect(tries).toEqual([
      [0, 1, 0],
      [1, 2, 1],
    ])
    // the rung survives the process
    const second = await bench.run([manager])
    await advance(second, 24 * 60 * 60)
    await bench.drain(second)
    expect(tries.slice(2)).toEqual([
      [6, 3, 2],
      [36, 4, 3],
      [120, 1, 4],
      [121, 2, 5],
    ])
    expect(await bench.store.counts({ now: bench.clock.now() })).toMatchObject({
      due: 0,
      later: 0,
      failed: 0,
    })
  })

  test('a changed payload counts for the key it names', async () => {
    const { run, waiting, deliverOne } = slowPost()
    const moved: Post = async (item) => {
      if (item.payload.host === 'old') return { outcome: 'again', afterMs: 0, payload: { host: 'new' } }
      return run(item)
    }
    const runner = await bench.run([post(moved, { perKey: byHost(1) })])
    await write('a', 'old')
    await write('b', 'old')
    await until(() => waiting.size === 1)
    const moves = 'SELECT state, concurrency_key FROM runtime.work ORDER BY state'
    await expect
      .poll(async () => (await bench.database.pool.query(moves)).rows)
      .toEqual(['due', 'leased'].map((state) => ({ state, concurrency_key: 'new' })))
    expect(waiting.size).toBe(1)
    deliverOne()
    await until(() => waiting.size === 1)
    deliverOne()
    expect(await bench.drain(runner)).toBe(true)
  })

  test('an attempt that takes longer than its time is told so, frees its slot and counts', async () => {
    const reasons: unknown[] = []
    const run: Post = async ({ key, attempt, signal }) => {
      if (key === 'quick' || attempt > 2) return { outcome: 'done' }
      signal.addEventListener('abort', () => reasons.push((signal.reason as Error).name))
      // deaf to its signal
      return new Promise(() => undefined)
    }
    const runner = await bench.run([post(run, { slots: 1, timeLimitMs: 50 })])
    await write('stuck', 'host')
    await until(() => reasons.length === 1)
    await write('quick', 'host')
    expect(await bench.drain(runner)).toBe(true)
    expect(reasons).toEqual(['TimeLimitExceeded', 'TimeLimitExceeded'])
    expect(bench.reports.filter((report) => report.startsWith('work_retried'))).toEqual(
      [1, 2].map((n) =>
        expect.stringMatching(
          new RegExp(`^work_retried post deliver stuck ${n} \\S+ The work took longer than 0.05 s$`),
        ),
      ),
    )
  })
})

describe('a piece of work', () => {
  test('has one command id at all attempts, and another one when another event wants it', async () => {
    const ids: string[] = []
    let broken = true
    const run: Post = async ({ commandId }) => {
      ids.push(commandId)
      return broken ? { outcome: 'retry', why: 'not yet' } : { outcome: 'done' }
    }
    const runner = await bench.run([post(run, { retry: backoff(3) })])
    await write('a', 'host')
    await bench.drain(runner)
    broken = false
    await runner.redrive({ dryRun: false })
    await bench.drain(runner)
    expect(ids).toHaveLength(4)
    expect(new Set(ids).size).toBe(1)
    await write('a', 'host')
    await bench.drain(runner)
    expect(new Set(ids).size).toBe(2)
  })

  test('whose stored payload does not fit its kind fails at once, without its values', async () => {
    const deliveries: string[] = []
    const run: Post = async ({ key }) => {
      deliveries.push(key)
      return { outcome: 'done' }
    }
    const runner = await bench.run([post(run)])
    await bench.database.pool.query(
      `INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, correlation_id, causation_id)
       VALUES ('post', 'deliver', 'odd', '{"host": {"first_name": "Zebulon"}}', 0, 'due', 'c', 'c')`,
    )
    await until(async () => (await runner.failedWork(1)).length === 1)
    expect(await runner.failedWork(1)).toMatchObject([
      { key: 'odd', attempts: 1, error: 'The payload of deliver does not fit: host: invalid_type' },
    ])
    expect(JSON.stringify(bench.reports)).not.toContain('Zebulon')
    expect(deliveries).toEqual([])
  })
})

describe('a process manager of a later release', () => {
  const delivered: string[] = []
  const run: Post = async ({ key }) => {
    delivered.push(key)
    return { outcome: 'done' }
  }
  beforeEach(() => {
    delivered.length = 0
  })

  test('does not act on history from before its registration, but on all that follows', async () => {
    await write('before', 'host')
    const manager = post(run, {}, 'registration')
    // as a process without the role of a worker does
    const api = await bench.run([manager])
    await api.stop()
    expect(delivered).toEqual([])
    await write('while nobody ran it', 'host')
    const runner = await bench.run([manager])
    await write('after', 'host')
    expect(await bench.drain(runner)).toBe(true)
    expect(delivered.sort()).toEqual(['after', 'while nobody ran it'])
  })
})
