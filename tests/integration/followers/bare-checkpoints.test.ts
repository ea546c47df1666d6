// @module-tag once: checkpoints lie in PostgreSQL, whatever holds the log
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { PostgresPageStore } from '../../../infrastructure/read-models/pages.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { createTestDatabase, sessionsThatWait, type TestDatabase } from '../../support/database.ts'

let created: TestDatabase
let database: Database
beforeAll(async () => {
  created = await createTestDatabase()
  database = await openDatabase({ url: created.url })
})
afterAll(async () => {
  await database?.close()
  await created?.drop()
})

const NAMES = ['free', 'locked', 'taken-over'] as const

/** Process managers and read models have the same promise. */
const STORES = {
  'process managers': {
    table: 'runtime.process_managers',
    key: 'name',
    async prepare() {
      await database.pool.query(
        `INSERT INTO runtime.process_managers (name, position, epoch)
         SELECT name, 5, CASE name WHEN 'taken-over' THEN 2 ELSE 1 END FROM unnest($1::text[]) AS name`,
        [NAMES],
      )
      const store = new PostgresWorkStore(database.pool)
      const nothing = { store: [], cancel: [] }
      return async (name: string) => void (await store.advance(name, { position: 5n, epoch: 1 }, 9n, nothing))
    },
  },
  projections: {
    table: 'runtime.projections',
    key: 'projection',
    async prepare() {
      await database.pool.query(
        `INSERT INTO runtime.projections
           (projection, generation, version, role, state, position, epoch, shape, tables, auto_switch)
         SELECT name, 1, 1, 'live', 'active', 5, CASE name WHEN 'taken-over' THEN 2 ELSE 1 END, '', '[]', false
         FROM unnest($1::text[]) AS name`,
        [NAMES],
      )
      const store = new PostgresPageStore(database.pool)
      const nothing = { tables: [], deadLetter: [], redriven: [], rate: 0 }
      return (projection: string) =>
        store.write({ projection, generation: 1, tables: [] }, { ...nothing, epoch: 1, from: 5n, to: 9n })
    },
  },
} as const

describe.each(Object.entries(STORES))('bare checkpoints of %s', (_, { table, key, prepare }) => {
  test('that move together wait for no lock of one of them, and who was replaced hears of it', async () => {
    const move = await prepare()
    const holder = new pg.Client(created.url)
    await holder.connect()
    try {
      await holder.query('BEGIN')
      await holder.query(`SELECT 1 FROM ${table} WHERE ${key} = 'locked' FOR UPDATE`)
      const moves = NAMES.map(move)
      await moves[0]
      await expect(moves[2]).rejects.toThrow()
      const stored = `SELECT position::int FROM ${table} WHERE ${key} = ANY ($1) ORDER BY ${key}`
      const positions = async () =>
        (await database.pool.query({ text: stored, values: [NAMES], rowMode: 'array' })).rows.flat()
      expect(await positions()).toEqual([9, 5, 5])
      await expect.poll(() => sessionsThatWait(database.pool)).toBe(1)
      await holder.query('COMMIT')
      await moves[1]
      expect(await positions()).toEqual([9, 9, 5])
    } finally {
      await holder.end()
    }
  })
})
