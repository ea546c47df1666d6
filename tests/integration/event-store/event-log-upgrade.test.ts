// @module-tag once: it has the log that it needs itself
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, type Migration, Migrator, PostgresDialect } from 'kysely'
import pg from 'pg'
import { expect, test } from 'vitest'
import { LOG_START } from '../../../application/ports/event-log.ts'
import { openDatabase } from '../../../infrastructure/database/database.ts'
import { migrate } from '../../../infrastructure/database/migrate.ts'
import { migrations } from '../../../infrastructure/database/migrations/index.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { anEvent, expectIntactChains } from '../../contract/event-store/event-log.contract.ts'
import { createTestDatabase } from '../../support/database.ts'

interface Row {
  readonly position: string
  readonly revision: number
  readonly event_id: string
  readonly stream: string
  readonly type: string
  readonly data: string
  readonly metadata: string
}

/** As an earlier build wrote them. */
const rows = JSON.parse(
  readFileSync(join(import.meta.dirname, '../..', 'golden', 'log-before-append-function.json'), 'utf8'),
) as Row[]

test('a log that an earlier build has written is brought up to date, read and continued', async () => {
  const { url, drop } = await createTestDatabase({ migrate: false })
  const pool = new pg.Pool({ connectionString: url })
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  const migrator = new Migrator({
    db: kysely,
    provider: { getMigrations: async () => migrations as Record<string, Migration> },
    migrationTableName: 'migration',
    migrationLockTableName: 'migration_lock',
    migrationTableSchema: 'schema_history',
  })
  expect((await migrator.migrateTo('0009-moved-to')).error).toBeUndefined()
  for (const row of rows) {
    await pool.query(
      `INSERT INTO event_log.events (position, revision, event_id, stream, type, data, metadata)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      Object.values(row),
    )
  }
  await kysely.destroy()

  await migrate({ url })
  const database = await openDatabase({ url })
  const log = await openPostgresEventLog({ database, isExclusive: true })
  try {
    const { events } = await log.readAll({ after: LOG_START, maxCount: 100 })
    expect(
      events.map(({ position, eventId, ...event }) => ({
        ...event,
        position: String(position),
        event_id: eventId,
      })),
    ).toEqual(rows)
    const { revision } = rows.findLast(({ stream }) => stream === 'account-1')!
    const { position } = await log.append('account-1', revision, [anEvent()])
    expect(position).toBe(BigInt(rows.length + 1))
    expectIntactChains(await log.readStream('account-1'))
  } finally {
    await log.close()
    await database.close()
    await drop()
  }
})
