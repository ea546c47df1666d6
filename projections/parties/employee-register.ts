import type { RecordedEvent } from '../../application/commands/event-registry.ts'
import { employeeRegister as table } from '../../application/parties/employee-register-table.ts'
import type { RowOf } from '../../application/queries/table.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import {
  changeRecordField,
  type EmployeeChange,
  EmployeeChangesRecorded,
} from '../../domain/parties/employee-sync.ts'
import { projection } from '../runtime/projection.ts'

/**
 * The employees of each employer, as employee syncs report them. Changes of one person come in several
 * streams; each row remembers up to which position of the log it has taken what, so that a stream
 * applied late does not undo what was reported after it.
 */
export const employeeRegister = projection({
  name: 'employee-register',
  version: 1,
  tables: [table],
  handlers: (on) => [
    on(EmployeeChangesRecorded, {
      reads: ({ data }) => ({
        employee_register: data.changes.map((change) => [data.employer_id, change.subject]),
      }),
      apply(event, { employee_register }) {
        const { employer_id, chunk, changes } = event.data
        for (const [index, change] of changes.entries()) {
          const before = employee_register.get(employer_id, change.subject)
          const field = changeRecordField(chunk, index)
          employee_register.put(changed(employer_id, before, change, field, event))
        }
      },
    }),
  ],
})

type Person = RowOf<typeof table>

/** A person of whom nothing was reported yet. */
const UNKNOWN = {
  status: 'employed',
  hire_date: null,
  termination_date: null,
  status_position: null,
  changes: 0,
} as const

function changed(
  employerId: string,
  before: Person | undefined,
  change: EmployeeChange,
  field: string,
  { position, stream, metadata }: RecordedEvent<DomainEvent>,
): Person {
  const at = Number(position)
  const reported = {
    tenant_id: metadata.tenant_id,
    environment: metadata.environment,
    last_action: change.action,
    record: change.record,
    record_stream: stream,
    record_field: field,
    record_position: at,
    updated_at: metadata.recorded_at,
  }
  const row: { -readonly [C in keyof Person]: Person[C] } = {
    ...(before ?? { employer_id: employerId, subject: change.subject, ...UNKNOWN, ...reported }),
  }
  row.changes += 1
  if (at >= row.record_position) Object.assign(row, reported)
  const decided = row.status_position ?? 0
  if (change.action === 'hire') {
    if (at >= decided) {
      row.status = 'employed'
      row.hire_date = change.effective_date
      row.termination_date = null
      row.status_position = at
    } else row.hire_date ??= change.effective_date
  } else if (change.action === 'terminate' && at >= decided) {
    row.status = 'terminated'
    row.termination_date = change.effective_date
    row.status_position = at
  }
  return row
}
