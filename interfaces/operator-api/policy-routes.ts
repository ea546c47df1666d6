import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { listPolicies, type ShownPolicy, showPolicy } from '../../application/policies/list-policies.ts'
import * as policies from '../../application/policies/policies.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { type Policy, type PolicyTerms, policy } from '../../domain/policies/policy.ts'
import type { Route } from '../http/server.ts'
import { badRequest, type Fields } from './fields.ts'
import { listAnswer, pageOf, scopeOf } from './old-lists.ts'
import { accepted, creation, notFound, type OperatorHost, operation } from './operations.ts'

const STATE = /^[A-Z]{2}$/
const RATE = /^\d{1,6}(?:\.\d{1,6})?$/
const FREQUENCY = /^[A-Z]+(?:_[A-Z]+)*$/
const MAX_RATES = 2000
const MAX_POLICY_NUMBER = 100
const BILLING_TYPES = ['PAY_AS_YOU_GO', 'DIRECT_BILLING'] as const

/** Fields of a policy that stay as they were issued. */
const FIXED = [
  'policy_id',
  'tenant_id',
  'environment',
  'employer_id',
  'carrier_id',
  'policy_number',
  'status',
  'effective_date',
  'expiration_date',
  'annual_premium_cents',
  'overtime_exclusion',
] as const satisfies readonly (keyof Policy)[]

/** Policies: issue, change of terms, cancellation. */
export function policyRoutes(host: OperatorHost): readonly Route[] {
  const { app } = host
  return [
    creation(host, {
      path: '/policies',
      parse: (fields) => ({
        employerId: fields.id('employer_id'),
        carrierId: fields.id('carrier_id'),
        policyNumber: fields.text('policy_number', MAX_POLICY_NUMBER),
        status: fields.word('status', ['active', 'in_progress'], 'active'),
        effectiveDate: fields.date('effective_date'),
        expirationDate: fields.date('expiration_date'),
        terms: allTerms(fields),
        annualPremiumCents: fields.optionalWholeNumber('annual_premium_cents'),
        overtimeExclusion: fields.flag('overtime_exclusion', false),
      }),
      refuse: (input, context) => policies.refuseIssue(app, input, context),
      create: (input, context: CommandContext) => policies.issue(app, input, context),
      idOf: ({ policy_id }) => policy_id,
      show,
      repeated: { by: async (id) => show((await app.commands.loadAt(policy, id, 0)).state!) },
    }),
    operation(host, 'GET', '/policies', async (call) => {
      const page = pageOf(call.query)
      const employerId = call.query.get('employer_id') ?? null
      if (employerId !== null && !isId(employerId)) throw badRequest('employer_id must be an id')
      return listAnswer(page, await listPolicies(app, { ...scopeOf(call.query), employerId }, page))
    }),
    operation(host, 'GET', '/policies/:policy_id', async (call) => ({
      data: show(await policyOf(call.parameter('policy_id'))),
    })),
    operation(host, 'PATCH', '/policies/:policy_id', async (call) => {
      const { fields } = await call.body()
      const terms = givenTerms(fields)
      const present = await policyOf(call.parameter('policy_id'))
      for (const name of FIXED) {
        if (fields.has(name) && fields.raw(name) !== show(present)[name]) {
          throw badRequest(`${name} cannot be changed`)
        }
      }
      return { data: show(accepted(await policies.change(app, present.policy_id, terms, call.context()))) }
    }),
    operation(host, 'POST', '/policies/:policy_id/cancel', async (call) => {
      const { fields } = await call.body()
      const reason = fields.optionalText('reason')
      const present = await policyOf(call.parameter('policy_id'))
      return { data: show(accepted(await policies.cancel(app, present.policy_id, reason, call.context()))) }
    }),
  ]

  async function policyOf(id: string): Promise<Policy> {
    const found = isId(id) ? (await app.commands.load(policy, id)).state : null
    if (!found) throw notFound('There is no such policy')
    return found
  }

  /** A policy with the status it has today. */
  function show(state: Policy): ShownPolicy {
    return showPolicy(state, app.clock.now())
  }
}

function allTerms(fields: Fields): PolicyTerms {
  return {
    class_codes: [...fields.texts('class_codes')],
    states: states(fields),
    locations: locations(fields),
    rates: rates(fields),
    payroll_frequency: frequency(fields) ?? 'WEEKLY',
    fees: fees(fields),
    billing_type: fields.optionalWord('billing_type', BILLING_TYPES),
  }
}

/** The terms that a change names; null unsets the billing type and leaves everything else alone. */
function givenTerms(fields: Fields): Partial<PolicyTerms> {
  const terms: Partial<PolicyTerms> = {}
  const given = (name: keyof PolicyTerms) => fields.raw(name) !== null
  if (given('class_codes')) terms.class_codes = [...fields.texts('class_codes')]
  if (given('states')) terms.states = states(fields)
  if (given('locations')) terms.locations = locations(fields)
  if (given('rates')) terms.rates = rates(fields)
  if (given('payroll_frequency')) terms.payroll_frequency = frequency(fields)!
  if (given('fees')) terms.fees = fees(fields)
  if (fields.has('billing_type')) terms.billing_type = fields.optionalWord('billing_type', BILLING_TYPES)
  return terms
}

function states(fields: Fields): string[] {
  const found = fields.texts('states').map((value, index) => {
    const state = value.toUpperCase()
    if (!STATE.test(state)) fields.fail(`states[${index}]`, 'must be a 2-letter state abbreviation')
    return state
  })
  return [...new Set(found)]
}

function stateOf(fields: Fields): string {
  const state = fields.text('state').toUpperCase()
  if (!STATE.test(state)) fields.fail('state', 'must be a 2-letter state abbreviation')
  return state
}

function locations(fields: Fields): PolicyTerms['locations'] {
  return fields.objects('locations', (location) => ({ id: location.text('id'), state: stateOf(location) }))
}

function rates(fields: Fields): PolicyTerms['rates'] {
  const known = new Set<string>()
  return fields.objects(
    'rates',
    (rate) => {
      const class_code = rate.text('class_code')
      const state = stateOf(rate)
      const rate_per_100 = rate.raw('rate_per_100')
      if (typeof rate_per_100 !== 'string' || !RATE.test(rate_per_100)) {
        return rate.fail(
          'rate_per_100',
          'must be a decimal as a string, like "0.35", with at most 6 decimals',
        )
      }
      const key = JSON.stringify([class_code, state])
      if (known.has(key)) rate.fail('class_code', `has two rates in ${state}`)
      known.add(key)
      return { class_code, state, rate_per_100 }
    },
    MAX_RATES,
  )
}

function fees(fields: Fields): PolicyTerms['fees'] {
  return fields.objects('fees', (fee) => ({
    label: fee.text('label'),
    amount_cents: fee.wholeNumber('amount_cents'),
  }))
}

function frequency(fields: Fields): string | null {
  const word = fields.optionalText('payroll_frequency', 40)?.toUpperCase()
  if (word === undefined) return null
  if (!FREQUENCY.test(word)) fields.fail('payroll_frequency', 'must be an upper-case word, like WEEKLY')
  return word
}
