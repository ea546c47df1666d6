// @module-tag once: its subject is the same whatever holds the log
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ReadModelsLate } from '../../../application/ports/read-models.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { PostgresReadDatabase } from '../../../infrastructure/read-models/read-database.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let test: TestDatabase
let database: Database

beforeAll(async () => {
  test = await createTestDatabase({ migrate: true })
  database = await openDatabase({ url: test.url, poolSize: 1 })
})
afterAll(async () => {
  await database.close()
  await test.drop()
})

describe('reading', () => {
  it.each(['UTC', 'America/New_York', 'Asia/Kolkata'])(
    'gives plain values with the session in %s',
    async (zone) => {
      await database.pool.query(`SELECT set_config('TimeZone', $1, false)`, [zone])
      const read = new PostgresReadDatabase(database.pool)
      const text = `SELECT 9007199254740991::bigint AS big, 12::integer AS small, DATE '2026-02-28' AS day,
      TIMESTAMPTZ '2026-02-28 23:59:59.123456Z' AS moment, TIMESTAMPTZ '2026-07-01 00:00:00Z' AS whole,
      '{"a":[1]}'::jsonb AS json, NULL::bigint AS none, true AS yes, $1::text AS given`
      expect(await read.query({ name: 'test/values', text, parameters: ['given'] }, { given: 'x' })).toEqual([
        {
          big: 9007199254740991,
          small: 12,
          day: '2026-02-28',
          moment: '2026-02-28T23:59:59.123Z',
          whole: '2026-07-01T00:00:00.000Z',
          json: { a: [1] },
          none: null,
          yes: true,
          given: 'x',
        },
      ])
    },
  )

  it('goes on when a column it prepared for has got another type', async () => {
    await database.withOwner(async (owner) => {
      await owner.query(`CREATE VIEW read_model.changing AS SELECT 1::integer AS value`)
    })
    const read = new PostgresReadDatabase(database.pool)
    const statement = { name: 'test/changing', text: 'SELECT value FROM read_model.changing', parameters: [] }
    expect(await read.query(statement, {})).toEqual([{ value: 1 }])
    await database.withOwner(async (owner) => {
      await owner.query(
        `DROP VIEW read_model.changing; CREATE VIEW read_model.changing AS SELECT 'one'::text AS value`,
      )
    })
    expect(await read.query(statement, {})).toEqual([{ value: 'one' }])
  })

  it.each([
    ['table', 'SELECT 1 FROM read_model.next_release'],
    ['column', 'SELECT next_release FROM (SELECT 1 AS this_release) AS rows'],
  ])('is to be tried again while a %s is not there that another release has', async (what, text) => {
    const read = new PostgresReadDatabase(database.pool)
    await expect(read.query({ name: `test/no-${what}`, text, parameters: [] }, {})).rejects.toThrow(
      ReadModelsLate,
    )
  })
})
