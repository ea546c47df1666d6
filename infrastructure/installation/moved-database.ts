import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { LOG_START } from '../../application/ports/event-log.ts'
import type { LogIdentity, Moved, MovedDatabase } from '../../application/ports/moved-database.ts'
import { systemClock } from '../clock/system-clock.ts'
import { ConfigError } from '../config-error.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import type { Database } from '../database/database.ts'
import { FINGERPRINT_ROOT, fingerprintsOf } from '../secrets/personal-data.ts'
import { PostgresSecretVault } from '../secrets/vault.ts'
import { carryTables, knowsAllKeysOf } from './carried-tables.ts'
import { type LogEngine, OtherEventLog, readPairing, storePairing } from './log-pairing.ts'
import { KeysMissing } from './pairing.ts'

/** Sessions of a service that has just ended are gone by then. */
const WAIT_MS = 3_000

/** A service works on the database; the message is one clear line. */
export class DatabaseInUse extends Error {
  override readonly name = 'DatabaseInUse'
}

/** Which of two databases counts cannot be told; the message is one clear line. */
export class DatabasesApart extends Error {
  override readonly name = 'DatabasesApart'
}

interface Options {
  /** The database that belongs to the source. */
  readonly from: Database
  /** The database that shall belong to the target: the same one, or one that is empty but for an earlier attempt. */
  readonly to: Database
  readonly engines: { readonly source: LogEngine; readonly target: LogEngine }
  /** Master keys that open what is in `from`, the one of `to` first; null where they are not known. */
  readonly masterKeys: MasterKeys | null
}

/** What stands in PostgreSQL beside the log. */
export class PostgresMovedDatabase implements MovedDatabase {
  readonly from: string
  readonly to: string
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
    this.from = nameOf(options.from)
    this.to = nameOf(options.to)
  }

  async follows(
    source: LogIdentity,
    target: LogIdentity,
    keyCheckValue: string | null,
  ): Promise<'source' | 'target' | 'either'> {
    const { from, to, engines } = this.#options
    const paired = await readPairing(from.pool)
    const is = (engine: LogEngine, log: LogIdentity) =>
      paired?.engine === engine &&
      log.firstEventId !== null &&
      paired.firstEventId === log.firstEventId &&
      paired.firstPosition === log.firstPosition
    const [isSource, isTarget] = [is(engines.source, source), is(engines.target, target)]
    // paired to a log that was empty then, or to none: right only for what has not got beyond its start
    const isOpen =
      paired?.firstEventId == null &&
      (paired?.engine === engines.source ||
        (await this.positions()).every((position) => position === LOG_START))
    if (!isSource && !isTarget && !isOpen) {
      throw new OtherEventLog(
        `${this.from} belongs to another log than the one that is copied: name the database that belongs to it ` +
          'with --from-database, or copy the log alone with --log-only',
      )
    }
    if (source.firstEventId !== null) await this.#demandKeys(keyCheckValue, isOpen || from !== to)
    if (isSource && isTarget) return from === to ? 'either' : 'source'
    return isTarget ? 'target' : 'source'
  }

  /**
   * @param mustOpen whether the keys are to be opened; not where it is known already that they belong to the log.
   * @throws KeysMissing, ConfigError, MasterKeyError
   */
  async #demandKeys(keyCheckValue: string | null, mustOpen: boolean): Promise<void> {
    const { from, to, masterKeys } = this.#options
    const { rowCount } = await from.pool.query('SELECT FROM runtime.secrets WHERE ref = $1', [
      FINGERPRINT_ROOT,
    ])
    if (rowCount === 0) {
      throw new KeysMissing(
        `${this.from} holds no keys of the log: name the database that does with --from-database, or copy the log ` +
          'alone with --log-only',
      )
    }
    if (!mustOpen) return
    if (!masterKeys) {
      throw new ConfigError(
        `MASTER_KEY is missing: expected the one that the service on ${this.to} is started with`,
      )
    }
    const root = (database: Database) =>
      new PostgresSecretVault(database.pool, masterKeys, systemClock).get(FINGERPRINT_ROOT)
    const [ours, theirs] = [(await root(from))!, await root(to)]
    if (keyCheckValue !== null && fingerprintsOf(ours).keyCheckValue !== keyCheckValue) {
      throw new KeysMissing(`${this.from} holds the keys of another log than the one that is copied`)
    }
    if (theirs !== null && theirs !== ours) {
      throw new KeysMissing(`${this.to} holds the keys of another installation: take an empty database`)
    }
  }

  async positions(): Promise<readonly bigint[]> {
    const { from, to } = this.#options
    for (const database of new Set([from, to])) await refuseWhileInUse(database, database.pool)
    const { rows } = await from.pool.query<[string]>({
      text: 'SELECT DISTINCT position FROM runtime.process_managers ORDER BY position',
      rowMode: 'array',
    })
    return rows.map(([position]) => BigInt(position))
  }

  async move(translated: ReadonlyMap<bigint, bigint>, log: LogIdentity): Promise<Moved> {
    const { from, to, engines, masterKeys } = this.#options
    const moved = await to.withOwner((client) =>
      inTransaction(client, 'READ COMMITTED', async (): Promise<Moved> => {
        await client.query('LOCK TABLE runtime.process_managers, runtime.log_binding IN EXCLUSIVE MODE')
        await refuseWhileInUse(to, client)
        if (from !== to && (await this.#hasMoved(client, log))) {
          return { outcome: 'moved before', carried: null }
        }
        // of one database, the keys stay as they are
        const rows =
          masterKeys && from !== to
            ? await from.withClient((source) =>
                inTransaction(source, 'REPEATABLE READ READ ONLY', () =>
                  carryTables(source, client, masterKeys),
                ),
              )
            : null
        await translate(client, translated)
        await dropReadModels(client)
        await storePairing(client, { engine: engines.target, ...log })
        return { outcome: 'moved', carried: rows }
      }),
    )
    if (from !== to) {
      // two services with the same keys would each accept what the other one never hears of
      await from.pool.query('UPDATE runtime.log_binding SET moved_to = $1', [this.to])
    }
    return moved
  }

  /**
   * Whether an earlier move to another database has ended there, and what stands there counts from now on: carrying
   * again would take away what a service made there since.
   * @param client of the target, in a transaction.
   * @throws DatabasesApart when it cannot be told which of the two counts.
   */
  async #hasMoved(client: pg.Client, log: LogIdentity): Promise<boolean> {
    const { from, engines } = this.#options
    const [left, reached] = [await readPairing(from.pool), await readPairing(client)]
    const isPaired =
      log.firstEventId !== null &&
      reached?.engine === engines.target &&
      reached.firstEventId === log.firstEventId &&
      reached.firstPosition === log.firstPosition &&
      (await client.query('SELECT FROM runtime.secrets WHERE ref = $1', [FINGERPRINT_ROOT])).rowCount === 1
    if (!isPaired) return false
    if (reached.movedTo !== null) {
      if (left?.movedTo == null) return false
      throw new DatabasesApart(
        `the installation was moved from here to ${left.movedTo}, and from ${this.to} to ${reached.movedTo}: ` +
          'name the database where it was last with --from-database',
      )
    }
    // the mark is missing when the move was killed before it; a service may then have gone on here, or there
    if (left?.movedTo !== this.to && !(await hasWorked(client))) return false
    const knowsAll = await from.withClient((source) =>
      inTransaction(source, 'REPEATABLE READ READ ONLY', () => knowsAllKeysOf(source, client)),
    )
    if (!knowsAll) {
      throw new DatabasesApart(
        `services have worked on both ${this.from} and ${this.to} since the last move, and each holds keys or ` +
          'erasures that the other one lacks: take an empty target',
      )
    }
    return true
  }
}

