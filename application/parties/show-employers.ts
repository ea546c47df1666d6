import { type Employer, EmployerRegistered, employer } from '../../domain/parties/employer.ts'
import type { Application } from '../commands/application.ts'
import { opened } from '../commands/sealed-fields.ts'
import { employerSubject } from '../commands/sealing.ts'
import type { Address } from './employers.ts'

/** An employer as operators see it, personal fields opened; `(erased)` where its data key was destroyed. */
export interface ShownEmployer
  extends Pick<Employer, 'employer_id' | 'tenant_id' | 'environment' | 'legal_name' | 'payroll_company_ids'> {
  readonly fein: string
  /** Parts by name; text when it was erased. */
  readonly address: Address | string | null
  readonly contact_email: string | null
  /** What an erasure of the employer's personal data names. */
  readonly data_subject: string
}

interface PlainEmployer extends Omit<Employer, 'fein' | 'address' | 'contact_email'> {
  readonly fein: string
  readonly address: string | null
  readonly contact_email: string | null
}

/** Opens the personal fields of employers, all in one go. */
export async function showEmployers(
  app: Pick<Application, 'personalData'>,
  employers: readonly Employer[],
): Promise<readonly ShownEmployer[]> {
  const { data } = await opened(
    app.personalData,
    employers.map((one) => ({ schema: EmployerRegistered.schema, data: one })),
  )
  return (data as readonly PlainEmployer[]).map((one) => ({
    ...one,
    address: one.address?.startsWith('{') ? (JSON.parse(one.address) as Address) : one.address,
    data_subject: employerSubject(app.personalData, one.employer_id),
  }))
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
