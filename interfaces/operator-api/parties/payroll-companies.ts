import { z } from 'zod'
import { listPayrollCompanies } from '../../../application/access/list-directory.ts'
import * as payrollCompanies from '../../../application/parties/payroll-companies.ts'
import { payrollCompany } from '../../../domain/parties/payroll-company.ts'
import { create, created } from '../../endpoints/creations.ts'
import { id, ofOne, text } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, keyed, loaded } from '../host/api.ts'
import { handleList } from '../host/lists.ts'

const PayrollCompany = z
  .object({ payroll_company_id: id(), tenant_id: id(), name: z.string() })
  .meta({ id: 'PayrollCompany' })

export const payrollCompanyEndpoints = [
  endpoint({
    operation: 'registerPayrollCompany',
    route: 'POST /payroll-companies',
    summary: 'Register a payroll company, which reports for the employers linked to it',
    body: z.object({ tenant_id: id(), name: text() }),
    ...created(PayrollCompany),
    errors: { 404: 'There is no such tenant' },
    refuses: { 404: ['tenant_not_found'] },
    handle: (call) =>
      create(keyed(call), 'POST /payroll-companies', {
        create: (context) => payrollCompanies.register(call.host.app, call.body, context),
        show: (one) => one,
        repeated: payrollCompany,
      }),
  }),
  endpoint({
    operation: 'listPayrollCompanies',
    route: 'GET /payroll-companies',
    summary: 'List payroll companies, newest first',
    ...listOf(PayrollCompany, { tenant_id: narrowing(id()) }),
    columns: 'payroll_company_id name tenant_id',
    handle: handleList(listPayrollCompanies),
  }),
  endpoint({
    operation: 'showPayrollCompany',
    route: 'GET /payroll-companies/{payroll_company_id}',
    summary: 'Show a payroll company',
    ...ofOne('payroll_company_id', 'payroll company'),
    answers: { 200: PayrollCompany },
    handle: ({ host, params }) => loaded(host, payrollCompany, params.payroll_company_id, 'payroll company'),
  }),
]
