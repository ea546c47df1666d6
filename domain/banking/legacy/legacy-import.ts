import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import type { Rejection } from '../../kernel/rejection.ts'
import { ImportedLines } from '../linking/imported-lines.ts'
import { legacyCollectionFields, type RecordedLegacyCollection } from './legacy-collection.ts'

/**
 * An import of the records of the legacy service: what lines of it are stored. Sent again, in whole or in part, at once
 * or after years, every line is stored once.
 */

/** Records of one event at the most: with all fields they take a quarter of a MiB. */
export const CHUNK_ROWS = 1_000
/** Lines of one import at the most. */
export const MAX_LINES = 5_000_000

const importedRow = z.object({ line: z.int().min(1).max(MAX_LINES), ...legacyCollectionFields })
export type ImportedRow = z.output<typeof importedRow>

export const LegacyImportBegun = eventType('LegacyImportBegun', {
  import_id: id(),
  /** As the operator calls it. */
  name: z.string(),
  at: time(),
})
/** Records of one tenant and environment, in the order of their lines. */
export const LegacyCollectionsImported = eventType('LegacyCollectionsImported', {
  import_id: id(),
  tenant_id: id(),
  environment: environment(),
  rows: z.array(importedRow).min(1).max(CHUNK_ROWS),
  at: time(),
})

export type LegacyImportEvent = EventOf<typeof LegacyImportBegun | typeof LegacyCollectionsImported>
export type ImportedChunk = EventOf<typeof LegacyCollectionsImported>['data']

export interface LegacyImport {
  /** Null until it has begun. */
  readonly begun: EventOf<typeof LegacyImportBegun>['data'] | null
  readonly lines: ImportedLines
  /** When the last lines came, ISO 8601; null until then. */
  readonly updated_at: string | null
}
export interface StoreRows {
  readonly type: 'Store'
  readonly importId: string
  readonly name: string
  readonly tenantId: string
  readonly environment: ImportedChunk['environment']
  /** {@link CHUNK_ROWS} at the most. */
  readonly rows: readonly ImportedRow[]
  /** Epoch milliseconds. */
  readonly at: number
}

export const legacyImport: Decider<LegacyImport, StoreRows, LegacyImportEvent> = {
  category: 'legacyImport',
  events: [LegacyImportBegun, LegacyCollectionsImported],
  initialState: { begun: null, lines: ImportedLines.NONE, updated_at: null },
  sizeOf: ({ lines }) => lines.bytes,
  evolve(state, event) {
    if (event.type === 'LegacyImportBegun') return { ...state, begun: event.data }
    const lines = event.data.rows.map((row) => ({ line: row.line, fingerprint: fingerprintOf(row) }))
    return { ...state, lines: state.lines.with(lines), updated_at: event.data.at }
  },
  decide({ importId: import_id, name, tenantId: tenant_id, environment, rows, at }, state) {
    const fresh = rows.filter((row) => statusOfLine(state, row) === 'fresh')
    if (fresh.length === 0) return [] satisfies readonly LegacyImportEvent[] | Rejection
    const imported = LegacyCollectionsImported.of({
      import_id,
      tenant_id,
      environment,
      rows: fresh,
      at: isoTime(at),
    })
    return state.begun ? [imported] : [LegacyImportBegun.of({ import_id, name, at: isoTime(at) }), imported]
  },
}

/** What of a line is compared when it comes again. */
type Comparable = Omit<ImportedRow, 'line'>

/** Whether a line is stored: it is not, it says the same, or it said something else. */
export function statusOfLine(
  { lines }: Pick<LegacyImport, 'lines'>,
  row: Comparable & { readonly line: number },
): 'fresh' | 'repeated' | 'changed' {
  const stored = lines.fingerprintOf(row.line)
  if (stored === 0) return 'fresh'
  return stored === fingerprintOf(row) ? 'repeated' : 'changed'
}

/** The carrier of a record that names a policy is the policy's, named or not: it says nothing more. */
function fingerprintOf(row: Comparable): number {
  const { employer_id, carrier_id, policy_id, period_start, period_end, premium_cents, status } = row
  const whose = policy_id ?? `/${carrier_id}`
  const text = `${employer_id}/${whose}/${period_start}/${period_end}/${premium_cents}/${status}`
  // FNV-1a: what stands there is to be told apart from a line that was exchanged, not from a forged one
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash | 0 || 1
}

/** Characters of an import's id that the ids of its records begin with; their lines are what follows. */
const PREFIX = 16

/** The id of the record of a line. @param importId ends in zeros, see {@link importOf}. */
export function importedId(importId: string, line: number): string {
  return importId.slice(0, PREFIX) + line.toString(16).padStart(importId.length - PREFIX, '0')
}

/** The import and the line that a record's id stands for, if it is an imported one's: any id may be read so. */
export function importOf(transactionId: string): { readonly importId: string; readonly line: number } {
  const line = Number.parseInt(transactionId.slice(PREFIX), 16)
  return { importId: importedId(transactionId, 0), line }
}

/** A record as the event of its import tells it; null where the event does not have it. */
export function recordOf(chunk: ImportedChunk, line: number): RecordedLegacyCollection | null {
  const row = chunk.rows.find((one) => one.line === line)
  if (!row) return null
  const { line: _line, ...fields } = row
  const { import_id, tenant_id, environment, at } = chunk
  return {
    transaction_id: importedId(import_id, line),
    tenant_id,
    environment,
    ...fields,
    import: { import_id, line },
    recorded_at: at,
  }
}
