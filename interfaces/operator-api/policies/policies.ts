import { z } from 'zod'
import { listPolicies, showPolicy } from '../../../application/policies/list-policies.ts'
import * as policies from '../../../application/policies/policies.ts'
import { type Policy as PolicyState, policy } from '../../../domain/policies/policy.ts'
import { create, created } from '../../endpoints/creations.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { date, id, ofOne, optional, text, wholeNumber, withDefault, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { changeOf, repeating } from '../../endpoints/repeating.ts'
import { contextOf, endpoint, keyed, loaded, type OperatorHost } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { given, whose } from '../host/values.ts'
import { classCodes, fees, locations, payrollFrequency, rates, states } from './policy-terms.ts'

const billingType = word('PAY_AS_YOU_GO', 'DIRECT_BILLING')

const Policy = z
  .object({
    policy_id: id(),
    policy_number: z.string(),
    ...whose,
    status: z
      .enum(['active', 'in_progress', 'cancelled', 'expired'])
      .describe('`expired`: active, and past its expiration date'),
    effective_date: z.string().meta({ format: 'date' }),
    expiration_date: z.string().meta({ format: 'date' }),
    class_codes: z.array(z.string()),
    states: z.array(z.string()),
    locations: z.array(z.object({ id: z.string(), state: z.string() })),
    rates: z.array(z.object({ class_code: z.string(), state: z.string(), rate_per_100: z.string() })),
    payroll_frequency: z.string(),
    fees: z.array(z.object({ label: z.string(), amount_cents: z.int() })),
    billing_type: billingType.nullable(),
    annual_premium_cents: z.int().nullable(),
    overtime_exclusion: z.boolean(),
  })
  .meta({ id: 'Policy' })

/** What may change about a policy. */
const Changes = z.object({
  class_codes: classCodes.nullish(),
  states: states.nullish(),
  locations: locations.nullish(),
  rates: rates.nullish(),
  payroll_frequency: payrollFrequency.nullish(),
  fees: fees.nullish(),
  billing_type: billingType.nullish(),
})

const one = ofOne('policy_id', 'policy')

export const policyEndpoints = [
  endpoint({
    operation: 'issuePolicy',
    route: 'POST /policies',
    summary: 'Issue a policy',
    description:
      'The policy stands in the tenant and environment of its employer. Of two active policies within one tenant and environment, ' +
      'each has a number of its own.',
    body: z.object({
      employer_id: id(),
      carrier_id: id(),
      policy_number: text(100),
      status: withDefault(word('active', 'in_progress'), 'active'),
      effective_date: date(),
      expiration_date: date().describe('Later than the effective date'),
      class_codes: withDefault(classCodes, []),
      states: withDefault(states, []),
      locations: withDefault(locations, []),
      rates: withDefault(rates, []),
      payroll_frequency: withDefault(payrollFrequency, 'WEEKLY'),
      fees: withDefault(fees, []),
      billing_type: optional(billingType),
      annual_premium_cents: optional(wholeNumber()),
      overtime_exclusion: withDefault(z.boolean(), false),
    }),
    ...created(Policy),
    errors: {
      404: 'There is no such employer, or its tenant has no such carrier',
      409: 'An active policy has this number',
    },
    refuses: {
      400: ['term_ends_before_start'],
      404: ['carrier_not_found', 'employer_not_found'],
      409: ['policy_number_taken'],
    },
    handle(call) {
      const { host, body: input } = call
      return create(keyed(call), 'POST /policies', {
        prepare: (context) => policies.prepareIssue(host.app, input, context),
        create: (context, issuing) => policies.issue(host.app, issuing, context),
        idOf: ({ policy_id }) => policy_id,
        show: (one) => today(host, one),
        repeated: async (id) => today(host, (await host.app.commands.loadAt(policy, id, 0)).state!),
      })
    },
  }),
  endpoint({
    operation: 'listPolicies',
    route: 'GET /policies',
    summary: 'List policies, newest first',
    ...listOf(Policy, { ...scope, employer_id: narrowing(id()) }),
    columns:
      'policy_id number:policy_number status from:effective_date to:expiration_date class_codes states annual_premium_cents',
    handle: handleList(listPolicies),
  }),
  endpoint({
    operation: 'showPolicy',
    route: 'GET /policies/{policy_id}',
    summary: 'Show a policy',
    ...one,
    answers: { 200: Policy },
    handle: async ({ host, params }) => today(host, await loaded(host, policy, params.policy_id, 'policy')),
  }),
  endpoint({
    operation: 'changePolicy',
    route: 'PATCH /policies/{policy_id}',
    summary: 'Change terms of a policy',
    description:
      'What is left out or null stays as it is; a `billing_type` of null unsets it. Everything else that a policy has may ' +
      'be repeated, not changed.',
    ...one,
    body: repeating(Policy, Changes),
    answers: { 200: Policy },
    errors: { ...one.errors, 409: 'The policy is cancelled' },
    refuses: { 409: ['policy_cancelled'] },
    async handle(call) {
      const { host } = call
      const present = await loaded(host, policy, call.params.policy_id, 'policy')
      const { billing_type, ...terms } = changeOf(Changes, call, today(host, present))
      const named = Object.entries(terms).filter(([, value]) => value !== null)
      const changes = given({ ...Object.fromEntries(named), billing_type })
      const changed = await policies.change(host.app, present.policy_id, changes, contextOf(call))
      return today(host, accepted(changed))
    },
  }),
  endpoint({
    operation: 'activatePolicy',
    route: 'POST /policies/{policy_id}/activate',
    summary: 'Make a policy active that is in progress',
    description:
      'A payment link that is paid does this by itself; this is for a policy that could not be activated then.',
    ...one,
    answers: { 200: Policy },
    errors: { ...one.errors, 409: 'The policy is cancelled, or another active one has its number' },
    refuses: { 409: ['policy_cancelled', 'policy_number_taken'] },
    async handle(call) {
      const { host } = call
      const { policy_id } = await loaded(host, policy, call.params.policy_id, 'policy')
      return today(host, accepted(await policies.activate(host.app, policy_id, contextOf(call))))
    },
  }),
  endpoint({
    operation: 'cancelPolicy',
    route: 'POST /policies/{policy_id}/cancel',
    summary: 'Cancel a policy and free its number',
    ...one,
    body: z.object({ reason: optional(text()) }),
    answers: { 200: Policy },
    async handle(call) {
      const { host, body } = call
      const { policy_id } = await loaded(host, policy, call.params.policy_id, 'policy')
      return today(host, accepted(await policies.cancel(host.app, policy_id, body.reason, contextOf(call))))
    },
  }),
]

/** A policy with the status it has today. */
function today({ app }: OperatorHost, one: PolicyState) {
  return showPolicy(one, app.clock.now())
}
