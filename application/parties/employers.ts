import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Sealed } from '../../domain/kernel/sealed.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { normalizeFein } from '../../domain/parties/fein.ts'
import type { Application } from '../application.ts'
import { type CommandContext, createdId } from '../command-handling/command-context.ts'
import { changed, readable, within } from '../command-handling/verbs.ts'
import { employerContext, employerSubject } from '../queries/sealed-fields.ts'
import { feinReservation, reserve } from '../uniqueness/reservations.ts'
import { unknownPayrollCompany } from './payroll-companies.ts'
import { unknownTenant } from './tenants.ts'

/** A postal address: text by part, `line1`, `city`, `state`, `zip` and whatever else it has. */
export type Address = Readonly<Record<string, string>>

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
export async function register(
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

  const scoped = within(context, { tenant_id: tenantId, environment })
  const employerId = await reserve(
    app,
    feinReservation(app.personalData, environment, fein),
    { decider: employer, creates: 'Register', id: createdId(context, employer), hasLost: () => false },
    scoped,
  )
  if (employerId === null) return feinTaken()

  const sealed = await sealEmployer(app, employerId, { fein, address, contactEmail })
  const outcome = await app.commands.execute(
    employer,
    employerId,
    {
      type: 'Register',
      data: {
        employer_id: employerId,
        tenant_id: tenantId,
        environment,
        legal_name: input.legalName,
        fein: sealed.fein!,
        address: sealed.address ?? null,
        contact_email: sealed.contactEmail ?? null,
        payroll_company_ids: [...new Set(input.payrollCompanyIds)],
      },
    },
    scoped,
  )
  if (isRejection(outcome) && outcome.code === 'employer_exists') return feinTaken()
  return readable(app, employer, outcome)
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
export async function change(
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
  const sealed = await sealEmployer(app, employerId, changes)
  const details: { -readonly [K in 'legal_name' | 'address' | 'contact_email']?: Employer[K] } = {}
  if (changes.legalName !== undefined && changes.legalName !== state.legal_name) {
    details.legal_name = changes.legalName
  }
  if (changes.address !== undefined) details.address = sealed.address ?? null
  if (changes.contactEmail !== undefined) details.contact_email = sealed.contactEmail ?? null
  const { payrollCompanyIds } = changes
  return changed(
    app,
    employer,
    employerId,
    { type: 'Change', details, ...(payrollCompanyIds && { payrollCompanyIds }) },
    context,
  )
}

async function sealEmployer(
  app: Application,
  employerId: string,
  values: {
    readonly fein?: string
    readonly address?: Address | null
    readonly contactEmail?: string | null
  },
): Promise<{ fein?: Sealed; address?: Sealed; contactEmail?: Sealed }> {
  const subject = employerSubject(app.personalData, employerId)
  const items: { subject: string; context: string; plaintext: string }[] = []
  const names: ('fein' | 'address' | 'contactEmail')[] = []
  const add = (name: (typeof names)[number], field: string, plaintext: string) => {
    names.push(name)
    items.push({ subject, context: employerContext(employerId, field), plaintext })
  }
  if (values.fein !== undefined) add('fein', 'fein', values.fein)
  if (values.address) add('address', 'address', JSON.stringify(values.address))
  if (values.contactEmail) add('contactEmail', 'contact_email', values.contactEmail)
  if (items.length === 0) return {}
  const sealed = await app.personalData.seal(items)
  return Object.fromEntries(names.map((name, index) => [name, sealed[index]!]))
}
