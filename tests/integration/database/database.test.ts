// @module-tag once: its subject is the same whatever holds the log
import { createServer } from 'node:net'
import { Kysely, Migrator, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { DatabaseUnavailable, openDatabase, SERVICE_ROLE } from '../../../infrastructure/database/database.ts'
import { migrate } from '../../../infrastructure/database/migrate.ts'
import { migrations } from '../../../infrastructure/database/migrations/index.ts'
import { RolledBack } from '../../../infrastructure/database/transaction.ts'
import { createTestDatabase, withServer } from '../../support/database.ts'
import { until } from '../../support/workbench.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const work of cleanups.splice(0)) await work()
})

async function aDatabase(options: { migrate?: boolean } = {}) {
  const created = await createTestDatabase(options)
  cleanups.unshift(() => created.drop())
  return created
}

async function opened(url: string) {
  const database = await openDatabase({ url })
  cleanups.unshift(() => database.close())
  return database
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

/** The schema of an earlier release. */
async function migratedUpTo(url: string, name: string): Promise<void> {
  const kysely = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
  })
  const provider = { getMigrations: async () => ({ ...migrations }) }
  const tables = { migrationTableName: 'migration', migrationTableSchema: 'schema_history' }
  const migrator = new Migrator({
    db: kysely,
    provider,
    ...tables,
    migrationLockTableName: 'migration_lock',
  })
  const { error } = await migrator.migrateTo(name)
  await kysely.destroy()
  if (error) throw error
}

async function terminate(name: string, application: string): Promise<void> {
  await withServer((server) =>
    server.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name = $2',
      [name, application],
    ),
  )
}

describe('migrations', () => {
  test('bring an empty database up to date, up to one and then to the last, and are not repeated', async () => {
    const { url } = await aDatabase({ migrate: false })
    const info = vi.fn()
    for (let n = 0; n < 2; n += 1) {
      await migrate({ url, upTo: '0002-projections', log: { info, warn: () => undefined } })
      expect(info).toHaveBeenCalledTimes(2)
    }
    await migrate({ url, log: { info, warn: () => undefined } })
    expect(info).toHaveBeenCalledTimes(Object.keys(migrations).length)
    await migrate({ url, log: { info, warn: () => undefined } })
    expect(info).toHaveBeenCalledTimes(Object.keys(migrations).length)
    const rows = await query(url, 'SELECT name FROM schema_history.migration ORDER BY name')
    expect(rows.map(({ name }) => name)).toEqual(Object.keys(migrations))
  })

  test('run once when several processes start together', async () => {
    const { url } = await aDatabase({ migrate: false })
    await Promise.all(Array.from({ length: 4 }, () => migrate({ url })))
    expect(await query(url, 'SELECT name FROM schema_history.migration')).toHaveLength(
      Object.keys(migrations).length,
    )
  })

  // several that start together run them once
  test('wait for those of another process, however little time the url gives a statement', {
    tags: 'long',
  }, async () => {
    const { url } = await aDatabase()
    const other = new pg.Client(url)
    await other.connect()
    cleanups.unshift(() => other.end())
    await other.query("SELECT pg_advisory_lock(hashtext('compstream grants'))")
    const short = new URL(url)
    short.searchParams.set('options', '-c statement_timeout=1000')
    let isOver = false
    const migrated = migrate({ url: short.toString() }).finally(() => {
      isOver = true
    })
    await other.query('SELECT pg_sleep(1.5)')
    expect(isOver).toBe(false)
    await other.query("SELECT pg_advisory_unlock(hashtext('compstream grants'))")
    await migrated
  })

  test('let readers of a table pass while one reads it for long', async () => {
    const { url } = await aDatabase({ migrate: false })
    await migratedUpTo(url, '0010-append')
    const reader = new pg.Client(url)
    await reader.connect()
    cleanups.unshift(() => reader.end())
    await reader.query('BEGIN; SELECT FROM runtime.work')
    const warn = vi.fn()
    const migrated = migrate({ url, log: { info: () => undefined, warn } })
    await vi.waitUntil(() => warn.mock.calls.length > 0, { timeout: 60_000 })
    expect(warn.mock.calls[0]![0]).toEqual({ migration: '0011-work-slots' })
    expect(await query(url, 'SELECT count(*)::int AS pieces FROM runtime.work')).toEqual([{ pieces: 0 }])
    await reader.query('COMMIT')
    await migrated
    expect(await query(url, 'SELECT name FROM schema_history.migration')).toHaveLength(
      Object.keys(migrations).length,
    )
  })

  test('are in ascending order, so that none is ever slipped in before another', () => {
    const names = Object.keys(migrations)
    expect(names).toEqual([...names].sort())
  })

  test('refuse a database that a newer program has migrated', async () => {
    const { url } = await aDatabase()
    await query(url, `INSERT INTO schema_history.migration VALUES ('9999-from-the-future', 'now')`)
    await expect(migrate({ url })).rejects.toThrow(/is newer than this program .*9999-from-the-future/)
  })

  test('give the service role back what a restored dump may lack', async () => {
    const { url } = await aDatabase()
    await query(url, `REVOKE ALL ON SCHEMA event_log, runtime, read_model FROM ${SERVICE_ROLE}`)
    // as where functions are nobody's by default
    await query(url, 'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA runtime FROM PUBLIC')
    await migrate({ url })
    const database = await opened(url)
    expect(database.serviceRole).toBe(true)
    expect((await database.pool.query('SELECT * FROM event_log.events')).rows).toEqual([])
    expect((await database.pool.query(`SELECT * FROM runtime.data_keys_of('{}')`)).rows).toEqual([])
  })
})

