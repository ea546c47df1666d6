import { z } from 'zod'
import { dataKeysToErase, eraseSubject, personSubjects } from '../../application/operations/erasure.ts'
import { employer } from '../../domain/parties/employer.ts'
import { Answer, accepted } from '../endpoints/endpoint.ts'
import { REQUIRED } from '../endpoints/faults.ts'
import { id, optional, text, withDefault } from '../endpoints/fields.ts'
import { badRequest, contextOf, endpoint, loaded, notFound, type OperatorHost, operator } from './api.ts'

const subjects = {
  subject: z.string().describe('The first of them'),
  subjects: z.array(z.string()).readonly(),
}

const body = z.object({
  subject: optional(
    z.string().regex(/^(?:person|employer)\/[0-9a-f]{24}$/, 'must be person/<24 hex> or employer/<24 hex>'),
  ).describe('`person/<24 hex>` or `employer/<24 hex>`'),
  employer_id: optional(id()).describe('Instead: a person by what the reports of this employer say'),
  employee_id: optional(text()),
  ssn: optional(text()),
  first_name: optional(text()),
  last_name: optional(text()),
  dry_run: withDefault(z.boolean(), false).describe('Only say how many data keys it would destroy'),
})

export const erasureEndpoints = [
  endpoint({
    operation: 'erase',
    method: 'POST',
    path: '/erasures',
    summary: 'Destroy the data key of a person or an employer; there is no way back',
    description:
      'Names a `subject`, or with `employer_id` what is known of a person: `employee_id`, `ssn`, or first and last name. ' +
      'All data subjects that these lead to are erased.',
    access: operator,
    body,
    answers: {
      200: z
        .object({ ...subjects, data_keys: z.int(), erased: z.literal(false), dry_run: z.literal(true) })
        .meta({ id: 'ErasureDryRun' }),
      201: z.object({ ...subjects, erased: z.literal(true) }).meta({ id: 'Erasure' }),
    },
    errors: { 400: 'Who is to be erased is not named, or twice', 404: 'There is no such data subject' },
    command: { name: 'erase', operands: ['subject'] },
    async handle(call) {
      const { app } = call.host
      const subjects = await subjectsOf(call.host, call.body)
      const subject = subjects[0]!
      if (call.body.dry_run) {
        let data_keys = 0
        for (const one of subjects) data_keys += accepted(await dataKeysToErase(app, one))
        return new Answer(200, { subject, subjects, data_keys, erased: false, dry_run: true })
      }
      for (const one of subjects) accepted(await eraseSubject(app, one, contextOf(call)))
      return new Answer(201, { subject, subjects, erased: true })
    },
  }),
]

/** The data subject that is named, or those that a person of an employer stands under. @throws HttpError 400, 404. */
async function subjectsOf(
  host: OperatorHost,
  { subject, employer_id, employee_id, ssn, first_name, last_name }: z.output<typeof body>,
): Promise<readonly string[]> {
  if (employer_id === null) {
    if (subject === null) throw badRequest(`subject ${REQUIRED}`)
    return [subject]
  }
  if (subject !== null) throw badRequest('subject and employer_id cannot be given together')
  const identity = { employeeId: employee_id, ssn, firstName: first_name, lastName: last_name }
  if (Object.values(identity).every((value) => value === null)) {
    throw badRequest('employee_id, ssn, or first_name and last_name is required with employer_id')
  }
  await loaded(host, employer, employer_id, 'employer')
  const found = await personSubjects(host.app, employer_id, identity)
  if (found.length === 0) throw notFound('No such data subject')
  return found
}
