import { sealContext } from '../../domain/kernel/sealed.ts'
import { EmployeeChangesRecorded } from '../../domain/parties/employee-sync.ts'
import type { Application } from '../commands/application.ts'
import { MASK, openAll, UNREADABLE } from '../commands/sealed-fields.ts'
import { ERASED } from '../ports/personal-data.ts'
import type { ListPage, PageRequest, ResultOf } from '../ports/read-database.ts'
import { pagedList, readPage } from '../queries/pages.ts'
import type { Parameter } from '../queries/statement.ts'

interface Whose {
  readonly employerId: string
}
const REGISTER = pagedList(
  { projection: 'employee-register', name: 'operator-employee-register' },
  (db, $: Parameter<Whose>) =>
    db
      .selectFrom('employee_register')
      .select(['subject', 'status', 'hire_date', 'termination_date', 'last_action', 'changes'])
      .select(['updated_at', 'record', 'record_stream', 'record_field'])
      .where('employer_id', '=', $('employerId'))
      .orderBy('subject'),
)

/** One person in an employer's register, as employee syncs reported; `subject` is what an erasure names. */
export interface RegisteredEmployee
  extends Omit<ResultOf<typeof REGISTER.rows>, 'record' | 'record_stream' | 'record_field'> {
  /** The last change record: masked, as reported, or `(erased)`. */
  readonly record: unknown
}

/** The employee register of an employer, by data subject; `reveal` opens the reported records. */
export async function employeeRegister(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'personalData'>,
  employerId: string,
  { reveal, ...page }: PageRequest & { readonly reveal: boolean },
): Promise<ListPage<RegisteredEmployee>> {
  const { items: rows, total } = await readPage(app, REGISTER, { employerId }, page)
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
  return { items, total }
}

function recordOf(text: string): unknown {
  return text === MASK || text === ERASED || text === UNREADABLE ? text : JSON.parse(text)
}
