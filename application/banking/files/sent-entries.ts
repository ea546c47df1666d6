import type { Application } from '../../commands/application.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { traceBlock } from './bank-files-table.ts'
import { type EntriesChunk, entriesOf, traceAt } from './entries.ts'
import type { FileApp } from './file-app.ts'

/** An entry that was sent. Amounts are cents. */
export interface SentEntry {
  readonly fileId: string
  /** ISO 8601, of the batch that its file carries. */
  readonly batchClosesAt: string
  readonly kind: EntriesChunk['kind']
  /** The debit, or the order of micro-deposits. */
  readonly id: string
  readonly amountCents: number
  /** What its numbers are known by; null: nobody kept it. */
  readonly fingerprint: string | null
  /** The company of its batch; null: nobody kept it, it was that of the settings. */
  readonly companyId: string | null
}

const OF_TRACE = statement(
  'bank-files-of-trace',
  (db, $: Parameter<{ readonly block: string; readonly trace: string; readonly limit: number }>) =>
    db
      .selectFrom('bank_file_traces')
      .innerJoin('bank_files', 'bank_files.file_id', 'bank_file_traces.file_id')
      .select(['bank_files.file_id', 'entries_id', 'batch_closes_at', 'company_id'])
      .where('block', '=', $('block'))
      .where('first_trace', '<=', $('trace'))
      .where('last_trace', '>=', $('trace'))
      .orderBy('seq', 'desc')
      .limit($('limit')),
)
const ORIGINATORS = statement('bank-file-originators', (db) =>
  db.selectFrom('bank_files').select(['odfi', 'destination_routing', 'origin_id']).distinct(),
)
/** Trace numbers begin again after ten million; entries of older files can no longer be returned. */
const CANDIDATES = 3
/** Files whose entries are kept while a report is read. */
const KEPT_FILES = 8

/** The originator and the bank that files were written for; null where that was not kept. */
export interface Parties {
  /** The first 8 digits of a routing number. */
  readonly odfi: string
  readonly destinationRouting: string | null
  readonly originId: string | null
}

/** The present and former originators of files, with their banks. */
export async function partiesOfFiles({
  read,
  bankFiles,
}: Pick<Application, 'read'> & Pick<FileApp, 'bankFiles'>): Promise<readonly Parties[]> {
  const written = await read.query(ORIGINATORS, {})
  const known = written.map(({ odfi, destination_routing: destinationRouting, origin_id: originId }) => {
    return { odfi, destinationRouting, originId }
  })
  // a file that is begun has no trace number yet
  return [bankFiles.originator, ...known.filter(({ odfi }) => odfi !== '')]
}

/** Finds entries by the trace numbers that they were sent with, the newest first. */
export function sentEntries(app: Pick<Application, 'read' | 'log' | 'registry'>) {
  const known = new Map<string, Promise<readonly EntriesChunk[]>>()
  const chunksOf = (entriesId: string) => {
    const found = known.get(entriesId)
    if (found) return found
    if (known.size >= KEPT_FILES) known.delete(known.keys().next().value!)
    const chunks = allOf(app, entriesId)
    known.set(entriesId, chunks)
    return chunks
  }
  return async (trace: string): Promise<readonly SentEntry[]> => {
    const files = await app.read.query(OF_TRACE, { block: traceBlock(trace), trace, limit: CANDIDATES })
    const found = files.map(async (file): Promise<SentEntry | null> => {
      const { file_id, entries_id, batch_closes_at, company_id: companyId } = file
      for (const chunk of await chunksOf(entries_id)) {
        const index = Number(trace) - Number(chunk.first_trace)
        if (index < 0 || index >= chunk.ids.length || traceAt(chunk, index) !== trace) continue
        return {
          fileId: file_id,
          batchClosesAt: batch_closes_at,
          kind: chunk.kind,
          id: chunk.ids[index]!,
          amountCents: chunk.amounts_cents[index]!,
          fingerprint: chunk.fingerprints?.[index] ?? null,
          companyId,
        }
      }
      // the trace number of an offsetting entry
      return null
    })
    return (await Promise.all(found)).filter((entry) => entry !== null)
  }
}

async function allOf(
  app: Pick<Application, 'log' | 'registry'>,
  entriesId: string,
): Promise<readonly EntriesChunk[]> {
  const chunks: EntriesChunk[] = []
  for await (const chunk of entriesOf(app, entriesId)) chunks.push(chunk)
  return chunks
}
