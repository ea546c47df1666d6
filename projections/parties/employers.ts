import { employers as table } from '../../application/parties/employers-table.ts'
import type { RowOf } from '../../application/queries/table.ts'
import {
  EmployerDetailsChanged,
  EmployerLinkedToPayrollCompany,
  EmployerRegistered,
  EmployerUnlinkedFromPayrollCompany,
} from '../../domain/parties/employer.ts'
import { changing, projection } from '../runtime/projection.ts'

const ofEmployer = changing(table)

const others = (row: RowOf<typeof table> | undefined, id: string) =>
  (row?.payroll_company_ids ?? []).filter((one) => one !== id)

/** Employers as they are listed; what is personal about them stays in the log. */
export const employers = projection({
  name: 'employers',
  version: 2,
  tables: [table],
  handlers: (on) => [
    on(EmployerRegistered, {
      apply: ({ data, metadata, position }, { employers }) =>
        employers.put({ ...data, created_at: metadata.recorded_at, seq: position }),
    }),
    ofEmployer(EmployerDetailsChanged, ({ data: { legal_name } }) =>
      legal_name === undefined ? null : { legal_name },
    ),
    ofEmployer(EmployerLinkedToPayrollCompany, ({ data: { payroll_company_id } }, row) => ({
      payroll_company_ids: [...others(row, payroll_company_id), payroll_company_id],
    })),
    ofEmployer(EmployerUnlinkedFromPayrollCompany, ({ data: { payroll_company_id } }, row) => ({
      payroll_company_ids: others(row, payroll_company_id),
    })),
  ],
})
