import { z } from 'zod'
import {
  carrierInScope,
  employerInScope,
  listCarriersInScope,
  listEmployersInScope,
} from '../../application/parties/parties-in-scope.ts'
import type { ShownEmployer } from '../../application/parties/show-employers.ts'
import { listPoliciesInScope, policyInScope } from '../../application/policies/policies-in-scope.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { accepted, type endpointsOf } from './endpoint.ts'
import { id, idOf, reference, text, word } from './fields.ts'
import { listed, listOf, narrowing } from './lists.ts'
import { NOT_FOUND_CODES, noSuch } from './not-found.ts'
import type { AuthenticatedClient, PartnerHost } from './partner-access.ts'

/** Where partners find the ids that they name elsewhere: the same on every host that they call. */

const environment = z.enum(['live', 'sandbox']).describe('The one of the key')

const Employer = z
  .object({
    employer_id: id().describe('What other operations name as `employer_id`'),
    environment,
    legal_name: z.string().describe('`(erased)` once its personal data were erased'),
    fein_last4: z
      .string()
      .nullable()
      .describe('The last 4 digits of the tax number; null once personal data were erased'),
  })
  .meta({ id: 'PartnerEmployer' })

const policyStatus = word('active', 'in_progress', 'cancelled', 'expired')

const Policy = z
  .object({
    policy_id: id().describe('What other operations name as `policy_id`'),
    policy_number: z.string().describe('What payroll reports name'),
    environment,
    employer_id: id().describe('Whom it insures'),
    carrier_id: id().describe('Who insures'),
    status: policyStatus.describe(
      '`in_progress`: not yet paid for; `expired`: active, and past its expiration date',
    ),
    effective_date: z.string().meta({ format: 'date' }).describe('First day of the term'),
    expiration_date: z.string().meta({ format: 'date' }).describe('Last day of the term'),
    class_codes: z.array(z.string()).describe('Class codes that payroll is reported under'),
    states: z.array(z.string()).describe('States that payroll is reported for, by their two letters'),
    payroll_frequency: z.string().describe('How often payroll is reported, for example `WEEKLY`'),
    billing_type: z
      .enum(['PAY_AS_YOU_GO', 'DIRECT_BILLING'])
      .nullable()
      .describe('Whether premium follows payroll or a plan; null: not said'),
    annual_premium_cents: z.int().nullable().describe('Premium of the term in cents; null: not said'),
  })
  .meta({ id: 'PartnerPolicy' })

const Carrier = z
  .object({
    carrier_id: id().describe('What other operations name as `carrier_id`'),
    name: z.string().describe('Name of the insurer'),
    settlement_type: word('fbo', 'direct')
      .nullable()
      .describe(
        'What tells that a bank payment arrived: matched credits (`fbo`), reports of the processor (`direct`), or nothing (null)',
      ),
  })
  .meta({ id: 'PartnerCarrier' })

const WITHIN = 'Shows what lies within the environment and the scope of the key.'
const of = (what: 'employer' | 'carrier') => narrowing(reference().describe(`Policies of this ${what} only`))

/**
 * Reads of employers, policies and carriers for the endpoints of a host.
 * @param outside how the host refuses what its tenant has and its key does not reach.
 */
export function partyEndpoints<Host extends PartnerHost>(
  endpoint: ReturnType<typeof endpointsOf<Host, AuthenticatedClient>>,
  outside: 'forbidden' | 'not_found',
) {
  type Named = 'employer' | 'policy' | 'carrier'
  const one = <Name extends Named>(what: Name) => ({
    params: z.object({ [`${what}_id`]: idOf(what) } as Record<`${Name}_id`, z.ZodString>),
    errors: { 404: noSuch(what).message },
  })
  const reached = <Found>(what: Named, found: Found | Rejection): Found => {
    const isHidden =
      outside === 'not_found' && (found as Partial<Rejection>).code === (`${what}_out_of_scope` as const)
    return accepted(isHidden ? reject('not_found', NOT_FOUND_CODES[what], noSuch(what).message) : found)
  }
  return [
    endpoint({
      operation: 'listEmployers',
      route: 'GET /employers',
      summary: 'List employers, newest first',
      description: `${WITHIN} A key of some carriers finds the employers that have a policy, in whatever status, of one of them.`,
      ...listOf(Employer),
      handle: ({ host: { app }, caller, query }) =>
        listed(query, (wanted) => listEmployersInScope(app, caller.client, wanted), shownEmployer),
    }),
    endpoint({
      operation: 'showEmployer',
      route: 'GET /employers/{employer_id}',
      summary: 'Show an employer',
      ...one('employer'),
      answers: { 200: Employer },
      refuses: { 403: ['employer_out_of_scope'] },
      handle: async ({ host: { app }, caller, params: { employer_id } }) =>
        shownEmployer(reached('employer', await employerInScope(app, caller.client, employer_id))),
    }),
    endpoint({
      operation: 'listPolicies',
      route: 'GET /policies',
      summary: 'List policies, newest first',
      description: WITHIN,
      ...listOf(Policy, {
        employer_id: of('employer'),
        carrier_id: of('carrier'),
        policy_number: narrowing(text().describe('The policies of this number only')),
        status: narrowing(policyStatus.describe('Policies that read so today')),
      }),
      handle: ({ host: { app }, caller, query }) =>
        listed(query, (wanted) => listPoliciesInScope(app, caller.client, query, wanted)),
    }),
    endpoint({
      operation: 'showPolicy',
      route: 'GET /policies/{policy_id}',
      summary: 'Show a policy',
      ...one('policy'),
      answers: { 200: Policy },
      refuses: { 403: ['policy_out_of_scope'] },
      handle: async ({ host: { app }, caller, params: { policy_id } }) =>
        reached('policy', await policyInScope(app, caller.client, policy_id)),
    }),
    endpoint({
      operation: 'listCarriers',
      route: 'GET /carriers',
      summary: 'List carriers, newest first',
      description: 'Shows those within the scope of the key; they are the same in both environments.',
      ...listOf(Carrier),
      handle: ({ host: { app }, caller, query }) =>
        listed(query, (wanted) => listCarriersInScope(app, caller.client, wanted)),
    }),
    endpoint({
      operation: 'showCarrier',
      route: 'GET /carriers/{carrier_id}',
      summary: 'Show a carrier',
      ...one('carrier'),
      answers: { 200: Carrier },
      refuses: { 403: ['carrier_out_of_scope'] },
      handle: async ({ host: { app }, caller, params: { carrier_id } }) =>
        reached('carrier', await carrierInScope(app, caller.client, carrier_id)),
    }),
  ]
}

/** A tax number may be a person's: its last digits tell employers apart. */
function shownEmployer({ employer_id, environment, legal_name, fein }: ShownEmployer) {
  const fein_last4 = /\d{4}$/.exec(fein)?.[0] ?? null
  return { employer_id, environment, legal_name, fein_last4 }
}
