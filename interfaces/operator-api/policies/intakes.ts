import { z } from 'zod'
import { listIntakes } from '../../../application/operations/list-kept-things.ts'
import { type Intake, intake } from '../../../domain/policies/intake.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner } from '../host/values.ts'

const STATUSES = ['received', 'unfinished', 'completed'] as const

const ShownIntake = z
  .object({
    intake_id: id().describe('Of the call'),
    ...owner,
    carrier_id: id(),
    employer_id: id().describe('The employer that the FEIN is reserved for'),
    policy_id: id().nullable().describe('Null until both employer and policy are there'),
    policy_number: z.string(),
    status: z
      .enum(STATUSES)
      .describe(
        '`unfinished`: it broke off and was not sent again; the employer may be there without the policy',
      ),
  })
  .meta({ id: 'OperatorIntake' })

export const intakeEndpoints = [
  endpoint({
    operation: 'listIntakes',
    route: 'GET /intakes',
    summary: 'List calls that took in an employer and its policy, newest first',
    description: 'Who was named in one is not shown. What was refused is not kept.',
    ...listOf(ShownIntake, {
      ...scope,
      employer_id: narrowing(id()),
      status: narrowing(word(...STATUSES)),
    }),
    columns: 'intake_id environment status policy_number employer_id policy_id',
    handle: handleList(listIntakes, shown),
  }),
  endpoint({
    operation: 'showIntake',
    route: 'GET /intakes/{intake_id}',
    summary: 'Show a call that took in an employer and its policy',
    ...ofOne('intake_id', 'intake'),
    answers: { 200: ShownIntake },
    handle: async ({ host, params }) => shown(await loaded(host, intake, params.intake_id, 'intake')),
  }),
]

function shown({ received, completed, isReportedUnfinished }: Intake) {
  const { intake_id, tenant_id, environment, carrier_id, employer_id, policy } = received
  const open = isReportedUnfinished ? 'unfinished' : 'received'
  return {
    intake_id,
    tenant_id,
    environment,
    carrier_id,
    employer_id,
    policy_id: completed?.policy_id ?? null,
    policy_number: policy.policy_number,
    status: completed ? 'completed' : open,
  } as const
}
