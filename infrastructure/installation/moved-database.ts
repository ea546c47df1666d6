import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import { LOG_START } from '../../application/ports/event-log.ts'
import { MoveRefused } from '../../application/ports/movable-log.ts'
import type { Carried, LogIdentity, Moved, MovedDatabase } from '../../application/ports/moved-database.ts'
import { systemClock } from '../clock/system-clock.ts'
import { ConfigError } from '../config-error.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import type { Database } from '../database/database.ts'
import { inTransaction } from '../database/transaction.ts'
import { FINGERPRINT_ROOT, fingerprintsOf } from '../secrets/personal-data.ts'
import { rewrapAll } from '../secrets/rewrap.ts'
import { PostgresSecretVault } from '../secrets/vault.ts'
import { carryTables } from './carried-tables.ts'
import {
  isSameLog,
  type LogEngine,
  type LogPairing,
  markAsMoved,
  OtherEventLog,
  readPairing,
  storePairing,
  UNFINISHED,
} from './log-pairing.ts'
import { KeysMissing } from './pairing.ts'

/** Sessions of a service that has just ended are gone by then. */
const WAIT_MS = 3_000

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
    source: LogIdentity | null,
    target: LogIdentity | null,
    keyCheckValue: string | null,
  ): Promise<'source' | 'target' | 'either'> {
    const { from, to, engines } = this.#options
    const paired = await readPairing(from.pool)
    const isSource = isSameLog(paired, source && { engine: engines.source, ...source })
    const isTarget = isSameLog(paired, target && { engine: engines.target, ...target })
    // never paired: right only for what has not got beyond the start of its log
    const isOpen = paired === null && (await this.positions()).every((position) => position === LOG_START)
    if (!isSource && !isTarget && !isOpen) {
      throw new OtherEventLog(
        `${this.from} belongs to another log than the one that is copied: name the database that belongs to it ` +
          'with --from-database, or copy the log alone with --log-only',
      )
    }
    if (source !== null) await this.#demandKeys(keyCheckValue, isOpen || from !== to)
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

  async move(translated: ReadonlyMap<bigint, bigint>, log: LogIdentity | null): Promise<Moved> {
    const { from, to, engines, masterKeys } = this.#options
    const pairing = log && { engine: engines.target, ...log }
    const moved = await to.withOwner((client) =>
      inTransaction(client, async (): Promise<Moved> => {
        await client.query('LOCK TABLE runtime.process_managers, runtime.log_binding IN EXCLUSIVE MODE')
        await refuseWhileInUse(to, client)
        if (from !== to && (await this.#hasMoved(client, pairing))) {
          return { outcome: 'moved before', carried: null }
        }
        // of one database, the keys stay as they are
        const carried =
          from === to ? null : await from.withClient((source) => carryAll(source, client, masterKeys!))
        await translate(client, translated)
        await dropReadModels(client)
        if (pairing) await storePairing(client, pairing, from === to ? null : UNFINISHED)
        return { outcome: 'moved', carried }
      }),
    )
    if (from !== to && moved.outcome === 'moved') {
      // two services with the same keys would each accept what the other one never hears of: never are both let start
      await markAsMoved(from.pool, this.to)
      // one that was started before the mark goes on: what it makes would stay behind
      await refuseWhileInUse(from, from.pool)
      await markAsMoved(to.pool, null)
    }
    return moved
  }

  /**
   * Whether an earlier move to another database has ended there, and what stands there counts from now on: carrying
   * again would take away what a service made there since.
   * @param client of the target, in a transaction.
   * @throws MoveRefused when it cannot be told which of the two counts.
   */
  async #hasMoved(client: pg.Client, pairing: LogPairing | null): Promise<boolean> {
    const left = (await readPairing(this.#options.from.pool))?.movedTo ?? null
    if (left === UNFINISHED) throw new MoveRefused(`a move to ${this.from} has not ended: repeat it first`)
    const reached = await readPairing(client)
    const isPaired = isSameLog(reached, pairing)
    if (isPaired && reached!.movedTo === null) {
      if (left !== null) return true
      throw new MoveRefused(
        `services may have worked on both ${this.from} and ${this.to} since the last move: take an empty target`,
      )
    }
    // the latter was interrupted between its two marks, or its target was made anew
    if (left === null || (left === this.to && (!isPaired || reached!.movedTo === UNFINISHED))) return false
    throw new MoveRefused(
      `the installation was moved from here to ${left}, and is not at ${this.to} either: name the database where it ` +
        'was last with --from-database',
    )
  }
}

/** @throws MasterKeyError when a key can be opened with none of the master keys. */
async function carryAll(from: pg.ClientBase, to: pg.ClientBase, masterKeys: MasterKeys): Promise<Carried> {
  const carried = await inTransaction(from, () => carryTables(from, to), 'REPEATABLE READ READ ONLY')
  await rewrapAll(to, masterKeys)
  return carried
}

/** Stores positions of one log instead of those of another one. */
export async function translate(client: pg.Client, translated: ReadonlyMap<bigint, bigint>): Promise<void> {
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

/** A service on EventStoreDB holds nothing in its log; its sessions here give it away. @throws MoveRefused */
export async function refuseWhileInUse(database: Database, db: Pick<pg.ClientBase, 'query'>): Promise<void> {
  for (const deadline = performance.now() + technicalDeadline(WAIT_MS); ; ) {
    const { rows } = await db.query<{ sessions: number }>(
      `SELECT count(*)::int AS sessions FROM pg_stat_activity
        WHERE datname = current_database() AND application_name IN ('compstream', 'compstream session', 'compstream leases', 'compstream listener')`,
    )
    if (rows[0]!.sessions === 0) return
    if (performance.now() > deadline) {
      throw new MoveRefused(`${nameOf(database)} is in use by a service: stop every service on it first`)
    }
    await delay(100)
  }
}

function nameOf({ name }: Database): string {
  return `PostgreSQL at ${name}`
}
