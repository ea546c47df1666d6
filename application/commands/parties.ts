import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type Carrier, carrier } from '../../domain/parties/carrier.ts'
import {
  type Employer,
  EmployerDetailsChanged,
  EmployerRegistered,
  employer,
} from '../../domain/parties/employer.ts'
import { normalizeFein } from '../../domain/parties/fein.ts'
import { type PayrollCompany, payrollCompany } from '../../domain/parties/payroll-company.ts'
import { type Tenant, tenant } from '../../domain/parties/tenant.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-handler.ts'
import { derivedId } from '../event-store.ts'
import { employerSubject, sealFields } from '../sealing.ts'
import { feinReservation, reserve } from './reservations.ts'

/** A postal address: text by part, `line1`, `city`, `state`, `zip` and whatever else it has. */
export type Address = Readonly<Record<string, string>>

/** Registers a tenant. */
export async function registerTenant(
  app: Application,
  input: { readonly name: string },
  context: CommandContext,
): Promise<Tenant | Rejection> {
  const tenant_id = derivedId(context.commandId, 'tenant')
  const outcome = await app.commands.execute(
    tenant,
    tenant_id,
    { type: 'Register', data: { tenant_id, name: input.name } },
    { ...context, tenantId: tenant_id },
  )
  return isRejection(outcome) ? outcome : outcome.state!
}

/** Registers a carrier of a tenant. */
export async function registerCarrier(
  app: Application,
  input: {
    readonly tenantId: string
    readonly name: string
    readonly settlementType: Carrier['settlement_type']
  },
  context: CommandContext,
): Promise<Carrier | Rejection> {
  const unknown = await unknownTenant(app, input.tenantId)
  if (unknown) return unknown
  const carrier_id = derivedId(context.commandId, 'carrier')
  const data = {
    carrier_id,
    tenant_id: input.tenantId,
    name: input.name,
    settlement_type: input.settlementType,
  }
  const outcome = await app.commands.execute(
    carrier,
    carrier_id,
    { type: 'Register', data },
    { ...context, tenantId: input.tenantId },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.position !== null) await app.readModels.reached(['policies'], outcome.position)
  return outcome.state!
}

/** Registers a payroll company of a tenant. */
export async function registerPayrollCompany(
  app: Application,
  input: { readonly tenantId: string; readonly name: string },
  context: CommandContext,
): Promise<PayrollCompany | Rejection> {
  const unknown = await unknownTenant(app, input.tenantId)
  if (unknown) return unknown
  const payroll_company_id = derivedId(context.commandId, 'payroll-company')
  const outcome = await app.commands.execute(
    payrollCompany,
    payroll_company_id,
    { type: 'Register', data: { payroll_company_id, tenant_id: input.tenantId, name: input.name } },
    { ...context, tenantId: input.tenantId },
  )
  return isRejection(outcome) ? outcome : outcome.state!
}

export interface NewEmployer {
  readonly tenantId: string
  readonly environment: Environment
  readonly legalName: string
  /** 9 digits, with or without a hyphen after the second. */
  readonly fein: string
  readonly address: Address | null
  readonly contactEmail: string | null
  readonly payrollCompanyIds: readonly string[]
}

/**
 * Registers an employer. Its FEIN is reserved first, so that of two parallel registrations one wins;
 * FEIN, address and contact are sealed under the employer's data key before anything is decided.
 */
