import type pg from 'pg'
import { LOG_START } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveRefused } from '../../../application/ports/movable-log.ts'
import type { LogIdentity, Moved, MovedDatabase } from '../../../application/ports/moved-database.ts'
import type { MasterKeys } from '../../crypto/master-keys.ts'
import type { Database } from '../../database/database.ts'
import { migrationsOf } from '../../database/migrate.ts'
import { inTransaction } from '../../database/transaction.ts'
import { rewrapAll } from '../../secrets/rewrap.ts'
import { CARRIED_TABLES, carriedOf, storeTables } from '../carried-tables.ts'
import { type LogEngine, storePairing } from '../log-pairing.ts'
import { refuseWhileInUse, translate } from '../moved-database.ts'
import type { CheckedBackup } from './check-backup.ts'
import type { Manifest } from './manifest.ts'

interface Options {
  readonly backup: CheckedBackup
  readonly to: Database
  /** Of the log that it is restored to. */
  readonly engine: LogEngine
  readonly masterKeys: MasterKeys
}

/** What a backup holds beside the log, on its way into an empty database. */
export class RestoredDatabase implements MovedDatabase {
  readonly from: string
  readonly to: string
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
    this.from = `the backup in ${options.backup.files.folder}`
    this.to = `PostgreSQL at ${options.to.name}`
  }

  async follows(): Promise<'source'> {
    return 'source'
  }

  async positions(): Promise<readonly bigint[]> {
    return this.#options.backup.positions
  }

  /** All or nothing; a database that a service was started on meanwhile is refused. */
  async move(translated: ReadonlyMap<bigint, bigint>, log: LogIdentity | null): Promise<Moved> {
    const { backup, to, engine, masterKeys } = this.#options
    return to.withOwner((client) =>
      inTransaction(client, async (): Promise<Moved> => {
        await client.query('LOCK TABLE runtime.process_managers, runtime.log_binding IN EXCLUSIVE MODE')
        await refuseWhileInUse(to, client)
        await refuseRows(client, this.to)
        const carried = carriedOf(await storeTables(client, backup.files.tables()))
        await translate(client, translated)
        await storePairing(client, { engine, ...log! }, null)
        await rewrapAll(client, masterKeys)
        return { outcome: 'moved', carried }
      }),
    )
  }
}

/**
 * Makes sure that a database holds nothing that a restore would mix with, or replace. It may be without tables.
 * @param manifest of the backup; an interrupted restore of the same one may go on.
 * @throws MoveRefused
 */
export function refuseOccupied(database: Database, engine: LogEngine, manifest: Manifest): Promise<void> {
  return database.withOwner(async (client) => {
    const name = `PostgreSQL at ${database.name}`
    const beyond = (await migrationsOf(client)).find((one) => one > manifest.schema)
    if (beyond !== undefined) {
      throw new MoveRefused(
        `${name} has tables of a newer release than the backup (${beyond}): take an empty database`,
      )
    }
    await refuseRows(client, name)
    if (!(await isThere(client, 'event_log.events'))) return
    const { rows } = await client.query<{ id: string }>(
      'SELECT event_id AS id FROM event_log.events ORDER BY position LIMIT 1',
    )
    const isOurs = engine === 'postgresql' && rows[0]?.id === manifest.log.first_event_id
    if (rows[0] && !isOurs) throw notEmpty(name, 'it has events')
  })
}

/** Makes sure that a log is empty, or holds what an interrupted restore of this backup has written. @throws MoveRefused */
export async function refuseOtherEvents(log: MovableLog, manifest: Manifest): Promise<void> {
  const [first] = (await log.readPage({ after: LOG_START, maxCount: 1 })).events
  if (first && first.eventId !== manifest.log.first_event_id) throw notEmpty(log.name, 'it has events')
}

async function refuseRows(client: pg.Client, name: string): Promise<void> {
  for (const table of CARRIED_TABLES) {
    // of erasures there is always the count
    if (table === 'runtime.erasures' || !(await isThere(client, table))) continue
    if ((await client.query(`SELECT FROM ${table} LIMIT 1`)).rowCount !== 0)
      throw notEmpty(name, `it has rows in ${table}`)
  }
}

async function isThere(client: pg.Client, table: string): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [
    table,
  ])
  return rows[0]!.there
}

function notEmpty(name: string, why: string): MoveRefused {
  return new MoveRefused(`${name} is not empty, ${why}: restore into an installation that was never started`)
}
