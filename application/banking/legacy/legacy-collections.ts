import {
  asRecorded,
  datedAt,
  type LegacyCollection,
  type LegacyCollectionCommand,
  type LegacyStatus,
  legacyCollection,
} from '../../../domain/banking/legacy/legacy-collection.ts'
import {
  type ImportedChunk,
  importOf,
  legacyImport,
  MAX_LINES,
  recordOf,
} from '../../../domain/banking/legacy/legacy-import.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { streamOf } from '../../../domain/kernel/decider.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { readable, within } from '../../commands/verbs.ts'
import type { RailReport } from '../../ports/bank-rail.ts'
import { ReadModelsLate } from '../../ports/read-models.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { LegacyOwners, type LegacyRecord } from './legacy-owners.ts'

/** Records what the legacy service has of one debit. */
export async function recordLegacyCollection(
  app: Application,
  input: LegacyRecord,
  context: CommandContext,
): Promise<LegacyCollection | Rejection> {
  const [owned] = await new LegacyOwners(app).of([input])
  if (isRejection(owned)) return owned
  const { tenantId: tenant_id, environment, record } = owned!
  const transaction_id = createdId(context, legacyCollection)
  const data = {
    transaction_id,
    tenant_id,
    environment,
    ...record,
    import: null,
    recorded_at: isoTime(app.clock.now()),
  }
  const scoped = within(context, { tenant_id, environment })
  const outcome = await app.commands.create(
    legacyCollection,
    transaction_id,
    { type: 'Record', data },
    scoped,
  )
  return readable(app, legacyCollection, outcome)
}

/**
 * The record of the legacy service with an id, as it stands now; null where there is none.
 * @throws ReadModelsLate when it cannot be told yet where its import has it.
 */
export async function legacyRecordOf(
  app: Pick<Application, 'commands' | 'log' | 'registry' | 'read' | 'readModels'>,
  id: string,
): Promise<LegacyCollection | null> {
  const { state } = await app.commands.load(legacyCollection, id)
  return state ?? importedRecordOf(app, id)
}

const PLACE = statement('legacy-collection-place', (db, $: Parameter<{ readonly id: string }>) =>
  db.selectFrom('legacy_collections').select('import_revision').where('transaction_id', '=', $('id')),
)

/** A record to which nothing has happened since its import. The read model tells where that has it. */
async function importedRecordOf(
  { log, registry, read, readModels }: Pick<Application, 'log' | 'registry' | 'read' | 'readModels'>,
  id: string,
): Promise<LegacyCollection | null> {
  const { importId, line } = importOf(id)
  if (line < 1 || line > MAX_LINES) return null
  const stream = streamOf(legacyImport, importId)
  if ((await log.readStream(stream, { maxCount: 1 })).length === 0) return null
  const isCurrent = await readModels.reached(['legacy-collections'], await log.head())
  const [place] = await read.query(PLACE, { id })
  if (!place) {
    if (!isCurrent) throw new ReadModelsLate()
    return null
  }
  const [stored] = await log.readStream(stream, { from: place.import_revision!, maxCount: 1 })
  const record = recordOf(registry.decode(stored!, false).data as ImportedChunk, line)
  return record && asRecorded(record)
}

/**
 * Records what the bank reports of a debit of the legacy service, and waits until that can be read.
 * @returns the record; a conflict where the report does not fit how it stands; null where there is none.
 */
export async function reportLegacyRecord(
  app: Application,
  id: string,
  report: RailReport,
  context: CommandContext,
): Promise<LegacyCollection | Rejection | null> {
  const record = await legacyRecordOf(app, id)
  if (!record) return null
  if (report.verb === 'settle') {
    const message = 'The legacy service settles its debits itself: only what comes back is reported of them'
    return reject('conflict', 'legacy_collection_settles_itself', message)
  }
  const at = app.clock.now()
  return changeRecord(
    app,
    record,
    report.verb === 'acknowledge'
      ? { type: 'Acknowledge', at }
      : { type: 'Return', return_code: report.return_code, at },
    context,
  )
}

/** An operator puts right how a record stands; null where there is none. What is so already changes nothing. */
export async function correctLegacyRecord(
  app: Application,
  id: string,
  correction: { readonly status: LegacyStatus; readonly reason: string },
  context: CommandContext,
): Promise<LegacyCollection | Rejection | null> {
  const record = await legacyRecordOf(app, id)
  return record && changeRecord(app, record, { type: 'Correct', ...correction, at: app.clock.now() }, context)
}

async function changeRecord(
  app: Application,
  record: LegacyCollection,
  change: Exclude<LegacyCollectionCommand, { type: 'Record' }>,
  context: CommandContext,
): Promise<LegacyCollection | Rejection> {
  const { return_code: _code, changes: _changes, ...data } = record
  // what an import stored gets a stream of its own with the first change
  const commands = record.import === null ? [change] : [{ type: 'Record', data } as const, change]
  const { transaction_id: id } = record
  const outcome = await app.commands.execute(legacyCollection, id, commands, within(context, record))
  return readable(app, legacyCollection, outcome)
}

/** An entry of a transaction's history. */
export interface LegacyHistoryEntry {
  readonly at: string
  readonly from_status: LegacyStatus | null
  readonly to_status: LegacyStatus
  readonly reason: null
  readonly note: string
}

/** What happened to a record, oldest first; it begins when it is dated. */
export function legacyHistoryOf(record: LegacyCollection): readonly LegacyHistoryEntry[] {
  const { changes, recorded_at, period_end } = record
  const first = changes[0]?.from ?? record.status
  return [
    {
      at: datedAt(period_end),
      from_status: null,
      to_status: first,
      reason: null,
      note: `As the legacy service had it; taken over at ${recorded_at}`,
    },
    ...changes.map(({ at, from, to, note }) => {
      return { at, from_status: from, to_status: to, reason: null, note }
    }),
  ]
}
