import {
  type NormalizedRow,
  namingValue,
  type RowReason,
  TOOL_ROWS,
} from '../../domain/payroll/payroll-row.ts'
import { describeReason, type PayrollTerms, validateRow } from '../../domain/payroll/row-validation.ts'
import { rowNormalizer } from '../../domain/payroll/totals-rows.ts'
import type { Application } from '../commands/application.ts'
import { inTimeSlices, runInTimeSlices } from '../commands/time-slices.ts'

/** One thing that is wrong or doubtful about one row. */
export interface RowFinding {
  /** 1-based position in the submitted rows. */
  readonly row: number
  readonly field: string
  readonly message: string
}

/** What a dry run answers. */
export interface ValidationResult {
  readonly submission_id: string
  readonly status: 'dry_run_complete'
  readonly dry_run: true
  readonly row_count: number
  readonly validation: {
    readonly valid: boolean
    readonly error_count: number
    readonly warning_count: number
    readonly errors: readonly RowFinding[]
    readonly warnings: readonly RowFinding[]
  }
}

/**
 * A dry run: holds rows against a policy's terms by the rules that phase 1 of a real submission
 * applies. It stores nothing and reads nothing.
 * @param ssn whether that of a row counts, as in a submission; `validate_payroll_submission` ignores it.
 */
export async function validatePayroll(
  app: Pick<Application, 'randomness'>,
  terms: PayrollTerms,
  rows: readonly Record<string, unknown>[],
  ssn: 'counts' | 'ignored',
): Promise<ValidationResult> {
  const errors: RowFinding[] = []
  const warnings: RowFinding[] = []
  const normalize = await runInTimeSlices(rowNormalizer(rows, TOOL_ROWS, terms))
  await inTimeSlices(rows, (raw, index) => {
    const normalized = normalize(raw, index + 1)
    const verdict = validateRow(normalized.row, terms)
    for (const reason of verdict.errors) {
      if (reason.field !== 'ssn' || ssn === 'counts') errors.push(finding(normalized, reason, terms))
    }
    for (const reason of verdict.warnings) warnings.push(finding(normalized, reason, terms))
  })
  return {
    submission_id: app.randomness.id(),
    status: 'dry_run_complete',
    dry_run: true,
    row_count: rows.length,
    validation: {
      valid: errors.length === 0,
      error_count: errors.length,
      warning_count: warnings.length,
      errors,
      warnings,
    },
  }
}

function finding({ row, person }: NormalizedRow, reason: RowReason, terms: PayrollTerms): RowFinding {
  const { message } = describeReason(namingValue(reason, person), terms)
  return { row: row.n, field: reason.field, message }
}
