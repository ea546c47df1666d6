import { z } from 'zod'
import { dataKeysToErase, eraseSubject } from '../../../application/operations/erasure.ts'
import { Answer, accepted } from '../../endpoints/endpoint.ts'
import { withDefault } from '../../endpoints/fields.ts'
import { contextOf, endpoint } from '../host/api.ts'
import { forSecond, PendingAction } from '../host/second-operator.ts'
import { reason } from '../host/values.ts'
import { namedSubjects, subjectsOf } from './named-subjects.ts'

const subjects = {
  subject: z.string().describe('The first of them'),
  subjects: z.array(z.string()).readonly(),
}

const body = z.object({
  ...namedSubjects,
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
      const subjects = await subjectsOf(call.host, call.body, 'erase')
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
