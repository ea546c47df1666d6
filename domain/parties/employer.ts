import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { maybeSealed, type SealedField, sealContext, sealed } from '../kernel/sealed.ts'

/**
 * An employer: the insured party, whose payroll is reported. Name, FEIN, address and contact are sealed
 * under the employer's own data key (a FEIN may be a person's number); links to payroll companies
 * decide which agents may act for it.
 */
const OF_EMPLOYER: SealedField = {
  subject: 'employer',
  // whichever event wrote it last
  boundTo: ({ data, path }) =>
    sealContext(`employer-${data.employer_id}`, 'EmployerRegistered', path.join('.')),
}
const personal = () => sealed(OF_EMPLOYER)
const details = z.object({
  /** Sealed where it is a person's. */
  legal_name: maybeSealed(OF_EMPLOYER),
  /** JSON of `{ line1, city, state, zip }`, sealed. */
  address: personal().nullable(),
  contact_email: personal().nullable(),
  payroll_company_ids: z.array(id()),
})

export const EmployerRegistered = eventType(
  'EmployerRegistered',
  details.extend({
    employer_id: id(),
    tenant_id: id(),
    environment: environment(),
    /** `XX-XXXXXXX`, sealed. */
    fein: personal(),
    /** How the FEIN was written. Absent: as nine digits, or the employer was registered by a release that did not keep it. */
    fein_notation: z.enum(['employer', 'person']).optional(),
  }),
)
export const EmployerDetailsChanged = eventType(
  'EmployerDetailsChanged',
  details.omit({ payroll_company_ids: true }).partial().extend({ employer_id: id() }),
)
export const EmployerLinkedToPayrollCompany = eventType('EmployerLinkedToPayrollCompany', {
  employer_id: id(),
  payroll_company_id: id(),
})
export const EmployerUnlinkedFromPayrollCompany = eventType('EmployerUnlinkedFromPayrollCompany', {
  employer_id: id(),
  payroll_company_id: id(),
})

const events = [
  EmployerRegistered,
  EmployerDetailsChanged,
  EmployerLinkedToPayrollCompany,
  EmployerUnlinkedFromPayrollCompany,
] as const
export type EmployerEvent = EventOf<(typeof events)[number]>
export type Employer = z.output<typeof EmployerRegistered.schema>

export type EmployerCommand =
  | { readonly type: 'Register'; readonly data: Employer }
  | {
      readonly type: 'Change'
      readonly details: Partial<Pick<Employer, 'legal_name' | 'address' | 'contact_email'>>
      /** The whole new set of links; absent leaves them alone. */
      readonly payrollCompanyIds?: readonly string[]
    }

export const employer: Decider<Employer | null, EmployerCommand, EmployerEvent> = {
  category: 'employer',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'EmployerRegistered':
        return event.data
      case 'EmployerDetailsChanged':
        return { ...state!, ...event.data }
      case 'EmployerLinkedToPayrollCompany':
        return {
          ...state!,
          payroll_company_ids: [...state!.payroll_company_ids, event.data.payroll_company_id],
        }
      case 'EmployerUnlinkedFromPayrollCompany':
        return {
          ...state!,
          payroll_company_ids: state!.payroll_company_ids.filter(
            (one) => one !== event.data.payroll_company_id,
          ),
        }
    }
  },
  decide(command, state): readonly EmployerEvent[] | Rejection {
    if (command.type === 'Register') {
      if (state) return reject('conflict', 'employer_exists', 'The employer exists already')
      return [EmployerRegistered.of(command.data)]
    }
    if (!state) return reject('not_found', 'employer_not_found', 'No such employer')
    const { employer_id } = state
    const decided: EmployerEvent[] = []
    if (Object.keys(command.details).length > 0) {
      decided.push(EmployerDetailsChanged.of({ employer_id, ...command.details }))
    }
    const wanted = command.payrollCompanyIds
    if (wanted) {
      for (const payroll_company_id of state.payroll_company_ids) {
        if (!wanted.includes(payroll_company_id)) {
          decided.push(EmployerUnlinkedFromPayrollCompany.of({ employer_id, payroll_company_id }))
        }
      }
      for (const payroll_company_id of new Set(wanted)) {
        if (!state.payroll_company_ids.includes(payroll_company_id)) {
          decided.push(EmployerLinkedToPayrollCompany.of({ employer_id, payroll_company_id }))
        }
      }
    }
    return decided
  },
}
