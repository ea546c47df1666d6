import type { z } from 'zod'
import { connectionSubject, employerSubject } from '../../../application/commands/sealing.ts'
import { type PersonIdentity, personSubjects } from '../../../application/operations/erasure.ts'
import { bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import { bankConnection } from '../../../domain/banking/linking/bank-connection.ts'
import { isSealed, subjectOf } from '../../../domain/kernel/sealed.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { REQUIRED } from '../../endpoints/faults.ts'
import { id, optional, text } from '../../endpoints/fields.ts'
import { badRequest, loaded, notFound, type OperatorHost } from '../host/api.ts'
import { dataSubject } from '../host/values.ts'

/** Whom a request is about: in one of several ways. */
export const namedSubjects = {
  subject: optional(dataSubject()).describe(
    '`person/<24 hex>` or `employer/<24 hex>`: `data_subject` of the register or of `employers show`, no id of theirs',
  ),
  employer_id: optional(id()).describe('Instead: a person by what the reports of this employer say'),
  employee_id: optional(text()),
  ssn: optional(text()),
  first_name: optional(text()),
  last_name: optional(text()),
  connection_id: optional(id()).describe(
    'Instead: a bank connection without an employer, with what opens it, its transactions and the users of its accounts',
  ),
  carrier_id: optional(id()).describe(
    'Instead: the numbers of the ACH accounts of this carrier, and the users of its other accounts',
  ),
  bank_account_id: optional(id()).describe(
    'Instead: the user of a bank account without an employer, a bank connection and a carrier',
  ),
}

type Named = z.output<z.ZodObject<typeof namedSubjects>>

/**
 * The data subject that is named, or those that a person of an employer stands under.
 * @param verb what is to be done with whom a refusal leads to.
 * @throws HttpError 400, 404.
 */
export async function subjectsOf(
  host: OperatorHost,
  { subject, employer_id, connection_id, carrier_id, bank_account_id, ...person }: Named,
  verb: 'erase' | 'name',
): Promise<readonly string[]> {
  const named = Object.entries({ subject, employer_id, connection_id, carrier_id, bank_account_id })
    .filter(([, value]) => value !== null)
    .map(([field]) => field)
  if (named.length === 0) throw badRequest('subject', `subject ${REQUIRED}`, 'field_missing')
  if (named.length > 1) {
    throw badRequest(named[0]!, `${named.join(' and ')} cannot be given together`)
  }
  if (subject !== null) return [subject]
  if (employer_id !== null) return personsOf(host, employer_id, person)
  const { personalData } = host.app
  if (carrier_id !== null) {
    await loaded(host, carrier, carrier_id, 'carrier')
    return [employerSubject(personalData, carrier_id)]
  }
  if (bank_account_id !== null) {
    const { user_id } = await loaded(host, bankAccount, bank_account_id, 'bank account')
    const own = employerSubject(personalData, bank_account_id)
    if (isSealed(user_id) && subjectOf(user_id) === own) return [own]
    throw badRequest(
      'bank_account_id',
      `bank_account_id names no account with a key of its own: ${verb} its employer, connection or carrier`,
    )
  }
  const connection = await loaded(host, bankConnection, connection_id!, 'bank connection')
  if (connection.employer_id !== null) {
    const why = `connection_id names a connection of an employer: ${verb} the employer`
    throw badRequest('connection_id', why)
  }
  return [connectionSubject(personalData, connection)]
}

async function personsOf(
  host: OperatorHost,
  employerId: string,
  { employee_id, ssn, first_name, last_name }: PersonIdentity,
): Promise<readonly string[]> {
  const identity = { employee_id, ssn, first_name, last_name }
  if (Object.values(identity).every((value) => value === null)) {
    const why = 'employee_id, ssn, or first_name and last_name is required with employer_id'
    throw badRequest('employee_id', why, 'field_missing')
  }
  await loaded(host, employer, employerId, 'employer')
  const found = await personSubjects(host.app, employerId, identity)
  if (found.length === 0) throw notFound('No such data subject', 'subject_not_found')
  return found
}
