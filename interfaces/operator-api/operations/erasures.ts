import { z } from 'zod'
import { connectionSubject, employerSubject } from '../../../application/commands/sealing.ts'
import {
  dataKeysToErase,
  eraseSubject,
  type PersonIdentity,
  personSubjects,
} from '../../../application/operations/erasure.ts'
import { bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import { bankConnection } from '../../../domain/banking/linking/bank-connection.ts'
import { isSealed, subjectOf } from '../../../domain/kernel/sealed.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { Answer, accepted } from '../../endpoints/endpoint.ts'
import { REQUIRED } from '../../endpoints/faults.ts'
import { id, optional, text, withDefault } from '../../endpoints/fields.ts'
import { badRequest, contextOf, endpoint, loaded, notFound, type OperatorHost } from '../host/api.ts'
import { forSecond, PendingAction } from '../host/second-operator.ts'
import { dataSubject, reason } from '../host/values.ts'

const subjects = {
  subject: z.string().describe('The first of them'),
  subjects: z.array(z.string()).readonly(),
}

const body = z.object({
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
  reason: reason(),
  dry_run: withDefault(z.boolean(), false).describe('Only say how many data keys it would destroy'),
})

export const erasureEndpoints = [
  endpoint({
    operation: 'erase',
    route: 'POST /erasures',
    summary:
      'Destroy the data key of a person, an employer, a bank connection, a carrier or a bank account; there is no way back',
    description:
      'Names a `subject`, or with `employer_id` what is known of a person: `employee_id`, `ssn`, or first and last name. ' +
      'All data subjects that these lead to are erased. `connection_id`, `carrier_id` or `bank_account_id` alone name ' +
      'what has no employer; a connection with one is erased with the employer.',
    body,
    example: { subject: 'employer/66838f2a5b1c4d7e9f012345', dry_run: true },
    answers: {
      200: z
        .object({ ...subjects, data_keys: z.int(), erased: z.literal(false), dry_run: z.literal(true) })
        .meta({ id: 'ErasureDryRun' }),
      201: z.object({ ...subjects, erased: z.literal(true) }).meta({ id: 'Erasure' }),
      202: PendingAction,
    },
    errors: { 400: 'Who is to be erased is not named, or twice', 404: 'There is no such data subject' },
    command: { name: 'erase', operands: ['subject'] },
    refuses: {
      400: ['invalid_subject'],
      404: ['bank_connection_not_found', 'employer_not_found', 'subject_not_found'],
    },
    async handle(call) {
      const { app } = call.host
      const subjects = await subjectsOf(call.host, call.body)
      const subject = subjects[0]!
      if (call.body.dry_run) {
        let data_keys = 0
        for (const one of subjects) data_keys += accepted(await dataKeysToErase(app, one))
        return new Answer(200, { subject, subjects, data_keys, erased: false, dry_run: true })
      }
      if (call.host.services.needsSecondOperator) {
        for (const one of subjects) accepted(await dataKeysToErase(app, one))
        return forSecond(call, { operation: 'erase', targets: subjects, reason: call.body.reason ?? null })
      }
      for (const one of subjects) accepted(await eraseSubject(app, one, call.body.reason, contextOf(call)))
      return new Answer(201, { subject, subjects, erased: true })
    },
  }),
]

/** The data subject that is named, or those that a person of an employer stands under. @throws HttpError 400, 404. */
async function subjectsOf(
  host: OperatorHost,
  {
    subject,
    employer_id,
    connection_id,
    carrier_id,
    bank_account_id,
    reason: _why,
    ...person
  }: z.output<typeof body>,
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
      'bank_account_id names no account with a key of its own: erase its employer, connection or carrier',
    )
  }
  const connection = await loaded(host, bankConnection, connection_id!, 'bank connection')
  if (connection.employer_id !== null) {
    throw badRequest('connection_id', 'connection_id names a connection of an employer: erase the employer')
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