describe('the database', () => {
  test('runs its sessions as the service role, in UTC, and owner work as the connecting user', async () => {
    const database = await opened((await aDatabase()).url)
    const who = `SELECT current_user AS "user", current_setting('TimeZone') AS zone`
    expect((await database.pool.query(who)).rows).toEqual([{ user: SERVICE_ROLE, zone: 'UTC' }])
    const owner = await database.withOwner((client) => client.query<{ user: string }>(who))
    expect(owner.rows[0]!.user).not.toBe(SERVICE_ROLE)
  })

  test('commits what resolves and rolls back what throws, or what the server rolls back', async () => {
    const database = await opened((await aDatabase()).url)
    await database.withOwner((client) => client.query('CREATE TABLE t (n int); GRANT ALL ON t TO PUBLIC'))
    expect(
      await database.transaction(async (client) => (await client.query('INSERT INTO t VALUES (1)')).rowCount),
    ).toBe(1)
    const failing = database.transaction(async (client) => {
      await client.query('INSERT INTO t VALUES (2)')
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    const halfFailing = database.transaction(async (client) => {
      await client.query('INSERT INTO t VALUES (3)')
      await client.query('SELECT 1 / 0').catch(() => undefined)
    })
    await expect(halfFailing).rejects.toThrow(RolledBack)
    expect((await database.pool.query('SELECT n FROM t')).rows).toEqual([{ n: 1 }])
    expect(database.pool.idleCount).toBe(database.pool.totalCount)
  })

  test('goes on with another connection when one is lost in use', async () => {
    const database = await opened((await aDatabase()).url)
    const lost = database.withClient(async (client) => {
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      await withServer((server) => server.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid]))
      await client.query('SELECT 1')
    })
    await expect(lost).rejects.toThrow()
    expect((await database.pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  test('delivers notifications, and tells when some may have been missed', async () => {
    const { url, name } = await aDatabase()
    const database = await opened(url)
    const heard: (string | null)[] = []
    const stop = await database.listen('some channel', (payload) => heard.push(payload))
    await database.pool.query(`SELECT pg_notify('some channel', 'first')`)
    await until(() => heard.includes('first'))
    const before = heard.length
    await terminate(name, 'compstream listener')
    await until(() => heard.length > before)
    expect(heard.at(-1)).toBeNull()
    await database.pool.query(`SELECT pg_notify('some channel', 'second')`)
    await until(() => heard.includes('second'))
    stop()
    const other: (string | null)[] = []
    await database.listen('some channel', (payload) => other.push(payload))
    await database.pool.query(`SELECT pg_notify('some channel', 'third')`)
    await until(() => other.includes('third'))
    expect(heard).not.toContain('third')
  })
})

describe('a database that cannot be used is refused in one clear line without the password', () => {
  async function refusal(url: string): Promise<string> {
    for (const attempt of [() => openDatabase({ url }), () => migrate({ url })]) {
      const error: unknown = await attempt().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(DatabaseUnavailable)
      const { message } = error as Error
      expect(message).not.toContain('\n')
      expect(message).not.toContain('s3cret')
    }
    return openDatabase({ url }).then(
      () => '',
      (error: Error) => error.message,
    )
  }

  test('when nothing listens there', async () => {
    const probe = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => probe.once('listening', resolve))
    const { port } = probe.address() as { port: number }
    await new Promise((resolve) => probe.close(resolve))
    expect(await refusal(`postgresql://me:s3cret@127.0.0.1:${port}/name`)).toBe(
      `PostgreSQL at 127.0.0.1:${port}/name: connect ECONNREFUSED 127.0.0.1:${port}`,
    )
  })

  test('when the password is wrong', async () => {
    const url = new URL((await aDatabase()).url)
    url.password = 's3cret'
    expect(await refusal(url.toString())).toContain('password authentication failed')
  })

  test('when the database does not exist', async () => {
    const url = new URL((await aDatabase()).url)
    url.pathname = '/nowhere'
    expect(await refusal(url.toString())).toContain('database "nowhere" does not exist')
  })

  test.each([
    ['mysql://me:s3cret@localhost/name', 'mysql:// is not postgresql://'],
    ['s3cret', 'it is no url'],
    ['postgresql://me:s3cret@exa mple/name', 'it is no url'],
  ])('when the address is %s', async (url, why) => {
    expect(await refusal(url)).toContain(why)
  })

  test('when its encoding is not UTF8', async () => {
    const { name, url } = await aDatabase({ migrate: false })
    await withServer(async (server) => {
      await server.query(`DROP DATABASE ${name}`)
      await server.query(
        `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`,
      )
    })
    await expect(openDatabase({ url })).rejects.toThrow("the database's encoding is LATIN1, UTF8 is needed")
  })
})
