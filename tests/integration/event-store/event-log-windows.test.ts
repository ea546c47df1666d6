// @module-tag once: it has the log that it needs itself
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LOG_START, type LogPage } from '../../../application/ports/event-log.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { readPage, SEARCH_WINDOW } from '../../../infrastructure/event-store/postgres/event-queries.ts'
import {
  openPostgresEventLog,
  type PostgresEventLog,
} from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { EVENT_METADATA } from '../../support/log.ts'
import { accounts, openProcess } from '../../support/projection-process.ts'

const WINDOWS = 4
/** Of the type that is looked for: in the last window, and the last event of all. */
const RARE = [BigInt(3 * SEARCH_WINDOW + 5), BigInt(WINDOWS * SEARCH_WINDOW)]

let created: TestDatabase
let database: Database
let log: PostgresEventLog

beforeAll(async () => {
  created = await createTestDatabase()
  database = await openDatabase({ url: created.url })
  await database.withOwner((client) =>
    client.query(
      `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
       SELECT n, 0, gen_random_uuid(), 'account-' || n, CASE WHEN n = ANY ($2) THEN 'Opened' ELSE 'Noted' END,
         json_build_object('account', n::text, 'owner', 'o', 'text', 't'), $3
       FROM generate_series(1, $1::bigint) AS n`,
      [WINDOWS * SEARCH_WINDOW, RARE, JSON.stringify({ ...EVENT_METADATA, hash: '0'.repeat(64) })],
    ),
  )
  log = await openPostgresEventLog({ database })
})
afterAll(async () => {
  await log?.close()
  await database?.close()
  await created?.drop()
})

describe('events of a rare type', () => {
  test('are looked for step by step, each statement in so many positions', async () => {
    const pages: LogPage[] = []
    for (let after = LOG_START; !pages.at(-1)?.atHead; after = pages.at(-1)!.checkpoint) {
      pages.push(await log.readAll({ after, maxCount: 100, types: ['Opened'] }))
      expect(pages.at(-1)!.checkpoint - after).toBeLessThanOrEqual(BigInt(SEARCH_WINDOW))
    }
    expect(pages).toHaveLength(WINDOWS)
    expect(pages.flatMap(({ events }) => events.map(({ position }) => position))).toEqual(RARE)

    // what the database itself looks at for one of them
    const plans: string[] = []
    await readPage(
      {
        query: async (config) => {
          const { text, values } = config as { text: string; values: unknown[] }
          const { rows } = await database.pool.query(`EXPLAIN (ANALYZE, TIMING OFF) ${text}`, values)
          plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
          return database.pool.query(config)
        },
      },
      { after: LOG_START, maxCount: 100, types: ['Opened'] },
    )
    const filtered = Number(/Rows Removed by Filter: (\d+)/.exec(plans[0]!)![1])
    expect(filtered).toBeLessThanOrEqual(SEARCH_WINDOW)
  })

  test('can be left off between two steps, and gone on with from there', async () => {
    const stop = new AbortController()
    const checkpoints: bigint[] = []
    for await (const page of log.subscribe({
      after: LOG_START,
      types: ['Opened'],
      pageSize: 100,
      signal: stop.signal,
    })) {
      checkpoints.push(page.checkpoint)
      if (checkpoints.length === 2) stop.abort()
    }
    expect(checkpoints).toEqual([BigInt(SEARCH_WINDOW), BigInt(2 * SEARCH_WINDOW)])
    const rest: LogPage[] = []
    for await (const page of log.subscribe({
      after: checkpoints[1]!,
      types: ['Opened'],
      pageSize: 100,
      signal: AbortSignal.timeout(240_000),
    })) {
      rest.push(page)
      if (page.atHead) break
    }
    expect(rest.flatMap(({ events }) => events.map(({ position }) => position))).toEqual(RARE)
  })

  test('build a read model, also one that is held at a position', async () => {
    const process = await openProcess(created.url, accounts())
    try {
      await process.caughtUp()
      expect((await process.accounts()).map(({ account }) => account).sort()).toEqual(RARE.map(String).sort())
      await process.projections.rebuild('accounts')
      await process.until(({ generation }) => generation === 2)
      expect(await process.projections.rollback('accounts')).toMatchObject({ switched: true })
    } finally {
      await process.close()
    }
  })
})
