import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, type MigrationResultSet, Migrator, PostgresDialect, sql } from 'kysely'
import type pg from 'pg'
import {
  type DatabaseLog,
  DatabaseUnavailable,
  DeadlinePool,
  oneLine,
  parseDatabaseUrl,
  STATEMENT_LIMIT_MS,
} from './connection.ts'
import { migrations } from './migrations/index.ts'
import { ensureServiceRole, grantToServiceRole } from './service-role.ts'

const MIGRATION_TABLE = 'migration'
const MIGRATION_SCHEMA = 'schema_history'

/** How long a migration waits for the lock of a table: later readers wait behind it. */
const TABLE_LOCK_MS = 500
const PAUSE_MS = 1_000
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Brings the database to this program's schema, as the connecting user: at every start, under a lock, each pending
 * migration in a transaction of its own. One that does not get the lock of a table within {@link TABLE_LOCK_MS} lets
 * readers pass and tries again, for an hour at the most. Nothing is ever migrated backwards.
 * @param options.upTo the last migration to make, default all.
 * @throws DatabaseUnavailable when it cannot be reached, is newer than the program, or a migration fails.
 */
export async function migrate(options: {
  readonly url: string
  readonly log?: DatabaseLog
  readonly upTo?: string
}): Promise<void> {
  const target = parseDatabaseUrl(options.url)
  const pool = new DeadlinePool(target, {
    ...target.config('compstream migrate', STATEMENT_LIMIT_MS.long),
    max: 2,
  })
  pool.on('error', () => undefined)
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    await refuseNewerDatabase(pool, target.name)
    const serviceRole = await onClient(pool, ensureServiceRole)
    const migrator = new Migrator({
      db: kysely,
      provider: { getMigrations: async () => upTo(options.upTo) },
      migrationTableName: MIGRATION_TABLE,
      migrationLockTableName: `${MIGRATION_TABLE}_lock`,
      migrationTableSchema: MIGRATION_SCHEMA,
    })
    await underLock(pool, async (client) => {
      for (let isDone = false; !isDone; ) {
        const results = await nextMigration(migrator, target.name, options.log)
        for (const { migrationName } of results)
          options.log?.info({ migration: migrationName }, 'migrated the database')
        isDone = results.length === 0
      }
      if (serviceRole) await grantToServiceRole(client)
    })
  } catch (error) {
    throw error instanceof DatabaseUnavailable ? error : new DatabaseUnavailable(target.name, oneLine(error))
  } finally {
    await kysely.destroy()
  }
}

const impatient = Object.fromEntries(
  Object.entries(migrations).map(([name, { up }]) => [
    name,
    {
      async up(db: Kysely<unknown>) {
        await sql`SET LOCAL lock_timeout = ${sql.lit(TABLE_LOCK_MS)}`.execute(db)
        await up(db)
      },
    },
  ]),
)

/** The migrations up to one, all without one. */
function upTo(last: string | undefined): typeof impatient {
  return Object.fromEntries(Object.entries(impatient).filter(([name]) => last === undefined || name <= last))
}

/** Makes the next pending migration. @returns it; nothing when there is none. */
async function nextMigration(
  migrator: Migrator,
  target: string,
  log: DatabaseLog | undefined,
): Promise<NonNullable<MigrationResultSet['results']>> {
  const until = performance.now() + STATEMENT_LIMIT_MS.long
  for (let attempt = 0; ; attempt += 1) {
    const { error, results = [] } = await migrator.migrateUp()
    if (error === undefined) return results
    const failed = results.find(({ status }) => status === 'Error')
    const what = failed ? `migration ${failed.migrationName}` : 'the migration'
    const isLocked = (error as { code?: unknown }).code === LOCK_NOT_AVAILABLE
    if (!isLocked || performance.now() > until) {
      throw new DatabaseUnavailable(target, `${what} failed: ${oneLine(error)}`)
    }
    if (attempt === 0)
      log?.warn({ migration: failed?.migrationName }, 'a migration waits for a table that somebody uses')
    await delay(PAUSE_MS)
  }
}

/** The names of the migrations that a database has had, ascending; none of one that has never been migrated. */
export async function migrationsOf(db: Pick<pg.ClientBase | pg.Pool, 'query'>): Promise<readonly string[]> {
  const table = `${MIGRATION_SCHEMA}.${MIGRATION_TABLE}`
  const found = await db.query<{ oid: string | null }>('SELECT to_regclass($1)::text AS oid', [table])
  if (found.rows[0]?.oid === null) return []
  const { rows } = await db.query<{ name: string }>(`SELECT name FROM ${table} ORDER BY name`)
  return rows.map(({ name }) => name)
}

async function refuseNewerDatabase(pool: pg.Pool, name: string): Promise<void> {
  const unknown = (await migrationsOf(pool)).find((one) => !(one in migrations))
  if (unknown !== undefined) {
    throw new DatabaseUnavailable(name, `it is newer than this program (it has migration ${unknown})`)
  }
}

async function onClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    return await work(client)
  } finally {
    client.release()
  }
}

/** Two processes that start together would update the same catalogue rows, which PostgreSQL refuses. */
function underLock(pool: pg.Pool, work: (client: pg.ClientBase) => Promise<void>): Promise<void> {
  return onClient(pool, async (client) => {
    const lock = "hashtext('compstream grants')"
    // another process may migrate for longer than the url lets a statement take
    await client.query(
      `BEGIN; SET LOCAL statement_timeout = ${STATEMENT_LIMIT_MS.long}; SELECT pg_advisory_lock(${lock}); COMMIT`,
    )
    try {
      await work(client)
    } finally {
      await client.query(`SELECT pg_advisory_unlock(${lock})`).catch(() => undefined)
    }
  })
}
