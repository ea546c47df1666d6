import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Faults } from '../../application/ports/faults.ts'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { PostgresFaults } from '../../infrastructure/database/faults.ts'
import { InProcessNotices } from '../../infrastructure/messaging/in-process/notices.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

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
  const open = (database: Database) => PostgresFaults.open(database.pool, new InProcessNotices(), () => false)
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
    expect(await there.holds()).toEqual(['pipeline'])
    const released = Promise.all([here.released('pipeline'), there.released('pipeline')])
    await there.inject('pipeline', 'hold', 0)
    await released
    expect(await here.holds()).toEqual([])
  })

  test('an abort ends the wait for a hold', async () => {
    await here.inject('pipeline', 'hold', 1)
    const stop = new AbortController()
    const waiting = there.released('pipeline', stop.signal)
    stop.abort(new Error('stopping'))
    await expect(waiting).rejects.toThrow('stopping')
    await expect(there.released('pipeline', stop.signal)).rejects.toThrow('stopping')
  })

  test('who is alone knows them by itself, and clears at its start what was left behind', async () => {
    await here.inject('mail', 'timeout', 3)
    let queries = 0
    const { pool } = databases[0]!
    const counting = new Proxy(pool, {
      get(target, name) {
        if (name === 'query') queries += 1
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    let isAlone = true
    const alone = await PostgresFaults.open(counting, new InProcessNotices(), () => isAlone)
    expect(await there.take('mail', ['timeout'])).toBeNull()
    queries = 0
    expect([await alone.take('mail', ['timeout']), await alone.holds()]).toEqual([null, []])
    expect(queries).toBe(0)
    await alone.inject('mail', 'timeout', 1)
    expect(await alone.take('mail', ['timeout'])).toBe('timeout')
    expect(await alone.take('mail', ['timeout'])).toBeNull()
    isAlone = false
    await there.inject('mail', 'decline', 1)
    expect(await alone.take('mail', ['decline'])).toBe('decline')
  })
})
