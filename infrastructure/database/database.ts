import { randomInt } from 'node:crypto'
import type pg from 'pg'
import {
  connectClient,
  type DatabaseLog,
  type DatabaseTarget,
  DatabaseUnavailable,
  DeadlinePool,
  endClient,
  isConnectionLoss,
  type OnStatement,
  oneLine,
  orUnavailable,
  parseDatabaseUrl,
  STATEMENT_LIMIT_MS,
} from './connection.ts'
import { mayTakeServiceRole, SERVICE_ROLE } from './service-role.ts'
import { SupervisedSession } from './supervised-session.ts'
import { inTransaction } from './transaction.ts'

export {
  type DatabaseLog,
  DatabaseUnavailable,
  isConnectionLoss,
  type OnStatement,
  STATEMENT_LIMIT_MS,
} from './connection.ts'
export { grantSchemaToServiceRole, SERVICE_ROLE } from './service-role.ts'

interface DatabaseOptions {
  /** `postgresql://user:password@host:port/name`, as libpq takes it. */
  readonly url: string
  /** What it is called in messages, default `host:port/name`. */
  readonly name?: string
  readonly log?: DatabaseLog
  /** Connections for requests at the most, default 6. */
  readonly poolSize?: number
  /** What pg_stat_activity shows, default `compstream`. */
  readonly applicationName?: string
  /** Hears of each prepared statement, under its name. */
  readonly onStatement?: OnStatement
}

/**
 * Connections at the most, by what they are for: whatever takes long, or hangs, holds up its own kind only. With the
 * reading and writing ones of the event log, the listener, the session that tells of its life, one that makes tables or
 * compares them, and one that asks after a silent connection, a process has 22 at the most, and 4 more while
 * a rebuild catches up (docs/operators/deployment.md).
 */
const POOL_SIZE = { requests: 6, background: 5, leases: 2 }

/** Access to one PostgreSQL database. Its sessions run as {@link SERVICE_ROLE} where `serviceRole` says so. */
export interface Database {
  /** The address without the user: `host:port/name`, or as it was called. */
  readonly name: string
  /** For requests, which a caller waits for, and for all data keys and secrets. */
  readonly pool: pg.Pool
  /** For projections, process managers, and all else that no caller waits for. */
  readonly background: pg.Pool
  /** For leases and other signs of life. */
  readonly leases: pg.Pool
  /** All pools, by their purpose: connections at work, and who waits for one. */
  readonly use: () => Iterable<{ readonly name: string; readonly inUse: number; readonly waiting: number }>
  /** False when the connecting user can be no service role: then the triggers alone protect the events. */
  readonly serviceRole: boolean
  /** Runs `work` with a connection of a pool, default that of requests; one that broke is not used again. */
  withClient<T>(work: (client: pg.PoolClient) => Promise<T>, pool?: pg.Pool): Promise<T>
  /** Runs `work` in a transaction, see {@link inTransaction}. */
  transaction<T>(work: (client: pg.PoolClient) => Promise<T>, pool?: pg.Pool): Promise<T>
  /** Runs `work` on a connection of its own as the connecting user, which owns the schemas: for DDL, which may be long. */
  withOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T>
  /**
   * Opens a connection of its own beside the pool, as the service role; the caller ends it and hears of its loss
   * through `onLost`, once.
   * @param options.statementMs how long a statement may take, in milliseconds, default that of requests.
   * @param options.settings session settings (`name: value`).
   */
  connect(options: {
    purpose: string
    statementMs?: number
    settings?: Readonly<Record<string, string>>
    onLost?: (error: Error) => void
  }): Promise<pg.Client>
  /**
   * A pool of its own for one purpose, with session settings; the caller ends it.
   * @param options.statementMs how long a statement may take, in milliseconds, default that of requests.
   * @param options.settings session settings (`name: value`).
   */
  openPool(options: {
    purpose: string
    poolSize: number
    statementMs?: number
    settings?: Readonly<Record<string, string>>
  }): pg.Pool
  /**
   * Calls `handler` with the payload of each notification on a channel, and with null whenever the listening
   * connection is new, because notifications may have been missed by then. It has a connection of its own, and reconnects
   * for ever. Resolves when listening. @returns the function that ends it.
   */
  listen(channel: string, handler: (payload: string | null) => void): Promise<() => void>
  /** Ends all connections; waits for those that are in use. */
  close(): Promise<void>
}

const OLDEST_SERVER = 14

