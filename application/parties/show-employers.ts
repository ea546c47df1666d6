import { type Employer, employer } from '../../domain/parties/employer.ts'
import type { Application } from '../application.ts'
import { employerContext, employerSubject, openAll } from '../queries/sealed-fields.ts'

/** An employer as operators see it, personal fields opened; `(erased)` where its data key was destroyed. */
export interface ShownEmployer
  extends Pick<Employer, 'employer_id' | 'tenant_id' | 'environment' | 'legal_name' | 'payroll_company_ids'> {
  readonly fein: string
  /** Parts by name; text when it was erased. */
  readonly address: unknown
  readonly contact_email: string | null
  /** What an erasure of the employer's personal data names. */
  readonly data_subject: string
}

/** Opens the personal fields of employers, all in one go. */
export async function showEmployers(
  app: Pick<Application, 'personalData'>,
  employers: readonly Employer[],
): Promise<readonly ShownEmployer[]> {
  const sealed = employers.flatMap((one) =>
    (['fein', 'address', 'contact_email'] as const).flatMap((field) => {
      const value = one[field]
      return value === null ? [] : [{ value, context: employerContext(one.employer_id, field) }]
    }),
  )
  const texts = (await openAll(app.personalData, sealed)).values()
  const next = (value: unknown): string | null => (value === null ? null : texts.next().value!)
  return employers.map((one) => {
    const fein = next(one.fein)!
    const address = next(one.address)
    return {
      employer_id: one.employer_id,
      tenant_id: one.tenant_id,
      environment: one.environment,
      legal_name: one.legal_name,
      fein,
      address: address?.startsWith('{') ? (JSON.parse(address) as unknown) : address,
      contact_email: next(one.contact_email),
      payroll_company_ids: one.payroll_company_ids,
      data_subject: employerSubject(app.personalData, one.employer_id),
    }
  })
}

/** One employer as operators see it. */
export async function showEmployer(
  app: Pick<Application, 'personalData'>,
  one: Employer,
): Promise<ShownEmployer> {
  return (await showEmployers(app, [one]))[0]!
}

/** An employer as it was registered. */
export async function employerAsRegistered(
  app: Pick<Application, 'personalData' | 'commands'>,
  employerId: string,
): Promise<ShownEmployer> {
  return showEmployer(app, (await app.commands.loadAt(employer, employerId, 0)).state!)
}
