import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { expect } from 'vitest'
import { createTestDatabase } from './database.ts'
import type { Answer } from './seed.ts'
import { type RunningService, startService } from './service.ts'
import { until } from './workbench.ts'

const LOCK = 4_242

/** A service on a PostgreSQL of its own that dies while the log holds one of its appends back. */
export interface DyingService {
  /** The one that runs now. */
  readonly service: RunningService
  /** Kills the service as it appends an event of a type, which is then not stored, and starts it again. */
  killedAt(type: string, request: () => Promise<Answer>): Promise<void>
  stop(): Promise<void>
}

export async function startDyingService(): Promise<DyingService> {
  const database = await createTestDatabase()
  const client = new pg.Client(database.url)
  await client.connect()
  await client.query(`
    CREATE FUNCTION held_back() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(${LOCK}); RETURN NEW; END $$`)
  const env = {
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
  }
  let service = await startService({ env })
  return {
    get service() {
      return service
    },
    async killedAt(type, request) {
      await client.query(`SELECT pg_advisory_lock(${LOCK})`)
      await client.query(`
        CREATE TRIGGER holding BEFORE INSERT ON event_log.events
        FOR EACH ROW WHEN (NEW.type = '${type}') EXECUTE FUNCTION held_back()`)
      const lost = request().catch(() => null)
      const waiting = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCK} AND NOT granted`
      await until(async () => (await client.query(waiting)).rows.length > 0)
      await service.kill()
      expect(await lost).toBeNull()
      await client.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS held`)
      await until(async () => (await client.query(waiting)).rows.length === 0)
      await client.query('DROP TRIGGER holding ON event_log.events')
      await client.query(`SELECT pg_advisory_unlock(${LOCK})`)
      service = await startService({ env })
    },
    async stop() {
      await service.stop()
      await client.end()
      await database.drop()
    },
  }
}