/** Whether a service has followed the log since everything was carried here. */
async function hasWorked(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ worked: boolean }>(
    `SELECT EXISTS (SELECT FROM runtime.projections)
         OR EXISTS (SELECT FROM runtime.process_managers WHERE epoch > 0) AS worked`,
  )
  return rows[0]!.worked
}

async function translate(client: pg.Client, translated: ReadonlyMap<bigint, bigint>): Promise<void> {
  await client.query(
    `UPDATE runtime.process_managers AS stored SET position = moved.after
     FROM unnest($1::bigint[], $2::bigint[]) AS moved (before, after) WHERE stored.position = moved.before`,
    [[...translated.keys()].map(String), [...translated.values()].map(String)],
  )
}

/** Their rows hold positions of the log that is left; the next start builds them anew. */
async function dropReadModels(client: pg.Client): Promise<void> {
  await client.query('TRUNCATE runtime.projections, runtime.parked_streams, runtime.projection_requests')
  const { rows } = await client.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'rm\\_%'`,
  )
  for (const { name } of rows) await client.query(`DROP SCHEMA ${client.escapeIdentifier(name)} CASCADE`)
}

async function inTransaction<T>(
  client: pg.ClientBase,
  mode: 'READ COMMITTED' | 'REPEATABLE READ READ ONLY',
  work: () => Promise<T>,
): Promise<T> {
  await client.query(`BEGIN ISOLATION LEVEL ${mode}`)
  try {
    const result = await work()
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** A service on EventStoreDB holds nothing in its log; its sessions here give it away. @throws DatabaseInUse */
async function refuseWhileInUse(database: Database, db: Pick<pg.ClientBase, 'query'>): Promise<void> {
  for (const deadline = performance.now() + WAIT_MS; ; ) {
    const { rows } = await db.query<{ sessions: number }>(
      `SELECT count(*)::int AS sessions FROM pg_stat_activity
        WHERE datname = current_database() AND application_name IN ('compstream', 'compstream session', 'compstream leases', 'compstream listener')`,
    )
    if (rows[0]!.sessions === 0) return
    if (performance.now() > deadline) {
      throw new DatabaseInUse(`${nameOf(database)} is in use by a service: stop every service on it first`)
    }
    await delay(100)
  }
}

function nameOf({ name }: Database): string {
  return `PostgreSQL at ${name}`
}