export async function registerEmployer(
  app: Application,
  input: NewEmployer,
  context: CommandContext,
): Promise<Employer | Rejection> {
  const { tenantId, environment, address, contactEmail } = input
  const fein = normalizeFein(input.fein)
  if (fein === null) {
    return reject(
      'invalid',
      'invalid_fein',
      'fein must be 9 digits, with or without a hyphen after the second',
      'fein',
    )
  }
  const unknown =
    (await unknownTenant(app, tenantId)) ??
    (await unknownPayrollCompany(app, tenantId, input.payrollCompanyIds))
  if (unknown) return unknown

  const within = { ...context, tenantId, environment }
  const employerId = await reserve(
    app,
    feinReservation(app.personalData, environment, fein),
    { decider: employer, id: derivedId(context.commandId, 'employer'), hasLost: () => false },
    within,
  )
  if (employerId === null) return feinTaken()

  const data = await sealFields(
    app.personalData,
    EmployerRegistered,
    {
      employer_id: employerId,
      tenant_id: tenantId,
      environment,
      legal_name: input.legalName,
      fein,
      address: textOf(address),
      contact_email: contactEmail || null,
      payroll_company_ids: [...new Set(input.payrollCompanyIds)],
    },
    () => employerSubject(app.personalData, employerId),
  )
  const outcome = await app.commands.execute(employer, employerId, { type: 'Register', data }, within)
  if (isRejection(outcome)) return outcome.code === 'employer_exists' ? feinTaken() : outcome
  if (outcome.position !== null) await app.readModels.reached(['employers'], outcome.position)
  return outcome.state!
}

function feinTaken(): Rejection {
  return reject('conflict', 'fein_taken', 'An employer with this fein is registered already', 'fein')
}

/** What may change about an employer; what is left out stays as it is. */
export interface EmployerChanges {
  readonly legalName?: string
  readonly address?: Address | null
  readonly contactEmail?: string | null
  /** The whole new set of links. */
  readonly payrollCompanyIds?: readonly string[]
}

/** Changes an employer's details and its links to payroll companies, in one append. */
export async function changeEmployer(
  app: Application,
  employerId: string,
  changes: EmployerChanges,
  context: CommandContext,
): Promise<Employer | Rejection> {
  const { state } = await app.commands.load(employer, employerId)
  if (!state) return reject('not_found', 'employer_not_found', 'No such employer', 'employer_id')
  if (changes.payrollCompanyIds) {
    const unknown = await unknownPayrollCompany(app, state.tenant_id, changes.payrollCompanyIds)
    if (unknown) return unknown
  }
  const { legalName, address, contactEmail } = changes
  const { employer_id: _id, ...details } = await sealFields(
    app.personalData,
    EmployerDetailsChanged,
    {
      employer_id: employerId,
      ...(legalName !== undefined && legalName !== state.legal_name && { legal_name: legalName }),
      ...(address !== undefined && { address: textOf(address) }),
      ...(contactEmail !== undefined && { contact_email: contactEmail || null }),
    },
    () => employerSubject(app.personalData, employerId),
  )
  const outcome = await app.commands.execute(
    employer,
    employerId,
    changes.payrollCompanyIds === undefined
      ? { type: 'Change', details }
      : { type: 'Change', details, payrollCompanyIds: changes.payrollCompanyIds },
    { ...context, tenantId: state.tenant_id, environment: state.environment },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.position !== null) await app.readModels.reached(['employers'], outcome.position)
  return outcome.state!
}

/** Rejects a tenant id that names nothing. */
export async function unknownTenant(app: Application, tenantId: string): Promise<Rejection | null> {
  if ((await app.commands.load(tenant, tenantId)).state) return null
  return reject('not_found', 'tenant_not_found', 'tenant_id: no such tenant', 'tenant_id')
}

async function unknownPayrollCompany(
  app: Application,
  tenantId: string,
  ids: readonly string[],
): Promise<Rejection | null> {
  for (const id of ids) {
    const { state } = await app.commands.load(payrollCompany, id)
    if (state?.tenant_id === tenantId) continue
    return reject(
      'not_found',
      'payroll_company_not_found',
      `payroll_company_ids: the tenant has no payroll company ${id}`,
      'payroll_company_ids',
    )
  }
  return null
}

/** An address as it is sealed. */
function textOf(address: Address | null): string | null {
  return address === null ? null : JSON.stringify(address)
}
