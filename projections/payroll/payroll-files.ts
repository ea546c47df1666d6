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
import { type FoldedTable, projection } from '../runtime/projection.ts'

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

function ofFile(event: FileEvent) {
  return { payroll_files: [[event.data.file_id]] } as const
}

/** Changes the row of a file: adds to counters, sets other columns. @throws when there is no such row. */
function changeFile(
  files: FoldedTable<typeof filesTable>,
  event: FileEvent,
  add: { readonly [C in Counter]?: number },
  set: Changes = {},
): void {
  const { file_id } = event.data
  const row = files.get(file_id)
  const columns: { -readonly [C in keyof Changes]: Changes[C] } = {
    ...set,
    updated_at: event.metadata.recorded_at,
  }
  for (const name in add) {
    const column = name as Counter
    columns[column] = (row?.[column] ?? 0) + add[column]!
  }
  files.change([file_id], columns)
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
      reads: ofFile,
      apply(event, { payroll_files, payroll_row_errors }) {
        const { file_id, row_count, validation, wages, premium } = event.data
        changeFile(
          payroll_files,
          event,
          {},
          {
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
              phase_3_status: 'complete',
            }),
          },
        )
        putErrors(payroll_row_errors, file_id, validation)
      },
    }),
    on(PayrollRowsRecorded, {
      reads: ofFile,
      apply: (event, { payroll_files }) => changeFile(payroll_files, event, { recorded_chunks: 1 }),
    }),
    on(PayrollFileNormalized, {
      reads: ofFile,
      apply: (event, { payroll_files }) =>
        changeFile(payroll_files, event, {}, { status: 'NORMALIZED', row_count: event.data.row_count }),
    }),
    on(PayrollRowsValidated, {
      reads: ofFile,
      apply(event, { payroll_files, payroll_row_errors }) {
        const { file_id, green, red, last } = event.data
        changeFile(
          payroll_files,
          event,
          { validated_chunks: 1, green_rows: green, red_rows: red },
          last ? { phase_1_status: 'complete' } : {},
        )
        putErrors(payroll_row_errors, file_id, event.data)
      },
    }),
    on(PayrollWagesCalculated, {
      reads: ofFile,
      apply(event, { payroll_files }) {
        const { rows_processed, auditable_cents, last } = event.data
        changeFile(
          payroll_files,
          event,
          { wages_chunks: 1, wages_rows: rows_processed, total_auditable_wages_cents: auditable_cents },
          last ? { phase_2_status: 'complete' } : {},
        )
      },
    }),
    on(PayrollPremiumCalculated, {
      reads: ofFile,
      apply(event, { payroll_files }) {
        const { rows_processed, premium_cents, last } = event.data
        changeFile(
          payroll_files,
          event,
          { premium_chunks: 1, premium_rows: rows_processed, total_premium_cents: premium_cents },
          last ? { phase_3_status: 'complete' } : {},
        )
      },
    }),
    on(PayrollFileFailed, {
      reads: ofFile,
      apply(event, { payroll_files }) {
        const phase = PHASE_OF_STAGE[event.data.stage]
        changeFile(
          payroll_files,
          event,
          {},
          { status: 'failed', error: event.data.error, ...(phase ? { [phase]: 'failed' } : {}) },
        )
      },
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
    on(EmployeeChangesRecorded, {
      reads: ofFile,
      apply: (event, { payroll_files }) =>
        changeFile(
          payroll_files,
          event,
          { recorded_chunks: 1 },
          event.data.last ? { status: 'NORMALIZED' } : {},
        ),
    }),
  ],
})
