import type { Environment } from '../../domain/kernel/ids.ts'
import type { Sealed } from '../../domain/kernel/sealed.ts'
import type { EmployeeChange } from '../../domain/parties/employee-sync.ts'
import { bigint, integer, orNull, type RowOf, table, text, timestamptz } from '../queries/table.ts'

export const employeeRegister = table('employee_register', {
  key: ['employer_id', 'subject'],
  columns: {
    employer_id: text(),
    /** The person's data subject id. */
    subject: text(),
    tenant_id: orNull(text()),
    environment: orNull(text<Environment>()),
    status: text<'employed' | 'terminated'>(),
    /** YYYY-MM-DD. */
    hire_date: orNull(text()),
    termination_date: orNull(text()),
    last_action: text<EmployeeChange['action']>(),
    /** The last change record, sealed. */
    record: text<Sealed>(),
    /** What `record` is bound to: stream and field of EmployeeChangesRecorded. */
    record_stream: text(),
    record_field: text(),
    /** Reported changes in all. */
    changes: integer(),
    updated_at: timestamptz(),
    status_position: orNull(bigint()),
    record_position: bigint(),
  },
  personal: ['record'],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    employee_register: RowOf<typeof employeeRegister>
  }
}
