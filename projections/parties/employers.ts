import { employers as table } from '../../application/parties/employers-table.ts'
import {
  EmployerDetailsChanged,
  EmployerLinkedToPayrollCompany,
  EmployerRegistered,
  EmployerUnlinkedFromPayrollCompany,
} from '../../domain/parties/employer.ts'
import { projection } from '../runtime/projection.ts'

const ofEmployer = ({ data }: { data: { employer_id: string } }) =>
  ({ employers: [[data.employer_id]] }) as const

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
    on(EmployerDetailsChanged, {
      reads: ofEmployer,
      apply({ data }, { employers }) {
        if (data.legal_name !== undefined) {
          employers.change([data.employer_id], { legal_name: data.legal_name })
        }
      },
    }),
    on(EmployerLinkedToPayrollCompany, {
      reads: ofEmployer,
      apply({ data: { employer_id, payroll_company_id } }, { employers }) {
        const linked = employers.get(employer_id)?.payroll_company_ids ?? []
        employers.change([employer_id], {
          payroll_company_ids: [...linked.filter((one) => one !== payroll_company_id), payroll_company_id],
        })
      },
    }),
    on(EmployerUnlinkedFromPayrollCompany, {
      reads: ofEmployer,
      apply({ data: { employer_id, payroll_company_id } }, { employers }) {
        const linked = employers.get(employer_id)?.payroll_company_ids ?? []
        employers.change([employer_id], {
          payroll_company_ids: linked.filter((one) => one !== payroll_company_id),
        })
      },
    }),
  ],
})
