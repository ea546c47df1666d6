import type { BANK_FILE_ANSWERS, BankFileStatus } from '../../../domain/banking/files/bank-file.ts'
import type { BANK_REPORT_STATUSES } from '../../../domain/banking/files/bank-report.ts'
import { bigint, integer, jsonb, orNull, type RowOf, table, text } from '../../queries/table.ts'

/** What files for banks are found by, from when they are recorded. */
export const bankFiles = table('bank_files', {
  key: ['file_id'],
  columns: {
    file_id: text(),
    entries_id: text(),
    name: text(),
    status: text<BankFileStatus>(),
    answer: text<(typeof BANK_FILE_ANSWERS)[number]>(),
    /** How each batch was answered, by its number. */
    outcomes: jsonb<Readonly<Record<string, 'accepted' | 'rejected' | null>>>(),
    batch_closes_at: text(),
    first_trace: text(),
    last_trace: text(),
    /** The bank and the originator that it was written for; early files name only the bank of their trace numbers. */
    odfi: text(),
    destination_routing: orNull(text()),
    origin_id: orNull(text()),
    company_id: orNull(text()),
    debit_cents: bigint(),
    credit_cents: bigint(),
    recorded_at: text(),
    /** Order of recording. */
    seq: bigint(),
  },
  indexes: [['seq desc'], ['status', 'seq']],
})

/**
 * Files by the blocks of a thousand trace numbers that theirs lie in: a look for one number reads the few files of its block,
 * however many others were numbered before or behind it.
 */
export const bankFileTraces = table('bank_file_traces', {
  key: ['block', 'file_id'],
  columns: { block: text(), file_id: text() },
})

/** The block of a trace number. */
export function traceBlock(trace: string): string {
  return trace.slice(0, -3)
}

/** Files that banks reported with. */
export const bankReports = table('bank_reports', {
  key: ['report_id'],
  columns: {
    report_id: text(),
    name: text(),
    status: text<(typeof BANK_REPORT_STATUSES)[number]>(),
    format: orNull(text<'nacha' | 'answers'>()),
    items: integer(),
    applied: integer(),
    repeated: integer(),
    /** Items that a person has yet to look at. */
    parked: integer(),
    refusal: orNull(text()),
    received_at: text(),
    seq: bigint(),
  },
  indexes: [['seq desc'], ['status', 'seq'], ['parked', 'seq']],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    bank_files: RowOf<typeof bankFiles>
    bank_file_traces: RowOf<typeof bankFileTraces>
    bank_reports: RowOf<typeof bankReports>
  }
}
