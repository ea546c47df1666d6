import { PayrollRowsValidated } from '../../domain/payroll/payroll-file-events.ts'
import type { Person } from '../../domain/payroll/payroll-row.ts'
import { describeReason } from '../../domain/payroll/row-validation.ts'
import type { Application } from '../commands/application.ts'
import { derivedId } from '../commands/event-registry.ts'
import { openedOne } from '../commands/sealed-fields.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { type Parameter, statement } from '../queries/statement.ts'
import type { PayrollFileRow } from './submission-status.ts'

/** Red rows of one answer at the most. */
const MAX_ERROR_ROWS = 100

const RED_ROWS = statement(
  'red-rows-of-file',
  (db, $: Parameter<{ fileId: string; after: number; limit: number }>) =>
    db
      .selectFrom('payroll_row_errors')
      .select(['row_number', 'person', 'reasons', 'valid'])
      .where('file_id', '=', $('fileId'))
      .where('row_number', '>', $('after'))
      .orderBy('row_number')
      .limit($('limit')),
)
type RedRow = ResultOf<typeof RED_ROWS>

/** The same for all rows of a file; it stands with the first red row of each chunk. */
const VALID_IN_FILE = statement('valid-in-file', (db, $: Parameter<{ fileId: string }>) =>
  db
    .selectFrom('payroll_row_errors')
    .select('valid')
    .where('file_id', '=', $('fileId'))
    .where('valid', 'is not', null)
    .orderBy('row_number')
    .limit(({ lit }) => lit(1)),
)

const NO_TERMS = { class_codes: [], states: [] }

/**
 * The red rows of a file with the reasons in sentences, in row order, at most {@link MAX_ERROR_ROWS}.
 * Names are opened for this answer; of erased persons the fallback is shown.
 * @param after row number after which they begin; 0 is the beginning.
 */
export async function validationErrors(
  app: Pick<Application, 'read' | 'personalData'>,
  file: PayrollFileRow,
  after = 0,
) {
  // as many as the counters tell of, so that an answer in the middle of validation agrees with itself; one more than
  // are shown tells of others
  const limit = Math.min(file.red_rows, MAX_ERROR_ROWS + 1)
  const found = limit === 0 ? [] : await app.read.query(RED_ROWS, { fileId: file.file_id, after, limit })
  const rows = found.slice(0, MAX_ERROR_ROWS)
  // a page that begins later may hold no row that has it
  const [first] =
    rows.length === 0 || rows[0]!.valid ? rows : await app.read.query(VALID_IN_FILE, { fileId: file.file_id })
  const valid = first?.valid ?? NO_TERMS
  const names = await namesOf(app, file.file_id, rows)
  return {
    file_id: file.file_id,
    total_rows: file.row_count,
    green_rows: file.green_rows,
    red_rows: file.red_rows,
    errors: rows.map((row) => ({
      row_id: derivedId(file.file_id, `row/${row.row_number}`),
      row_number: row.row_number,
      employee_name: names.get(row.row_number) ?? '',
      reasons: row.reasons.map((reason) => ({
        field: reason.field,
        ...describeReason(reason, valid),
      })),
    })),
    has_more: found.length > rows.length,
  }
}

/** Names by row number: first and last, or what stands in for a person that does not open. */
async function namesOf(
  app: Pick<Application, 'personalData'>,
  fileId: string,
  rows: readonly RedRow[],
): Promise<ReadonlyMap<number, string>> {
  const failures = { file_id: fileId, failures: rows }
  const { failures: named } = await openedOne(app.personalData, PayrollRowsValidated, failures)
  return new Map(named.map(({ row_number, person }) => [row_number, person === null ? '' : nameOf(person)]))
}

function nameOf(text: string): string {
  if (!text.startsWith('{')) return text
  const { first_name, last_name } = JSON.parse(text) as Person
  return [first_name, last_name].filter((part) => part !== undefined).join(' ')
}
