import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/** A payroll company: it reports for the employers that are linked to it. */
export const PayrollCompanyRegistered = eventType('PayrollCompanyRegistered', {
  payroll_company_id: id(),
  tenant_id: id(),
  name: z.string(),
})

export type PayrollCompanyEvent = EventOf<typeof PayrollCompanyRegistered>
export type PayrollCompany = z.output<typeof PayrollCompanyRegistered.schema>
export type PayrollCompanyCommand = { readonly type: 'Register'; readonly data: PayrollCompany }

export const payrollCompany: Decider<PayrollCompany | null, PayrollCompanyCommand, PayrollCompanyEvent> = {
  category: 'payrollCompany',
  events: [PayrollCompanyRegistered],
  initialState: null,
  evolve: (_state, event) => event.data,
  decide(command, state): readonly PayrollCompanyEvent[] | Rejection {
    if (state) return reject('conflict', 'payroll_company_exists', 'The payroll company exists already')
    return [PayrollCompanyRegistered.of(command.data)]
  },
}
