import { sealContext } from '../../../domain/kernel/sealed.ts'
import { EmployeeChangesRecorded } from '../../../domain/parties/employee-sync.ts'
import type { Application } from '../../commands/application.ts'
import { ReadModelsLate } from '../../ports/read-models.ts'
import { type Parameter, statement } from '../../queries/statement.ts'

/** What read models say of a person now. */

type Parts = Pick<Application, 'read' | 'readModels'>

const FILES_AT_ONCE = 500

interface OfEmployer {
  readonly employerId: string
  readonly subjects: readonly string[]
}
const EMPLOYEES = statement('subject-access-employees', (db, $: Parameter<OfEmployer>) =>
  db
    .selectFrom('employee_register')
    .select(['employer_id', 'subject', 'status', 'hire_date', 'termination_date', 'last_action', 'changes'])
    .select(['updated_at', 'record', 'record_stream', 'record_field'])
    .where('employer_id', '=', $('employerId'))
    .where('subject', '=', ({ fn }) => fn.any($('subjects')))
    .orderBy('subject'),
)

const FILES = statement('subject-access-files', (db, $: Parameter<{ readonly ids: readonly string[] }>) =>
  db
    .selectFrom('payroll_files')
    .select(['file_id', 'kind', 'employer_id', 'policy_id', 'source_kind', 'sender_id', 'status'])
    .select(['created_at', 'updated_at'])
    .where('file_id', '=', ({ fn }) => fn.any($('ids')))
    .orderBy('seq'),
)

/** Waits for what is read here. @throws ReadModelsLate */
export async function requireCurrent({ readModels }: Parts, position: bigint): Promise<void> {
  if (!(await readModels.reached(['employee-register', 'payroll-files'], position)))
    throw new ReadModelsLate()
}

/** Entries of the employee registers of some employers, each with its sealed record and what that is bound to. */
export async function* employeesNow(
  { read }: Parts,
  employers: readonly string[],
  subjects: readonly string[],
) {
  for (const employerId of employers) {
    for (const row of await read.query(EMPLOYEES, { employerId, subjects })) {
      const { record_stream, record_field, ...told } = row
      yield { ...told, context: sealContext(record_stream, EmployeeChangesRecorded.name, record_field) }
    }
  }
}

/** How files stand; nothing of what their rows say. */
export async function* filesNow({ read }: Parts, ids: readonly string[]) {
  for (let at = 0; at < ids.length; at += FILES_AT_ONCE) {
    yield* await read.query(FILES, { ids: ids.slice(at, at + FILES_AT_ONCE) })
  }
}
