import { type Employer, EmployerRegistered } from '../../domain/parties/employer.ts'
import { openedOne } from '../commands/sealed-fields.ts'
import type { PersonalData } from '../ports/personal-data.ts'

/** The legal name of an employer, opened; `(erased)` where its data key was destroyed. */
export async function legalName(
  { personalData }: { readonly personalData: Pick<PersonalData, 'open'> },
  { employer_id, legal_name }: Pick<Employer, 'employer_id' | 'legal_name'>,
): Promise<string> {
  return (await openedOne(personalData, EmployerRegistered, { employer_id, legal_name })).legal_name
}
