// @module-tag each-log
import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import type { EventLog } from '../../../application/ports/event-log.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import {
  type LogEngine,
  LogTooShort,
  OtherEventLog,
  refuseOtherLog,
  rememberLog,
} from '../../../infrastructure/installation/log-pairing.ts'
import { createTestDatabase } from '../../support/database.ts'
import { isLogInEventStore } from '../../support/installation.ts'
import { openTestLog } from '../../support/log.ts'

const ENGINE: LogEngine = isLogInEventStore ? 'eventstoredb' : 'postgresql'

const closers: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

/** A database and its log, both empty. */
async function open(): Promise<{ pool: Database['pool']; log: EventLog }> {
  const created = await createTestDatabase()
  closers.push(created.drop)
  const database = await openDatabase({ url: created.url })
  closers.push(database.close)
  const log = await openTestLog(database, created.url)
  closers.push(() => log.close())
  return { pool: database.pool, log }
}

async function append(log: EventLog): Promise<void> {
  await log.append(`test-${randomUUID()}`, -1, [
    { type: 'SomethingHappened', data: '{}', metadata: '{"schema_version":1}' },
  ])
}

test('a database is bound to its log and takes no other one', async () => {
  const [{ pool, log }, other] = await Promise.all([open(), open()])
  await append(log)
  await append(other.log)
  for (let start = 0; start < 2; start += 1) await rememberLog(pool, ENGINE, log)
  await expect(rememberLog(pool, ENGINE, other.log)).rejects.toThrow(OtherEventLog)
  const engine = ENGINE === 'postgresql' ? 'eventstoredb' : 'postgresql'
  await expect(rememberLog(pool, engine, log)).rejects.toThrow(OtherEventLog)
})

test('an installation that was moved is refused where it was, naming where it went', async () => {
  const { pool, log } = await open()
  await append(log)
  await rememberLog(pool, ENGINE, log)
  await pool.query(`UPDATE runtime.log_binding SET moved_to = 'PostgreSQL at db.internal:5432/compstream'`)
  await expect(refuseOtherLog(pool, ENGINE, log)).rejects.toThrow(
    /was moved to PostgreSQL at db\.internal:5432\/compstream: start it there/,
  )
})

/** As a projection stores how far it has read. */
async function readUpTo(pool: Database['pool'], position: bigint): Promise<void> {
  await pool.query(
    `INSERT INTO runtime.process_managers (name, position, epoch) VALUES ('reader', $1, 1)
     ON CONFLICT (name) DO UPDATE SET position = excluded.position`,
    [String(position)],
  )
}

test('a log that ends before what was read of it is refused by a database that was paired with none, and nothing is changed', async () => {
  const [{ pool, log }, other] = await Promise.all([open(), open()])
  await append(log)
  await readUpTo(pool, await log.head())
  for (let start = 0; start < 2; start += 1) {
    await expect(rememberLog(pool, ENGINE, other.log)).rejects.toThrow(LogTooShort)
  }
  await rememberLog(pool, ENGINE, log)
  await append(other.log)
  await expect(rememberLog(pool, ENGINE, other.log)).rejects.toThrow(OtherEventLog)
})
