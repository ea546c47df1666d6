import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type PayrollCompany, payrollCompany } from '../../domain/parties/payroll-company.ts'
import { unknownTenant } from '../access/tenants.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Reads } from '../commands/command-handler.ts'
import { readable, within } from '../commands/verbs.ts'

/** Registers a payroll company of a tenant. */
export async function register(
  app: Application,
  { tenant_id, name }: Omit<PayrollCompany, 'payroll_company_id'>,
  context: CommandContext,
): Promise<PayrollCompany | Rejection> {
  const unknown = await unknownTenant(app, tenant_id)
  if (unknown) return unknown
  const payroll_company_id = createdId(context, payrollCompany)
  const command = { type: 'Register', data: { payroll_company_id, tenant_id, name } } as const
  return readable(
    app,
    payrollCompany,
    await app.commands.create(payrollCompany, payroll_company_id, command, within(context, { tenant_id })),
  )
}

/** Rejects ids of which one names no payroll company of the tenant. */
export async function unknownPayrollCompany(
  { commands }: Reads,
  tenantId: string,
  ids: readonly string[],
): Promise<Rejection | null> {
  const found = await Promise.all(ids.map((id) => commands.load(payrollCompany, id)))
  const unknown = ids.find((_, index) => found[index]!.state?.tenant_id !== tenantId)
  if (unknown === undefined) return null
  return reject(
    'not_found',
    'payroll_company_not_found',
    `payroll_company_ids: the tenant has no payroll company ${unknown}`,
    'payroll_company_ids',
  )
}