/**
 * Opens a database that {@link migrate} has brought up to date.
 * @throws DatabaseUnavailable when it cannot be reached or does not fit.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const parsed = parseDatabaseUrl(options.url)
  const target = { ...parsed, name: options.name ?? parsed.name }
  const applicationName = options.applicationName ?? 'compstream'
  const log = options.log ?? { info: () => undefined, warn: () => undefined }

  const ownerConfig = target.config(applicationName, STATEMENT_LIMIT_MS.request)
  const serviceRole = await inspect(target, ownerConfig)
  if (!serviceRole) {
    log.warn(
      {},
      `sessions cannot run as role ${SERVICE_ROLE} (the database user may neither create nor take it): ` +
        'stored events are protected by triggers alone',
    )
  }
  const configure = (
    purpose: string,
    statementMs: number | undefined,
    settings: Readonly<Record<string, string>> = {},
  ) =>
    target.config(
      purpose === '' ? applicationName : `${applicationName} ${purpose}`,
      statementMs ?? STATEMENT_LIMIT_MS.request,
      {
        ...(serviceRole ? { role: SERVICE_ROLE } : {}),
        ...settings,
      },
    )

  const pools = new Map<string, pg.Pool>()
  const openPool: Database['openPool'] = ({ purpose, poolSize, statementMs, settings }) => {
    const pool = new DeadlinePool(target, {
      ...configure(purpose, statementMs, settings),
      max: poolSize,
      onStatement: options.onStatement,
    })
    // an idle connection was lost: the pool has dropped it and opens another when needed
    // without a listener the loss of a connection in use would end the process; its user gets the error anyway
    pool.on('connect', (client) => client.on('error', () => undefined))
    pool.on('error', (error) => {
      // the server may end sessions of a closed pool before they have said goodbye
      if (!pool.ending) log.warn({ reason: oneLine(error) }, 'a database connection was lost')
    })
    pools.set(purpose || 'requests', pool)
    return pool
  }
  const connect: Database['connect'] = async ({ purpose, statementMs, settings, onLost }) => {
    const { onStatement } = options
    const client = await connectClient(target, {
      ...configure(purpose, statementMs, settings),
      ...(onStatement && { onStatement }),
    })
    let lost = false
    const report = (error: Error) => {
      if (lost) return
      lost = true
      onLost?.(error)
    }
    client.on('error', report)
    client.on('end', () => report(new Error('the connection was closed')))
    return client
  }

  const openOwn = (purpose: string, poolSize: number, statementMs: number) =>
    openPool({ purpose, poolSize, statementMs })
  const pool = openOwn('', options.poolSize ?? POOL_SIZE.requests, STATEMENT_LIMIT_MS.request)
  const background = openOwn('background', POOL_SIZE.background, STATEMENT_LIMIT_MS.background)
  const leases = openOwn('leases', POOL_SIZE.leases, STATEMENT_LIMIT_MS.lease)
  const listeners = new Set<SupervisedSession>()
  let closing: Promise<void> | undefined

  const withClient: Database['withClient'] = async (work, from = pool) => {
    const client = await from.connect()
    let broken: Error | undefined
    try {
      return await work(client)
    } catch (error) {
      if (isConnectionLoss(error)) broken = error as Error
      throw orUnavailable(target.name, error)
    } finally {
      client.release(broken)
    }
  }

  return {
    name: target.name,
    pool,
    background,
    leases,
    use: () =>
      [...pools].map(([name, { totalCount, idleCount, waitingCount }]) => ({
        name,
        inUse: totalCount - idleCount,
        waiting: waitingCount,
      })),
    serviceRole,
    openPool,
    connect,
    withClient,
    transaction: (work, from) => withClient((client) => inTransaction(client, () => work(client)), from),
    withOwner: async (work) => {
      const client = await connectClient(
        target,
        target.config(`${applicationName} owner`, STATEMENT_LIMIT_MS.long),
      )
      try {
        return await work(client)
      } catch (error) {
        throw orUnavailable(target.name, error)
      } finally {
        await endClient(client)
      }
    },
    listen: async (channel, handler) => {
      const notify = (payload: string | null) => {
        if (!session.closing.aborted) handler(payload)
      }
      const session = new SupervisedSession({
        name: target.name,
        connect: (onLost) => connect({ purpose: 'listener', onLost }),
        async prepare(client) {
          client.on('notification', ({ payload }) => notify(payload ?? ''))
          await client.query(`LISTEN ${client.escapeIdentifier(channel)}`)
          notify(null)
        },
        hasHeartbeat: true,
        lost: ({ message }) => log.warn({ reason: message }, 'the listening database connection was lost'),
      })
      await session.client()
      listeners.add(session)
      return () => void session.close()
    },
    close: () => {
      closing ??= (async () => {
        await Promise.all([...listeners].map((one) => one.close()))
        await Promise.all([pool, background, leases].map((one) => one.end()))
      })()
      return closing
    },
  }
}

/** Whether two databases are one, whatever their addresses: a lock of the one is seen in the other. */
export async function isSameDatabase(one: Database, other: Database): Promise<boolean> {
  if (one === other) return true
  const lock = randomInt(2 ** 47)
  return one.transaction(async (holder) => {
    await holder.query('SELECT pg_advisory_xact_lock($1)', [lock])
    return other.transaction(async (taker) => {
      const { rows } = await taker.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [
        lock,
      ])
      return !rows[0]!.free
    })
  })
}

/** Refuses servers that do not fit. @returns whether sessions may run as the service role. */
async function inspect(target: DatabaseTarget, config: pg.ClientConfig): Promise<boolean> {
  const client = await connectClient(target, config)
  try {
    const { rows } = await client.query<{ version: number; encoding: string; granted: boolean | null }>(
      `SELECT current_setting('server_version_num')::int / 10000 AS version,
              current_setting('server_encoding') AS encoding,
              (SELECT has_schema_privilege(role.oid, log.oid, 'USAGE') FROM pg_roles AS role, pg_namespace AS log
                WHERE role.rolname = $1 AND log.nspname = 'event_log') AS granted`,
      [SERVICE_ROLE],
    )
    const { version, encoding, granted } = rows[0]!
    if (version < OLDEST_SERVER) {
      throw new DatabaseUnavailable(target.name, `version ${version} is too old, ${OLDEST_SERVER} is needed`)
    }
    if (encoding !== 'UTF8') {
      throw new DatabaseUnavailable(target.name, `the database's encoding is ${encoding}, UTF8 is needed`)
    }
    return granted === true && (await mayTakeServiceRole(client))
  } catch (error) {
    throw error instanceof DatabaseUnavailable ? error : new DatabaseUnavailable(target.name, oneLine(error))
  } finally {
    await endClient(client)
  }
}
