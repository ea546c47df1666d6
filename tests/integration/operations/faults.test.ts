// @module-tag once: its subject is the same whatever holds the log
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Faults } from '../../../application/ports/faults.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { InProcessNotices } from '../../../infrastructure/messaging/in-process/notices.ts'
import { PostgresFaults } from '../../../infrastructure/work/faults.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { pieceOfWork, storeWork } from '../../support/workbench.ts'

let testDatabase: TestDatabase
let databases: Database[]
/** As two processes have them. */
let here: Faults
let there: Faults

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  databases = await Promise.all([1, 2].map(() => openDatabase({ url: testDatabase.url })))
})
beforeEach(async () => {
  const open = (database: Database) => PostgresFaults.open(database, new InProcessNotices(), () => false)
  here = await open(databases[0]!)
  there = await open(databases[1]!)
})
afterEach(() => databases[0]!.pool.query('DELETE FROM runtime.faults'))
afterAll(async () => {
  await Promise.all((databases ?? []).map((database) => database.close()))
  await testDatabase?.drop()
})

describe('faults of several processes', () => {
  test('strike as often as asked in all, however many processes meet them at once', async () => {
    await here.inject('mail', 'unreachable', 7)
    const uses = Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? here : there))
    const taken = await Promise.all(uses.map((faults) => faults.take('mail', ['unreachable', 'timeout'])))
    expect(taken.filter((mode) => mode === 'unreachable')).toHaveLength(7)
    expect(taken.filter((mode) => mode === null)).toHaveLength(33)
  })

  test('strike only at their point and in a mode that is asked for', async () => {
    await here.inject('mail', 'unreachable', 1)
    expect(await there.take('text', ['unreachable'])).toBeNull()
    expect(await there.take('mail', ['decline'])).toBeNull()
    expect(await there.take('mail', ['decline', 'unreachable'])).toBe('unreachable')
    expect(await here.take('mail', ['decline', 'unreachable'])).toBeNull()
  })

  test('the last one set counts, by whomever, and zero times clears', async () => {
    await here.inject('bank-rail', 'timeout', 5)
    await there.inject('bank-rail', 'decline', 1)
    expect(await here.take('bank-rail', ['timeout', 'decline'])).toBe('decline')
    await here.inject('bank-rail', 'timeout', 5)
    await there.inject('bank-rail', 'timeout', 0)
    expect(await here.take('bank-rail', ['timeout'])).toBeNull()
  })

  test('a hold stands everywhere until it is cleared anywhere', async () => {
    await here.inject('pipeline', 'hold', 1)
    expect(await there.take('pipeline', ['hold'])).toBe('hold')
    expect(await there.take('pipeline', ['hold'])).toBe('hold')
    expect([await there.holding('pipeline'), await there.holding('mail')]).toEqual([true, false])
    expect(await here.holding('pipeline')).toBe(true)
    await there.inject('pipeline', 'decline', 1)
    expect(await here.holding('pipeline')).toBe(false)
  })

  test('clearing a hold makes due what was held there, also who is about to be held at that moment', async () => {
    const store = new PostgresWorkStore(databases[0]!.pool)
    const work = Array.from({ length: 30 }, (_, n) =>
      pieceOfWork({ processManager: 'mails', kind: 'send', key: `${n}` }),
    )
    await storeWork(store, ...work)
    const counts = () => store.counts({ now: 1, kinds: [{ processManager: 'mails', kind: 'send' }] })
    const kinds = [{ processManager: 'mails', kind: 'send', slots: 100 }]
    const claimAll = () => store.claim({ owner: 'me', leaseMs: 60_000, kinds })
    await here.inject('mail', 'hold', 1)
    const [first, ...others] = await claimAll()
    expect(await store.end(first!, { end: 'held', at: 'mail' })).toBe('ended')
    expect(await counts()).toMatchObject({ held: 1, due: 0 })
    await here.inject('text', 'hold', 1)
    await here.inject('text', 'hold', 0)
    expect(await counts()).toMatchObject({ held: 1 })
    await Promise.all([
      ...others.slice(0, 15).map((claim) => store.end(claim, { end: 'held', at: 'mail' })),
      there.inject('mail', 'hold', 0),
      ...others.slice(15).map((claim) => store.end(claim, { end: 'held', at: 'mail' })),
    ])
    expect(await counts()).toMatchObject({ due: 30, leased: 0, held: 0, later: 0, failed: 0 })
    expect((await claimAll()).map(({ attempt }) => attempt)).toEqual(work.map(() => 1))
  })

  test('who is alone knows them by itself, and clears at its start what was left behind', async () => {
    await here.inject('mail', 'timeout', 3)
    let queries = 0
    const { pool: counted, transaction } = databases[0]!
    const pool = new Proxy(counted, {
      get(target, name) {
        if (name === 'query') queries += 1
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    let isAlone = true
    const alone = await PostgresFaults.open({ pool, transaction }, new InProcessNotices(), () => isAlone)
    expect(await there.take('mail', ['timeout'])).toBeNull()
    queries = 0
    expect([await alone.take('mail', ['timeout']), await alone.holding('mail')]).toEqual([null, false])
    expect(queries).toBe(0)
    await alone.inject('mail', 'timeout', 1)
    expect(await alone.take('mail', ['timeout'])).toBe('timeout')
    expect(await alone.take('mail', ['timeout'])).toBeNull()
    isAlone = false
    await there.inject('mail', 'decline', 1)
    expect(await alone.take('mail', ['decline'])).toBe('decline')
  })
})
