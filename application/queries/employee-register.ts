import { type Sealed, sealContext } from '../../domain/kernel/sealed.ts'
import { EmployeeChangesRecorded } from '../../domain/parties/employee-sync.ts'
import type { Application } from '../application.ts'
import { ERASED } from '../ports/personal-data.ts'
import type { Statement } from '../ports/read-database.ts'
import type { ListPage, PageRequest } from './operator-lists.ts'
import { MASK, openAll, UNREADABLE } from './sealed-fields.ts'

/** One person in an employer's register, as employee syncs reported. */
export interface RegisteredEmployee {
  /** What an erasure of the person names. */
  readonly subject: string
  readonly status: 'employed' | 'terminated'
  /** YYYY-MM-DD. */
  readonly hire_date: string | null
  readonly termination_date: string | null
  readonly last_action: 'hire' | 'terminate' | 'update'
  /** Reported changes in all. */
  readonly changes: number
  readonly updated_at: string
  /** The last change record: masked, as reported, or `(erased)`. */
  readonly record: unknown
}

interface Row extends Omit<RegisteredEmployee, 'record'> {
  readonly record: Sealed
  readonly record_stream: string
  readonly record_field: string
}

const REGISTER: Statement = {
  name: 'operator-employee-register',
  text: `SELECT subject, status, hire_date, termination_date, last_action, changes, updated_at,
           record, record_stream, record_field
         FROM read_model.employee_register WHERE employer_id = $1 ORDER BY subject LIMIT $2 OFFSET $3`,
}
const REGISTER_COUNT: Statement = {
  name: 'operator-employee-register-count',
  text: 'SELECT count(*) AS total FROM read_model.employee_register WHERE employer_id = $1',
}

/** The employee register of an employer, by data subject; `reveal` opens the reported records. */
export async function employeeRegister(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'personalData'>,
  employerId: string,
  { page, limit, reveal }: PageRequest & { readonly reveal: boolean },
): Promise<ListPage<RegisteredEmployee>> {
  await app.readModels.reached(['employee-register'], await app.log.head())
  const [rows, counted] = await Promise.all([
    app.read.query<Row>(REGISTER, [employerId, limit, (page - 1) * limit]),
    app.read.query<{ total: number }>(REGISTER_COUNT, [employerId]),
  ])
  const records = reveal
    ? await openAll(
        app.personalData,
        rows.map(({ record, record_stream, record_field }) => ({
          value: record,
          context: sealContext(record_stream, EmployeeChangesRecorded.name, record_field),
        })),
      )
    : rows.map(() => MASK)
  const items = rows.map(
    ({ record: _record, record_stream: _stream, record_field: _field, ...row }, index) => ({
      ...row,
      record: recordOf(records[index]!),
    }),
  )
  return { items, total: counted[0]!.total }
}

function recordOf(text: string): unknown {
  return text === MASK || text === ERASED || text === UNREADABLE ? text : JSON.parse(text)
}
