import type { RecordedEvent } from '../../application/commands/event-registry.ts'
import {
  payrollFiles as filesTable,
  payrollRowErrors,
} from '../../application/payroll/payroll-files-table.ts'
import type { ChangedColumns, RowOf } from '../../application/queries/table.ts'
import { EmployeeChangesRecorded, EmployeeSyncReceived } from '../../domain/parties/employee-sync.ts'
import {
  PayrollFileFailed,
  PayrollFileNormalized,
  PayrollFileProcessed,
  PayrollFileReceived,
  type PayrollFileStage,
  PayrollPremiumCalculated,
  PayrollRowsRecorded,
  PayrollRowsValidated,
  PayrollWagesCalculated,
} from '../../domain/payroll/payroll-file-events.ts'
import type { ValidationResult } from '../../domain/payroll/phases.ts'
import { changing, type FoldedTable, projection } from '../runtime/projection.ts'

/**
 * What status and error queries answer from: one row per file (payroll or employee sync) with where
 * its phases stand, and one per red row. Counters of an unfinished phase read as counted so far.
 */

type File = RowOf<typeof filesTable>
type Changes = ChangedColumns<typeof filesTable>
/** Columns that count. */
type Counter = { [C in keyof File]: File[C] extends number ? C : never }[keyof File]

const PHASE_OF_STAGE = {
  file_creation: null,
  validation: 'phase_1_status',
  wage_calculation: 'phase_2_status',
  premium_calculation: 'phase_3_status',
} as const satisfies Record<PayrollFileStage, keyof File | null>

/** A file before anything was made of it. Spread it last: a spread object that then grows costs a hundred times as much. */
const UNPROCESSED = {
  status: 'pending',
  recorded_chunks: 0,
  validated_chunks: 0,
  green_rows: 0,
  red_rows: 0,
  phase_1_status: 'pending',
  wages_chunks: 0,
  wages_rows: 0,
  total_auditable_wages_cents: 0,
  phase_2_status: 'pending',
  premium_chunks: 0,
  premium_rows: 0,
  total_premium_cents: 0,
  phase_3_status: 'pending',
} as const

type FileEvent = RecordedEvent<{ type: string; data: { file_id: string } }>

/** Adds a row per red row. What is valid is the same for all rows of a file: repeated in each it would be most of what is written. */
function putErrors(
  errors: FoldedTable<typeof payrollRowErrors>,
  file_id: string,
  { failures, valid }: ValidationResult,
): void {
  for (const [index, { row_number, person, reasons }] of failures.entries()) {
    errors.put({ file_id, row_number, person, reasons, valid: index === 0 ? valid : null })
  }
}

const ofFile = changing(filesTable)

/** What an event changes of the row of a file: it adds to counters, and sets other columns. */
function counted(
  { metadata }: FileEvent,
  row: File | undefined,
  add: { readonly [C in Counter]?: number },
  set: Changes = {},
): Changes {
  const columns: { -readonly [C in keyof Changes]: Changes[C] } = { ...set, updated_at: metadata.recorded_at }
  for (const name in add) {
    const column = name as Counter
    columns[column] = (row?.[column] ?? 0) + add[column]!
  }
  return columns
}

export const payrollFiles = projection({
  name: 'payroll-files',
  version: 3,
  tables: [filesTable, payrollRowErrors],
  handlers: (on) => [
    on(PayrollFileReceived, {
      apply({ data, metadata, position }, { payroll_files }) {
        payroll_files.put({
          file_id: data.file_id,
          kind: 'payroll',
          tenant_id: data.tenant_id,
          environment: data.environment,
          employer_id: data.employer_id,
          policy_id: data.policy_id,
          policy_number: data.policy_number,
          source_kind: data.source.kind,
          submission_id: data.source.submission_id,
          sender_id: data.source.sender_id,
          file_name: data.file_name,
          created_at: metadata.recorded_at,
          updated_at: metadata.recorded_at,
          seq: position,
          row_count: data.row_count,
          chunk_count: data.chunk_count,
          period_start: data.period?.start,
          period_end: data.period?.end,
          ...UNPROCESSED,
          recorded_chunks: data.rows ? 1 : 0,
        })
      },
    }),
    on(PayrollFileProcessed, {
      reads: ({ data }) => ({ payroll_files: [[data.file_id]] }),
      apply({ data: { file_id, row_count, validation, wages, premium }, metadata }, tables) {
        tables.payroll_files.change([file_id], {
          status: 'NORMALIZED',
          row_count,
          validated_chunks: 1,
          green_rows: validation.green,
          red_rows: validation.red,
          phase_1_status: 'complete',
          wages_chunks: 1,
          wages_rows: wages.rows_processed,
          total_auditable_wages_cents: wages.auditable_cents,
          phase_2_status: 'complete',
          ...(premium && {
            premium_chunks: 1,
            premium_rows: premium.rows_processed,
            total_premium_cents: premium.premium_cents,
            phase_3_status: 'complete' as const,
          }),
          updated_at: metadata.recorded_at,
        })
        putErrors(tables.payroll_row_errors, file_id, validation)
      },
    }),
    ofFile(PayrollRowsRecorded, (event, row) => counted(event, row, { recorded_chunks: 1 })),
    ofFile(PayrollFileNormalized, (event, row) =>
      counted(event, row, {}, { status: 'NORMALIZED', row_count: event.data.row_count }),
    ),
    on(PayrollRowsValidated, {
      reads: ({ data }) => ({ payroll_files: [[data.file_id]] }),
      apply(event, { payroll_files, payroll_row_errors }) {
        const { file_id, green, red, last } = event.data
        const added = { validated_chunks: 1, green_rows: green, red_rows: red }
        const set = last ? ({ phase_1_status: 'complete' } as const) : {}
        payroll_files.change([file_id], counted(event, payroll_files.get(file_id), added, set))
        putErrors(payroll_row_errors, file_id, event.data)
      },
    }),
    ofFile(PayrollWagesCalculated, (event, row) => {
      const { rows_processed: wages_rows, auditable_cents: total_auditable_wages_cents, last } = event.data
      const added = { wages_chunks: 1, wages_rows, total_auditable_wages_cents }
      return counted(event, row, added, last ? { phase_2_status: 'complete' } : {})
    }),
    ofFile(PayrollPremiumCalculated, (event, row) => {
      const { rows_processed: premium_rows, premium_cents: total_premium_cents, last } = event.data
      const added = { premium_chunks: 1, premium_rows, total_premium_cents }
      return counted(event, row, added, last ? { phase_3_status: 'complete' } : {})
    }),
    ofFile(PayrollFileFailed, (event, row) => {
      const phase = PHASE_OF_STAGE[event.data.stage]
      const set = { status: 'failed', error: event.data.error, ...(phase && { [phase]: 'failed' }) } as const
      return counted(event, row, {}, set)
    }),
    on(EmployeeSyncReceived, {
      apply({ data, metadata, position }, { payroll_files }) {
        payroll_files.put({
          file_id: data.file_id,
          kind: 'sync',
          tenant_id: data.tenant_id,
          environment: data.environment,
          employer_id: data.employer_id,
          sender_id: data.sender_id,
          sync_id: data.sync_id,
          created_at: metadata.recorded_at,
          updated_at: metadata.recorded_at,
          seq: position,
          row_count: data.record_count,
          chunk_count: data.chunk_count,
          ...UNPROCESSED,
        })
      },
    }),
    ofFile(EmployeeChangesRecorded, (event, row) =>
      counted(event, row, { recorded_chunks: 1 }, event.data.last ? { status: 'NORMALIZED' } : {}),
    ),
  ],
})
