import type { Environment } from '../../domain/kernel/ids.ts'
import type { Sealed } from '../../domain/kernel/sealed.ts'
import type { RowReason } from '../../domain/payroll/payroll-row.ts'
import type { PayrollTerms } from '../../domain/payroll/row-validation.ts'
import { bigint, integer, jsonb, orNull, type RowOf, table, text, timestamptz } from '../queries/table.ts'

const phaseStatus = text<'pending' | 'complete' | 'failed'>

/** Files of payroll rows, or of employee changes. */
export const payrollFiles = table('payroll_files', {
  key: ['file_id'],
  columns: {
    file_id: text(),
    kind: text<'payroll' | 'sync'>(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    /** Null for a sync, as is whatever else it has not. */
    policy_id: orNull(text()),
    policy_number: orNull(text()),
    source_kind: orNull(text<'tool' | 'report' | 'inbound_webhook'>()),
    /** Null unless an agent submitted the file. */
    submission_id: orNull(text()),
    /** Credential, client or connection. */
    sender_id: text(),
    /** Null for payroll. */
    sync_id: orNull(text()),
    file_name: orNull(text()),
    status: text<'pending' | 'NORMALIZED' | 'failed'>(),
    /** Why the file failed. */
    error: orNull(text()),
    created_at: timestamptz(),
    updated_at: timestamptz(),
    /** Order of receipt. */
    seq: bigint(),
    row_count: integer(),
    chunk_count: integer(),
    /** Null when the report named no period. */
    period_start: orNull(text()),
    period_end: orNull(text()),
    recorded_chunks: integer(),
    validated_chunks: integer(),
    green_rows: integer(),
    red_rows: integer(),
    /** A phase that runs still reads `pending`. */
    phase_1_status: phaseStatus(),
    wages_chunks: integer(),
    wages_rows: integer(),
    total_auditable_wages_cents: bigint(),
    phase_2_status: phaseStatus(),
    premium_chunks: integer(),
    premium_rows: integer(),
    total_premium_cents: bigint(),
    phase_3_status: phaseStatus(),
  },
  indexes: [['submission_id'], ['employer_id', 'seq desc'], ['tenant_id', 'seq desc'], ['seq desc']],
})

/** Red rows of payroll files. */
export const payrollRowErrors = table('payroll_row_errors', {
  key: ['file_id', 'row_number'],
  columns: {
    file_id: text(),
    row_number: integer(),
    /** Sealed JSON of the person, null when nobody is named. */
    person: orNull(text<Sealed>()),
    reasons: jsonb<readonly RowReason[]>(),
    /** What would have been valid: with the first red row of a chunk. Earlier releases wrote it with each. */
    valid: orNull(jsonb<Pick<PayrollTerms, 'class_codes' | 'states'>>()),
  },
  personal: ['person'],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    payroll_files: RowOf<typeof payrollFiles>
    payroll_row_errors: RowOf<typeof payrollRowErrors>
  }
}
