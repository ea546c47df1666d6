import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { isSealed } from '../../domain/kernel/sealed.ts'
import {
  type Employer,
  EmployerDetailsChanged,
  EmployerRegistered,
  employer,
} from '../../domain/parties/employer.ts'
import { type FeinNotation, normalizeFein, readFein } from '../../domain/parties/fein.ts'
import { unknownTenant } from '../access/tenants.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { findable } from '../commands/found-by.ts'
import { feinReservation, holderOf, isTaken, reserve } from '../commands/reservations.ts'
import { employerSubject, sealFields } from '../commands/sealing.ts'
import { changed, readable, within } from '../commands/verbs.ts'
import { legalName as openedName } from './legal-names.ts'
import { unknownPayrollCompany } from './payroll-companies.ts'

/** A postal address: text by part, `line1`, `city`, `state`, `zip` and whatever else it has. */
export type Address = Readonly<Record<string, string>>

export interface NewEmployer {
  readonly tenant_id: string
  readonly environment: Environment
  readonly legal_name: string
  /** 9 digits, with or without a hyphen after the second. */
  readonly fein: string
  /** Default: as `fein` is written. */
  readonly feinNotation?: FeinNotation
  /** A sole proprietor, whose legal name is sealed as well. */
  readonly isPerson?: boolean
  readonly address: Address | null
  readonly contact_email: string | null
  readonly payroll_company_ids: readonly string[]
}

/** A registration that nothing stands in the way of. */
type Registration = Exclude<Awaited<ReturnType<typeof prepareRegistration>>, Rejection>

/**
 * Registers an employer. Its FEIN is reserved first, so that of two parallel registrations one wins;
 * FEIN, address and contact are sealed under the employer's data key before anything is decided.
 */
export async function register(
  app: Application,
  { input, fein, holder }: Registration,
  context: CommandContext,
): Promise<Employer | Rejection> {
  const scoped = within(context, input)
  const employerId = await reserve(app, fein.value, holder, scoped)
  if (employerId === null) return feinTaken()

  const { tenant_id, environment, legal_name, address, contact_email, payroll_company_ids } = input
  const notation = input.feinNotation ?? readFein(input.fein)?.notation
  const data = await sealFields(
    app.personalData,
    EmployerRegistered,
    {
      employer_id: employerId,
      tenant_id,
      environment,
      legal_name,
      fein: fein.text,
      ...(notation !== undefined && notation !== 'digits' && { fein_notation: notation }),
      address: textOf(address),
      contact_email: contact_email || null,
      payroll_company_ids: [...new Set(payroll_company_ids)],
    },
    ({ key }) => subjectOf(app, employerId, key, input.isPerson ?? false),
  )
  const found = findable(app, scoped, { email: contact_email, ...(input.isPerson && { legal_name }) })
  const outcome = await app.commands.execute(employer, employerId, { type: 'Register', data }, found)
  if (isRejection(outcome) && outcome.code === 'employer_exists') return feinTaken()
  return readable(app, employer, outcome)
}

/**
 * Reserves a FEIN for the employer that the context's command registers next, unless it has one.
 * @param fein `XX-XXXXXXX`.
 * @returns the id of the employer that has it, or is to be registered with it. A FEIN is never given back.
 */
export async function reserveFein(
  app: Application,
  { tenant_id, environment, fein }: Pick<NewEmployer, 'tenant_id' | 'environment' | 'fein'>,
  context: CommandContext,
): Promise<string> {
  const value = feinReservation(app.personalData, environment, fein)
  const holder = await holderOf(app, value)
  if (holder !== null) return holder
  const next = {
    decider: employer,
    creates: 'Register',
    id: createdId(context, employer),
    hasLost: () => false,
  }
  const reserved = await reserve(app, value, next, within(context, { tenant_id, environment }))
  return reserved ?? (await holderOf(app, value))!
}

/** Under whose key a field of an employer is sealed; a company's name is not. */
function subjectOf(
  { personalData }: Pick<Application, 'personalData'>,
  employerId: string,
  field: string | number,
  isPerson: boolean,
): string | null {
  return field === 'legal_name' && !isPerson ? null : employerSubject(personalData, employerId)
}

/** Finds the FEIN of an employer to be registered, and that nobody else holds it; nothing is stored. */
export async function prepareRegistration(app: Application, input: NewEmployer, context: CommandContext) {
  const { tenant_id, environment } = input
  const text = normalizeFein(input.fein)
  if (text === null) {
    return reject(
      'invalid',
      'invalid_fein',
      'fein must be 9 digits, with or without a hyphen after the second',
      'fein',
    )
  }
  const unknown =
    (await unknownTenant(app, tenant_id)) ??
    (await unknownPayrollCompany(app, tenant_id, input.payroll_company_ids))
  if (unknown) return unknown
  const fein = { text, value: feinReservation(app.personalData, environment, text) }
  const id = createdId(context, employer)
  const holder = { decider: employer, creates: 'Register', id, hasLost: () => false }
  const scoped = within(context, { tenant_id, environment })
  if (await isTaken(app, fein.value, holder, scoped)) return feinTaken()
  return { input, fein, holder }
}

function feinTaken(): Rejection {
  return reject('conflict', 'fein_taken', 'An employer with this fein is registered already', 'fein')
}

/** What may change about an employer; what is left out stays as it is. */
export type EmployerChanges = Partial<
  Pick<NewEmployer, 'legal_name' | 'address' | 'contact_email' | 'payroll_company_ids'>
>

/** Changes an employer's details and its links to payroll companies, in one append. */
export async function change(
  app: Application,
  employerId: string,
  changes: EmployerChanges,
  context: CommandContext,
): Promise<Employer | Rejection> {
  const { state } = await app.commands.load(employer, employerId)
  if (!state) return reject('not_found', 'employer_not_found', 'No such employer', 'employer_id')
  const { legal_name, address, contact_email, payroll_company_ids: payrollCompanyIds } = changes
  if (payrollCompanyIds) {
    const unknown = await unknownPayrollCompany(app, state.tenant_id, payrollCompanyIds)
    if (unknown) return unknown
  }
  const isRenamed = legal_name !== undefined && legal_name !== (await openedName(app, state))
  const { employer_id: _id, ...details } = await sealFields(
    app.personalData,
    EmployerDetailsChanged,
    {
      employer_id: employerId,
      ...(isRenamed && { legal_name }),
      ...(address !== undefined && { address: textOf(address) }),
      ...(contact_email !== undefined && { contact_email: contact_email || null }),
    },
    ({ key }) => subjectOf(app, employerId, key, isSealed(state.legal_name)),
  )
  return changed(
    app,
    employer,
    employerId,
    { type: 'Change', details, ...(payrollCompanyIds && { payrollCompanyIds }) },
    findable(app, context, { email: contact_email, ...(isSealed(state.legal_name) && { legal_name }) }),
  )
}

/** An address as it is sealed. */
function textOf(address: Address | null): string | null {
  return address === null ? null : JSON.stringify(address)
}
