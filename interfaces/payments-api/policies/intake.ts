import { z } from 'zod'
import { IntakeInterrupted, type IntakeRequest, takeIn } from '../../../application/policies/intake.ts'
import { oneYearLater } from '../../../domain/kernel/calendar.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { readFein } from '../../../domain/parties/fein.ts'
import { createOrFind } from '../../endpoints/creations.ts'
import { date, id, optional, reference, state, text, withDefault, wrongType } from '../../endpoints/fields.ts'
import { HttpError } from '../../http/errors.ts'
import { endpoint, keyed } from '../host/api.ts'

const FEIN = 'must be a string of 9 digits: XX-XXXXXXX, XXXXXXXXX, or XXX-XX-XXXX of a sole proprietor'
const PREMIUM = 'must be a whole number of 1 or more'
const PERCENTAGE = 'must be a number from 0 to 100'
const MAX_OWNERS = 100
/** Its policy ends in the year 9999. */
const LAST_DATE = '9998-12-31'

const employer = z.object({
  legal_name: text(),
  fein: z
    .string(wrongType(FEIN))
    .trim()
    .refine((value) => readFein(value) !== null, FEIN)
    .meta({ pattern: '^\\s*(\\d{2}-?\\d{7}|\\d{3}-\\d{2}-\\d{4})\\s*$' }),
  entity_type: optional(text(100)),
  address: z.object({ line1: text(200), city: text(200), state: text(100), zip: text(20) }),
  contact_name: optional(text(200)),
  contact_email: optional(text(254)).describe('Kept as the contact of the employer, else `email` is'),
  phone: optional(text(50)),
  email: optional(text(254)),
})

const owner = z.object({
  first_name: text(200),
  last_name: text(200),
  ownership_percentage: optional(z.number(wrongType(PERCENTAGE)).min(0, PERCENTAGE).max(100, PERCENTAGE)),
  excluded: withDefault(z.boolean(), false).describe('Whether the officer is excluded from coverage'),
  class_code: optional(text(100)),
  dob: optional(text(40)).describe('Kept for audit'),
  title: optional(text(200)).describe('Kept for audit'),
})

const policy = z.object({
  state: state(),
  class_code: text(100),
  effective_date: date()
    .refine((value) => value <= LAST_DATE, `must not be later than ${LAST_DATE}`)
    .describe('The policy expires one year later; a 29 February on the 28th'),
  annual_premium_cents: z.int(wrongType(PREMIUM)).min(1, PREMIUM),
  policy_number: optional(text(100)).describe('`WC-XXXX-XXXX-XXXX` is assigned when it is left out'),
  el_limit_tier: optional(text(100)).describe('Kept for audit'),
})

const body = z.object({
  idempotency_key: z
    .string()
    .regex(/\S/, 'must not be empty')
    .max(255)
    .describe('Of the tenant and environment; the same again answers the first ids, whatever else is sent'),
  carrier_id: optional(reference()).describe('Required unless the key is for one carrier'),
  employer,
  owners: withDefault(z.array(owner).max(MAX_OWNERS), []),
  policy,
})

const Intake = z.object({ employer_id: id(), policy_id: id() }).meta({ id: 'Intake' })

export const intakeEndpoints = [
  endpoint({
    operation: 'takeInPolicy',
    route: 'POST /intake/policies',
    summary: 'Create an employer and a direct-billing policy in one call',
    description:
      'An employer of the account that has the FEIN is taken as it is. The policy is `in_progress` until a payment link ' +
      'for it is paid.',
    body,
    idempotent: 'The same key and body are answered as the first time; another body is 409',
    answers: { 201: Intake, 200: Intake },
    alsoBare: true,
    errors: {
      404: 'There is no such carrier',
      403: 'The key is not for payments, or not for this carrier or employer',
      409:
        '`fein_conflict`: the FEIN is of an employer of another account. `Conflict`: an active policy has the number, or ' +
        'an employer has the digits of the FEIN, written as a person’s where yours is an employer’s, or the other way round',
      502: 'The intake broke off before both were there; send it again with the same `idempotency_key`',
    },
    refuses: {
      400: ['carrier_id_required', 'invalid_fein', 'term_ends_before_start'],
      403: ['out_of_scope'],
      404: ['carrier_not_found'],
      409: ['fein_conflict', 'fein_notation_conflict', 'policy_number_taken'],
    },
    async handle(call) {
      const { host, caller, body } = call
      try {
        return await createOrFind(keyed(call), 'POST /intake/policies', {
          async create(context) {
            const taken = await takeIn(host.app, caller.client, requestOf(body), context)
            if (isRejection(taken)) return taken
            const { employerId: employer_id, policyId: policy_id, isNew } = taken
            return { isNew, id: policy_id, shown: { employer_id, policy_id } }
          },
        })
      } catch (error) {
        if (!(error instanceof IntakeInterrupted)) throw error
        throw new HttpError(502, null, error.message, { details: { intake_id: error.intakeId } })
      }
    },
  }),
]

function requestOf(sent: z.output<typeof body>): IntakeRequest {
  const { fein, notation } = readFein(sent.employer.fein)!
  return {
    key: sent.idempotency_key,
    carrierId: sent.carrier_id,
    employer: { ...sent.employer, fein },
    feinNotation: notation,
    owners: sent.owners,
    policy: { ...sent.policy, expiration_date: oneYearLater(sent.policy.effective_date) },
  }
}
