import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { dataSubject } from '../../domain/operations/data-subject.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-handler.ts'
import { recordOperatorAction } from './operator-actions.ts'

const SUBJECT = /^(?:person|employer)\/[0-9a-f]{24}$/

/**
 * Erases a data subject: the erasure is recorded first, then the subject's data key is destroyed,
 * after which every copy of its values reads as erased. Whoever was erased and reported again since
 * is erased again; an attempt that broke off is finished by the next one.
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
