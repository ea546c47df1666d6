import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { dataSubject, dataSubjectId } from '../../domain/operations/data-subject.ts'
import { normalizeRow, REPORT_RECORDS } from '../../domain/payroll/payroll-row.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { personSubject } from '../commands/sealing.ts'

/** What is known of a person to be erased; each that is given leads to one data subject. */
export interface PersonIdentity {
  readonly employee_id: string | null
  readonly ssn: string | null
  readonly first_name: string | null
  readonly last_name: string | null
}

/**
 * The data subjects under which an employer's reports have sealed a person: one by employee id, one
 * by national identifier, one by name, as far as they are given and known.
 */
export async function personSubjects(
  app: Application,
  employerId: string,
  { employee_id, ssn, first_name, last_name }: PersonIdentity,
): Promise<readonly string[]> {
  const named = first_name === null && last_name === null ? {} : { first_name, last_name }
  const candidates = [{ employee_id }, { ssn }, named]
    .map((row) => normalizeRow(row, 1, REPORT_RECORDS).identity)
    .filter((identity) => identity !== null)
    // releases that did not compose names have sealed under those that were sent decomposed
    .flatMap((identity) => [...new Set([identity, identity.normalize('NFD')])])
    .map((identity) => personSubject(app.personalData, employerId, identity))
  const generations = await Promise.all(candidates.map((subject) => app.personalData.keyGeneration(subject)))
  return candidates.filter((_, index) => generations[index] !== null)
}

/**
 * What {@link eraseSubject} would destroy; nothing is recorded or changed.
 * @returns the number of data keys that still open something, or why the subject cannot be erased.
 */
export async function dataKeysToErase(app: Application, subject: string): Promise<number | Rejection> {
  const generation = await latestGeneration(app, subject)
  if (isRejection(generation)) return generation
  const { state } = await app.commands.load(dataSubject, dataSubjectId(subject))
  return generation > state.erasedUpTo ? 1 : 0
}

const SUBJECT = /^(?:person|employer)\/[0-9a-f]{24}$/

/**
 * Erases a data subject: the erasure is recorded first, then the subject's data key is destroyed,
 * after which every copy of its values reads as erased. A person that was erased and reported again since
 * is erased again; what broke off after it was recorded is finished by the process manager `erasure`.
 * A subject that never had a data key is not found, and nothing is recorded of it.
 * @param subject `person/<24 hex>` or `employer/<24 hex>`.
 * @param reason kept as it is.
 * @returns `position` null when the subject was erased before and not reported since.
 */
export async function eraseSubject(
  app: Application,
  subject: string,
  reason: string | undefined,
  context: CommandContext,
): Promise<{ readonly subject: string; readonly position: bigint | null } | Rejection> {
  const generation = await latestGeneration(app, subject)
  if (isRejection(generation)) return generation
  const outcome = await app.commands.execute(
    dataSubject,
    dataSubjectId(subject),
    { type: 'Erase', subject, generation, reason },
    context,
  )
  if (isRejection(outcome)) return outcome
  // of a command that was carried out before, not what was reported since
  await app.personalData.destroyKey(subject, outcome.state.erasedUpTo)
  return { subject, position: outcome.position }
}

/** Which data key of a subject is its latest, destroyed or not. */
async function latestGeneration(app: Application, subject: string): Promise<number | Rejection> {
  if (!SUBJECT.test(subject)) {
    return reject(
      'invalid',
      'invalid_subject',
      'subject must be person/<24 hex> or employer/<24 hex>',
      'subject',
    )
  }
  const generation = await app.personalData.keyGeneration(subject)
  return generation ?? reject('not_found', 'subject_not_found', 'No such data subject', 'subject')
}
