import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { dataSubject } from '../../domain/operations/data-subject.ts'
import { normalizeRow, REPORT_RECORDS } from '../../domain/payroll/payroll-row.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-handler.ts'
import { recordOperatorAction } from './operator-actions.ts'
import { personSubject } from './submit-payroll.ts'

/** What is known of a person to be erased; each that is given leads to one data subject. */
export interface PersonIdentity {
  readonly employeeId: string | null
  readonly ssn: string | null
  readonly firstName: string | null
  readonly lastName: string | null
}

/**
 * The data subjects under which an employer's reports have sealed a person: one by employee id, one
 * by national identifier, one by name, as far as they are given and known.
 */
export async function personSubjects(
  app: Application,
  employerId: string,
  { employeeId, ssn, firstName, lastName }: PersonIdentity,
): Promise<readonly string[]> {
  const named = firstName === null && lastName === null ? {} : { first_name: firstName, last_name: lastName }
  const candidates = [{ employee_id: employeeId }, { ssn }, named]
    .map((row) => normalizeRow(row, 1, REPORT_RECORDS).identity)
    .filter((identity) => identity !== null)
    .map((identity) => personSubject(app, employerId, identity))
  const known = await Promise.all(candidates.map((subject) => app.personalData.hasKey(subject)))
  return candidates.filter((_, index) => known[index])
}

const SUBJECT = /^(?:person|employer)\/[0-9a-f]{24}$/

/**
 * Erases a data subject: the erasure is recorded first, then the subject's data key is destroyed,
 * after which every copy of its values reads as erased. Whoever was erased and reported again since
 * is erased again; an attempt that broke off is finished by the next one. A subject that never had a
 * data key is not found, and nothing is recorded of it.
 * @param subject `person/<24 hex>` or `employer/<24 hex>`.
 */
export async function eraseSubject(
  app: Application,
  subject: string,
  context: CommandContext,
): Promise<{ readonly subject: string; readonly position: bigint | null } | Rejection> {
  if (!SUBJECT.test(subject)) {
    return reject(
      'invalid',
      'invalid_subject',
      'subject must be person/<24 hex> or employer/<24 hex>',
      'subject',
    )
  }
  if (!(await app.personalData.hasKey(subject))) {
    return reject('not_found', 'subject_not_found', 'No such data subject', 'subject')
  }
  const outcome = await app.commands.execute(
    dataSubject,
    subject.replace('/', '_'),
    { type: 'Erase', subject },
    context,
  )
  if (isRejection(outcome)) return outcome
  let { position } = outcome
  if (position === null) {
    const action = { action: 'erase-again', target: subject, details: {} }
    position = await recordOperatorAction(app, action, context)
  }
  await app.personalData.destroyKey(subject)
  return { subject, position }
}
