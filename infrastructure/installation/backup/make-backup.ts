import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type pg from 'pg'
import { readNote } from '../../../application/audit/checkpoint-note.ts'
import { leafOf } from '../../../application/audit/leaf.ts'
import { GrowingRoot, leafHash } from '../../../application/audit/merkle.ts'
import { Turns } from '../../../application/commands/turns.ts'
import { LOG_START } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveRefused } from '../../../application/ports/movable-log.ts'
import { systemClock } from '../../clock/system-clock.ts'
import type { MasterKeys } from '../../crypto/master-keys.ts'
import type { Database } from '../../database/database.ts'
import { migrationsOf } from '../../database/migrate.ts'
import { migrations } from '../../database/migrations/index.ts'
import { inTransaction } from '../../database/transaction.ts'
import { errorCode } from '../../error-code.ts'
import { LOG_SESSION, readEventsAt, readHead, readPage } from '../../event-store/postgres/event-queries.ts'
import { syncDirectory } from '../../private-files.ts'
import { FINGERPRINT_ROOT } from '../../secrets/personal-data.ts'
import { PostgresSecretVault } from '../../secrets/vault.ts'
import { readTables } from '../carried-tables.ts'
import { readPairing } from '../log-pairing.ts'
import { LogCursor } from '../moving/log-cursor.ts'
import { LogProof, shareOf } from '../moving/log-proof.ts'
import { EVENTS, eventLine, TABLES, tableLines, writeLines } from './backup-files.ts'
import { type CheckedBackup, checkBackup, type ReportProgress } from './check-backup.ts'
import { recordBackup } from './known-backups.ts'
import { keyOf, MANIFEST, type Manifest, manifestText, newBackupId } from './manifest.ts'

/**
 * Backs up an installation whose log is in PostgreSQL while services run on it: log and database as of one moment. The
 * backup gets its name once it was read back and found whole.
 * @param parts.folder a new one, or an empty one.
 * @returns what the backup holds, and whether the database knows that there is one.
 * @throws MoveRefused, MasterKeyError, DatabaseUnavailable; nothing is left in the folder then.
 */
export async function makeBackup(parts: {
  readonly database: Database
  readonly folder: string
  /** Those of the installation; the current one encrypts. */
  readonly masterKeys: MasterKeys
  readonly report: ReportProgress
  readonly signal: AbortSignal
}): Promise<CheckedBackup & { readonly isNoted: boolean }> {
  const { database, folder, masterKeys, report, signal } = parts
  await refuseFull(folder)
  const draft = `${folder}.unfinished-${randomBytes(4).toString('hex')}`
  try {
    await database.withOwner((client) =>
      inTransaction(
        client,
        async () => {
          await refuseUnfit(client, database.name, masterKeys)
          await mkdir(draft, { mode: 0o700 })
          await writeMoment(client, { ...parts, draft })
        },
        'REPEATABLE READ READ ONLY',
      ),
    )
    await syncDirectory(draft)
    const checked = await checkBackup(draft, masterKeys, report, signal)
    await rename(draft, folder)
    await syncDirectory(dirname(folder))
    // the backup stands whether its age is known or not
    const isNoted = await recordBackup(database.pool, checked.files.manifest).then(
      () => true,
      () => false,
    )
    return { ...checked, isNoted }
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw orRefused(folder, error)
  }
}

