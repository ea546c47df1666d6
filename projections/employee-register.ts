import type { RecordedEvent } from '../application/event-store.ts'
import type { DomainEvent } from '../domain/kernel/event-type.ts'
import {
  changeRecordField,
  type EmployeeChange,
  EmployeeChangesRecorded,
} from '../domain/parties/employee-sync.ts'
import { on, type Projection, type Row } from './runtime/projection.ts'

/**
 * Who is employed where, by what employee syncs report. Changes of one person come in several
 * streams; each row remembers up to which position of the log it has taken what, so that a stream
 * applied late does not undo what was reported after it.
 */
export const employeeRegister: Projection = {
  name: 'employee-register',
  version: 1,
  tables: [
    {
      name: 'employee_register',
      key: ['employer_id', 'subject'],
      columns: {
        employer_id: 'text',
        /** The person's data subject id. */
        subject: 'text',
        tenant_id: 'text',
        environment: 'text',
        /** `employed` or `terminated`. */
        status: 'text',
        hire_date: 'text',
        termination_date: 'text',
        /** `hire`, `terminate` or `update`. */
        last_action: 'text',
        /** The last change record, sealed. */
        record: 'text',
        /** What `record` is bound to: stream and field of EmployeeChangesRecorded. */
        record_stream: 'text',
        record_field: 'text',
        changes: 'integer',
        updated_at: 'timestamptz',
        status_position: 'bigint',
        record_position: 'bigint',
      },
    },
  ],
  handlers: [
    on(EmployeeChangesRecorded, {
      reads: ({ data }) => ({
        employee_register: data.changes.map((change) => [data.employer_id, change.subject]),
      }),
      apply(event, { employee_register }) {
        const { employer_id, chunk, changes } = event.data
        for (const [index, change] of changes.entries()) {
          const before = employee_register!.get(employer_id, change.subject)
          const field = changeRecordField(chunk, index)
          employee_register!.put(
            changed(before ?? { employer_id, subject: change.subject }, change, field, event),
          )
        }
      },
    }),
  ],
}

function changed(
  before: Readonly<Row>,
  change: EmployeeChange,
  field: string,
  event: RecordedEvent<DomainEvent>,
): Row {
  const { position, stream, metadata } = event
  const at = Number(position)
  const row: Row = { ...before, changes: ((before.changes as number | undefined) ?? 0) + 1 }
  if (at >= ((before.record_position as number | undefined) ?? 0)) {
    row.tenant_id = metadata.tenant_id
    row.environment = metadata.environment
    row.last_action = change.action
    row.record = change.record
    row.record_stream = stream
    row.record_field = field
    row.record_position = at
    row.updated_at = metadata.recorded_at
  }
  row.status ??= 'employed'
  const decided = (before.status_position as number | null | undefined) ?? 0
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
