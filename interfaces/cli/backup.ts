import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type MovableLog, MoveRefused } from '../../application/ports/movable-log.ts'
import { ConfigError } from '../../infrastructure/config/config.ts'
import type { MasterKeys } from '../../infrastructure/crypto/master-keys.ts'
import { openDatabase } from '../../infrastructure/database/database.ts'
import { migrate } from '../../infrastructure/database/migrate.ts'
import { runningServerUrl } from '../../infrastructure/embedded-postgres/running-server.ts'
import { openMovableEventStoreLog } from '../../infrastructure/event-store/eventstoredb/movable-log.ts'
import { openMovablePostgresLog } from '../../infrastructure/event-store/postgres/movable-log.ts'
import { BackupLog } from '../../infrastructure/installation/backup/backup-log.ts'
import { type CheckedBackup, checkBackup } from '../../infrastructure/installation/backup/check-backup.ts'
import { LOG_ELSEWHERE, makeBackup } from '../../infrastructure/installation/backup/make-backup.ts'
import {
  RestoredDatabase,
  refuseOccupied,
  refuseOtherEvents,
} from '../../infrastructure/installation/backup/restored-database.ts'
import { moveLog } from '../../infrastructure/installation/moving/move-log.ts'
import type { Given } from './copy-events.ts'
import {
  type Closers,
  type DatabasePlace,
  embeddedUrl,
  GOES_ON,
  masterKeysFor,
  nameOf,
  placeOf,
  settingOf,
  withClosers,
} from './log-places.ts'

type GivenFolder = Given & { readonly folder: string }

/** Backs up the installation of the settings while it runs, or while it does not. @throws CliError */
export function backUp({ env, report, signal, ...given }: GivenFolder) {
  return withClosers(signal, async (closers) => {
    const folder = resolve(given.folder)
    if (settingOf('EVENTSTORE_URL', env) !== null) throw new MoveRefused(LOG_ELSEWHERE)
    const place = databaseOf(env)
    const masterKeys = keysFor(place, env)
    const url = 'url' in place ? place.url : await runningUrl(place.dataDir, closers)
    const database = await openDatabase({ url, ...nameOf(place), applicationName: 'compstream-backup' })
    closers.push(() => database.close())
    const backup = await makeBackup({ database, folder, masterKeys, report, signal })
    return { ...accountOf(backup), backup: folder, verified: true, noted: backup.isNoted }
  })
}

/** Reads a backup to its end and tells what it holds; nothing is restored. @throws CliError */
export function verifyBackup({ env, report, signal, ...given }: GivenFolder) {
  return withClosers(signal, async () => {
    const folder = resolve(given.folder)
    const backup = await checkBackup(folder, keysFor(databaseOf(env), env), report, signal)
    return { ...accountOf(backup), backup: folder, verified: true }
  })
}

/** Restores a backup into the empty installation of the settings. @throws CliError */
export function restore({ env, report, signal, ...given }: GivenFolder) {
  return withClosers(
    signal,
    async (closers) => {
      const folder = resolve(given.folder)
      const place = databaseOf(env)
      const masterKeys = keysFor(place, env)
      const backup = await checkBackup(folder, masterKeys, report, signal)
      const { manifest } = backup.files
      const eventStoreUrl = settingOf('EVENTSTORE_URL', env)
      const engine = eventStoreUrl === null ? 'postgresql' : 'eventstoredb'
      const eventStore = eventStoreUrl === null ? null : await openMovableEventStoreLog(eventStoreUrl)
      if (eventStore) {
        closers.push(() => eventStore.close())
        await refuseOtherEvents(eventStore, manifest)
      }
      const url = 'url' in place ? place.url : await embeddedUrl(place.dataDir, closers)
      const named = { url, ...nameOf(place), applicationName: 'compstream-restore' }
      const found = await openDatabase(named)
      await refuseOccupied(found, engine, manifest).finally(() => found.close())
      await migrate({ url, upTo: manifest.schema })
      const database = await openDatabase(named)
      closers.push(() => database.close())
      let target: MovableLog
      if (eventStore) target = eventStore
      else {
        target = await openMovablePostgresLog(database)
        closers.push(() => target.close())
      }
      const source = new BackupLog(backup.files, target)
      closers.push(() => source.close())
      const moved = await moveLog({
        source,
        target,
        database: new RestoredDatabase({ backup, to: database, engine, masterKeys }),
        report: ({ phase, events, share }) => report(phase, events, share),
        signal,
      })
      return {
        ...accountOf(backup),
        backup: folder,
        restored: true,
        to: moved.to,
        database: moved.database?.to,
        not_restored: moved.not_carried,
      }
    },
    GOES_ON,
  )
}

function accountOf({ files: { manifest }, bytes }: CheckedBackup) {
  const { log, tables, made_at, schema } = manifest
  return {
    backup: '',
    made_at,
    bytes,
    schema,
    log: {
      events: log.events,
      streams: log.streams,
      bytes: log.bytes,
      log_hash: log.log_hash,
      root_hash: log.root_hash,
    },
    checkpoint: log.checkpoint && { size: log.checkpoint.size, key: log.checkpoint.key },
    rows: tables,
  }
}

/** Where the database of the settings is. */
function databaseOf(env: Given['env']): DatabasePlace {
  if (settingOf('DATABASE_URL', env) === null) {
    return { engine: 'postgresql', dataDir: resolve(env.DATA_DIR?.trim() || 'data') }
  }
  const place = placeOf('DATABASE_URL', 'DATABASE_URL', env)
  if (place.engine !== 'postgresql') throw new ConfigError('DATABASE_URL is no address of PostgreSQL')
  return place
}

function keysFor(place: DatabasePlace, env: Given['env']): MasterKeys {
  const keys = masterKeysFor(place, null, env)
  if (keys) return keys
  const file = 'dataDir' in place ? `, or the file ${join(place.dataDir, 'master-key')}` : ''
  throw new ConfigError(`MASTER_KEY is missing: expected that of the installation that is backed up${file}`)
}

/** The embedded server that runs already, or else one of our own as long as this takes. */
async function runningUrl(dataDir: string, closers: Closers): Promise<string> {
  if (!existsSync(join(dataDir, 'postgres', 'PG_VERSION'))) {
    throw new MoveRefused(`${dataDir} holds no embedded server: set DATA_DIR or DATABASE_URL`)
  }
  return (await runningServerUrl(dataDir)) ?? embeddedUrl(dataDir, closers)
}