/** Writes the files of a backup as of the moment of the transaction. */
async function writeMoment(
  client: pg.Client,
  parts: Parameters<typeof makeBackup>[0] & { readonly draft: string },
): Promise<void> {
  const { database, draft, masterKeys, signal } = parts
  for (const [setting, value] of Object.entries(LOG_SESSION)) {
    await client.query('SELECT set_config($1, $2, true)', [setting, value])
  }
  const backup = { id: newBackupId(), master_key_id: masterKeys.currentId }
  const log = logOf(client, `PostgreSQL at ${database.name}`)
  const checkpoint = await newestCheckpoint(client)
  const head = await log.head()
  const proof = new LogProof(log)
  const tree = new GrowingRoot()
  let firstEventId = ''
  const events = async function* () {
    const cursor = new LogCursor(log, LOG_START)
    for (let ready = await cursor.ready(); ready.length > 0; ready = await cursor.ready()) {
      signal.throwIfAborted()
      const lines: string[] = []
      await proof.prepare(ready)
      for (let n = 0; n < ready.length; n += 1) {
        const event = cursor.next()
        proof.take(event)
        tree.add(leafHash(leafOf(event)))
        if (tree.size === 1) firstEventId = event.eventId
        if (tree.size === checkpoint?.size && !readNote(checkpoint.note)?.root.equals(tree.root)) {
          throw new MoveRefused(
            `The log in ${log.name} was changed: its checkpoint of ${tree.size} events does not fit it`,
          )
        }
        lines.push(eventLine(event))
      }
      yield lines
      parts.report('reading', proof.events, shareOf(proof.position, head))
    }
  }
  await writeLines(join(draft, EVENTS), keyOf(masterKeys, backup, 'events'), events())
  if (checkpoint && checkpoint.size > tree.size) {
    throw new MoveRefused(
      `The log in ${log.name} ends after ${tree.size} events, and its checkpoint is of ${checkpoint.size}`,
    )
  }
  const tables: Record<string, number> = {}
  const rows = async function* () {
    for await (const batch of readTables(client)) {
      signal.throwIfAborted()
      tables[batch.table] = (tables[batch.table] ?? 0) + batch.rows.length
      yield batch
    }
  }
  await writeLines(join(draft, TABLES), keyOf(masterKeys, backup, 'tables'), tableLines(rows()))
  const { events: count, streams, bytes, log_hash } = proof.account()
  const { rows: now } = await client.query<{ at: Date }>('SELECT now() AS at')
  const manifest: Manifest = {
    format: 1,
    made_at: now[0]!.at.toISOString(),
    schema: latest(Object.keys(migrations)),
    ...backup,
    log: {
      first_event_id: firstEventId,
      events: count,
      streams,
      bytes,
      log_hash,
      root_hash: tree.root.toString('base64'),
      checkpoint,
    },
    tables,
  }
  await writeFile(join(draft, MANIFEST), manifestText(manifest, masterKeys), { mode: 0o600, flush: true })
}

/** The log as a transaction sees it, by one question at a time. */
function logOf(client: pg.Client, name: string): MovableLog {
  const turns = new Turns()
  const ask = <T>(question: () => Promise<T>) => turns.run('', question)
  return {
    name,
    readPage: (options) => ask(() => readPage(client, options)),
    eventsAt: (places) => ask(() => readEventsAt(client, places)),
    findCut: async () => null,
    isGapless: true,
    head: () => ask(() => readHead(client)),
    write: () => Promise.reject(new Error('A backup writes no event')),
    close: async () => undefined,
  }
}

/** What cannot be backed up is refused before anything is written. @throws MoveRefused, MasterKeyError */
async function refuseUnfit(client: pg.Client, name: string, masterKeys: MasterKeys): Promise<void> {
  const [own, found] = [latest(Object.keys(migrations)), latest(await migrationsOf(client))]
  if (found === '') throw new MoveRefused(`PostgreSQL at ${name} holds no installation`)
  if (own !== found) {
    throw new MoveRefused(
      `PostgreSQL at ${name} is of another release: its last migration is ${found}, that of this program ${own}; ` +
        'back up with the program that the service runs',
    )
  }
  const pairing = await readPairing(client)
  if (pairing?.movedTo === '')
    throw new MoveRefused(`a move to PostgreSQL at ${name} has not ended: repeat it first`)
  if (pairing?.movedTo)
    throw new MoveRefused(`the installation was moved from here to ${pairing.movedTo}: back it up there`)
  if (pairing?.engine === 'eventstoredb') throw new MoveRefused(LOG_ELSEWHERE)
  if ((await new PostgresSecretVault(client, masterKeys, systemClock).get(FINGERPRINT_ROOT)) === null) {
    throw new MoveRefused(`PostgreSQL at ${name} holds no installation`)
  }
}

/** Why an installation with its log in EventStoreDB is not backed up here: no snapshot spans both engines. */
export const LOG_ELSEWHERE =
  'the event log is in EventStoreDB: back up both engines by their own means, as docs/operators/deployment.md says'

async function newestCheckpoint(client: pg.Client): Promise<Manifest['log']['checkpoint']> {
  const { rows } = await client.query<{ size: string; note: string; key: string }>(
    'SELECT size, note, key FROM runtime.log_checkpoints ORDER BY size DESC LIMIT 1',
  )
  const [row] = rows
  return row ? { size: Number(row.size), note: row.note, key: row.key } : null
}

async function refuseFull(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw orRefused(folder, error)
  })
  if (names.length > 0)
    throw new MoveRefused(`${folder} is not empty: a backup takes a new folder, or an empty one`)
}

/** A file system's error as one clear line. */
function orRefused(folder: string, error: unknown): unknown {
  const { code, syscall } = error as { code?: string; syscall?: string }
  return code !== undefined && syscall !== undefined && !(error instanceof MoveRefused)
    ? new MoveRefused(`${folder} cannot be written: ${code}`)
    : error
}

function latest(names: readonly string[]): string {
  return names.at(-1) ?? ''
}
