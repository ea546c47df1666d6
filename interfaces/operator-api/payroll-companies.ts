import { z } from 'zod'
import * as payrollCompanies from '../../application/parties/payroll-companies.ts'
import { payrollCompany } from '../../domain/parties/payroll-company.ts'
import { create, created, REPEATED } from '../endpoints/creations.ts'
import { id, idOf, text } from '../endpoints/fields.ts'
import { endpoint, keyed, loaded, operator } from './api.ts'

const PayrollCompany = z
  .object({ payroll_company_id: id(), tenant_id: id(), name: z.string() })
  .meta({ id: 'PayrollCompany' })

export const payrollCompanyEndpoints = [
  endpoint({
    operation: 'registerPayrollCompany',
    method: 'POST',
    path: '/payroll-companies',
    summary: 'Register a payroll company, which reports for the employers linked to it',
    access: operator,
    body: z.object({ tenant_id: id(), name: text() }),
    idempotent: REPEATED.answered,
    answers: created(PayrollCompany),
    errors: { 404: 'There is no such tenant' },
    command: { name: 'payroll-companies create' },
    handle(call) {
      const { tenant_id: tenantId, name } = call.body
      return create(keyed(call), 'POST /payroll-companies', {
        create: (context) => payrollCompanies.register(call.host.app, { tenantId, name }, context),
        idOf: ({ payroll_company_id }) => payroll_company_id,
        show: (one) => one,
        repeated: payrollCompany,
      })
    },
  }),
  endpoint({
    operation: 'showPayrollCompany',
    method: 'GET',
    path: '/payroll-companies/{payroll_company_id}',
    summary: 'Show a payroll company',
    access: operator,
    params: z.object({ payroll_company_id: idOf('payroll company') }),
    answers: { 200: PayrollCompany },
    errors: { 404: 'There is no such payroll company' },
    command: { name: 'payroll-companies show' },
    handle: ({ host, params }) => loaded(host, payrollCompany, params.payroll_company_id, 'payroll company'),
  }),
]
