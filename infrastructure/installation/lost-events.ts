import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import { describeCut, type EventLog, LOG_START } from '../../application/ports/event-log.ts'
import type { LogMemory } from '../../application/ports/log-memory.ts'
import type { TableDefinition } from '../../projections/runtime/projection.ts'
import type { Database } from '../database/database.ts'
import { quoted, schemaOf } from '../read-models/tables.ts'
import { PostgresLogMemory } from './log-memory.ts'
import { LogTooShort } from './log-pairing.ts'

/** Looks in a row that must find it: a new leader of a cluster needs a moment to know all that it holds. */
const LOOKS = 5
const PAUSE_MS = 300
const NAMES_IN_A_LINE = 8
/** How long the other processes of the installation may take to find it out themselves, and end. */
const OTHERS_MS = 30_000
const LOCK = '7305420017320845003'

/** A log that has lost its end, and perhaps grown anew. */
export interface Loss {
  /** Up to here it is known to be what it was. */
  readonly common: bigint
  /** Where it ends. */
  readonly head: bigint
  /** How far it was read. */
  readonly reached: bigint
}

/** What a log lost that was read of it; null: nothing. */
export async function findLoss(
  memory: Pick<LogMemory, 'recall'>,
  log: Pick<EventLog, 'idAt' | 'head'>,
): Promise<Loss | null> {
  const { marks, reached: checkpoint } = await memory.recall()
  const head = await log.head()
  const reached = [checkpoint, marks.at(-1)?.position ?? LOG_START].reduce((a, b) => (a > b ? a : b))
  const ids = await Promise.all(marks.map(({ position }) => log.idAt(position)))
  // what was remembered of it since it has grown anew is there again
  const lost = marks.findIndex(({ eventId }, n) => ids[n] !== eventId)
  if (lost < 0 && checkpoint <= head) return null
  const common = marks.at(lost < 0 ? -1 : lost - 1)?.position
  // nothing was remembered before a release that does
  return { common: lost === 0 ? LOG_START : (common ?? head), head, reached }
}

/**
 * Where the log has lost events that were read of it: takes back what came of them in this database. Read models that
 * had read beyond the last common position are emptied and built anew, process managers go on from there: what they did
 * for events before it they find done. Waits for the other processes of the installation to end, which remember what
 * was lost.
 * @param report hears in words what was lost, line by line.
 * @throws LogTooShort while others do not end.
 */
export async function takeBackLostEvents(parts: {
  readonly database: Database
  readonly log: Pick<EventLog, 'idAt' | 'head' | 'count' | 'findCut'>
  readonly report: (text: string) => void
}): Promise<void> {
  const { database, log, report } = parts
  const deadline = performance.now() + technicalDeadline(OTHERS_MS)
  for (let look = 1; ; look += 1) {
    if ((await findLoss(new PostgresLogMemory(database.background), log)) === null) return
    const isAlone = await runsAlone(database)
    if (look >= LOOKS && isAlone) break
    if (performance.now() > deadline && !isAlone) {
      throw new LogTooShort(
        'the event log went back, and other processes still run on this database: stop them first, for they remember ' +
          'what was lost',
      )
    }
    await delay(PAUSE_MS)
  }
  const told = await database.transaction(async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK])
    const loss = await findLoss(new PostgresLogMemory(client), log)
    return loss && takeBack(client, loss, await log.count(loss.common, loss.reached))
  }, database.background)
  if (told === null) return
  for (const text of told) report(text)
  // what was taken back is told, whatever becomes of this look
  const cut = await log.findCut().catch(() => null)
  if (cut) report(describeCut(cut))
}

/** @param lost how many events that is, about. */
async function takeBack(
  client: ClientBase,
  { common, head, reached }: Loss,
  lost: number,
): Promise<string[]> {
  const after = [String(common)]
  const { rows: generations } = await client.query<{
    projection: string
    generation: number
    tables: readonly TableDefinition[]
  }>(
    'SELECT projection, generation, tables FROM runtime.projections WHERE position > $1 ORDER BY 1, 2',
    after,
  )
  for (const generation of generations) {
    const { projection, generation: number, tables } = generation
    const names = tables.map(({ name }) => `${schemaOf(generation)}.${quoted(name)}`)
    if (names.length > 0) await client.query(`TRUNCATE ${names.join(', ')}`)
    await client.query('DELETE FROM runtime.parked_streams WHERE projection = $1 AND generation = $2', [
      projection,
      number,
    ])
  }
  await client.query(
    `UPDATE runtime.projections SET position = 0, comparison = NULL, failure = NULL, updated_at = clock_timestamp(),
       state = CASE WHEN state IN ('paused', 'detached') THEN state ELSE 'booting' END
     WHERE position > $1`,
    after,
  )
  const { rows: managers } = await client.query<{ name: string }>(
    'UPDATE runtime.process_managers SET position = $1 WHERE position > $1 RETURNING name',
    after,
  )
  await client.query('DELETE FROM runtime.log_marks WHERE position > $1', after)
  // those of what is left are signed anew; copies in the folder still tell of what is lost
  await client.query(
    `DELETE FROM runtime.log_checkpoints WHERE size > COALESCE(
       (SELECT max(index) * 256 FROM runtime.log_tree_tiles WHERE level = 0 AND after <= $1), 0)`,
    after,
  )
  return [
    `the event log went back: it is what was read up to position ${common}, ends at ${head} and had been read up to ` +
      `${reached}: about ${lost} events are lost`,
    ...lines('built anew', [...new Set(generations.map(({ projection }) => projection))]),
    ...lines(`going on from position ${common}`, managers.map(({ name }) => name).sort()),
  ]
}

/** Names in as many lines as keep each short enough for the log. */
function lines(what: string, names: readonly string[]): string[] {
  const all: string[] = []
  for (let from = 0; from < names.length; from += NAMES_IN_A_LINE) {
    all.push(`${what}: ${names.slice(from, from + NAMES_IN_A_LINE).join(', ')}`)
  }
  return all
}

/** Whether no process of the installation runs; one that starts is none yet. */
async function runsAlone(database: Database): Promise<boolean> {
  const { rows } = await database.background.query<{ others: number }>(
    `SELECT count(*)::int AS others FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'compstream session'`,
  )
  return rows[0]!.others === 0
}
