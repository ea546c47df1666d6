import { Kysely, type Migration, Migrator, PostgresDialect, sql } from 'kysely'
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

/**
 * Brings the database to this program's schema, as the connecting user: at every start, under a lock, all pending
 * migrations in one transaction. Nothing is ever migrated backwards.
 * @throws DatabaseUnavailable when it cannot be reached, is newer than the program, or a migration fails.
 */
export async function migrate(options: { readonly url: string; readonly log?: DatabaseLog }): Promise<void> {
  const target = parseDatabaseUrl(options.url)
  const pool = new DeadlinePool(target, {
    ...target.config('compstream migrate', STATEMENT_LIMIT_MS.long),
    max: 2,
  })
  pool.on('error', () => undefined)
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    await refuseNewerDatabase(kysely, target.name)
    const serviceRole = await onClient(pool, ensureServiceRole)
    const migrator = new Migrator({
      db: kysely,
      provider: { getMigrations: async () => migrations as Record<string, Migration> },
      migrationTableName: MIGRATION_TABLE,
      migrationLockTableName: `${MIGRATION_TABLE}_lock`,
      migrationTableSchema: MIGRATION_SCHEMA,
    })
    const { error, results = [] } = await migrator.migrateToLatest()
    if (error !== undefined) {
      const failed = results.find(({ status }) => status === 'Error')
      throw new DatabaseUnavailable(
        target.name,
        `${failed ? `migration ${failed.migrationName}` : 'the migration'} failed: ${oneLine(error)}`,
      )
    }
    for (const { migrationName } of results)
      options.log?.info({ migration: migrationName }, 'migrated the database')
    if (serviceRole) await onClient(pool, (client) => underLock(client, () => grantToServiceRole(client)))
  } catch (error) {
    throw error instanceof DatabaseUnavailable ? error : new DatabaseUnavailable(target.name, oneLine(error))
  } finally {
    await kysely.destroy()
  }
}

async function refuseNewerDatabase(kysely: Kysely<unknown>, name: string): Promise<void> {
  const table = sql.table(`${MIGRATION_SCHEMA}.${MIGRATION_TABLE}`)
  const { rows: found } = await sql<{ oid: string | null }>`
    SELECT to_regclass(${`${MIGRATION_SCHEMA}.${MIGRATION_TABLE}`})::text AS oid`.execute(kysely)
  if (found[0]?.oid === null) return
  const { rows } = await sql<{ name: string }>`SELECT name FROM ${table} ORDER BY name`.execute(kysely)
  const unknown = rows.find((row) => !(row.name in migrations))
  if (unknown) {
    throw new DatabaseUnavailable(name, `it is newer than this program (it has migration ${unknown.name})`)
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
async function underLock(client: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query("BEGIN; SELECT pg_advisory_xact_lock(hashtext('compstream grants'))")
  try {
    await work()
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}
