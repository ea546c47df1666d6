import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { newYorkDate } from '../kernel/new-york.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/** A workers' compensation policy: the terms that payroll is held against and premium is computed by. */
const billingType = z.enum(['PAY_AS_YOU_GO', 'DIRECT_BILLING']).nullable()

/** What may change during the term of a policy. */
const policyTerms = z.object({
  class_codes: z.array(z.string()),
  /** 2-letter, upper case. */
  states: z.array(z.string()),
  locations: z.array(z.object({ id: z.string(), state: z.string() })),
  /** Dollars of premium per 100 dollars of wages, as a decimal string. */
  rates: z.array(z.object({ class_code: z.string(), state: z.string(), rate_per_100: z.string() })),
  /** An upper-case word, for example `WEEKLY`. */
  payroll_frequency: z.string(),
  fees: z.array(z.object({ label: z.string(), amount_cents: z.number().int() })),
  billing_type: billingType,
})
export type PolicyTerms = z.output<typeof policyTerms>

export const PolicyIssued = eventType(
  'PolicyIssued',
  policyTerms.extend({
    policy_id: id(),
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    carrier_id: id(),
    policy_number: z.string(),
    status: z.enum(['active', 'in_progress']),
    effective_date: z.string(),
    expiration_date: z.string(),
    annual_premium_cents: z.number().int().nullable(),
    overtime_exclusion: z.boolean(),
  }),
)
export const PolicyTermsChanged = eventType(
  'PolicyTermsChanged',
  policyTerms.partial().extend({ policy_id: id() }),
)
export const PolicyCancelled = eventType('PolicyCancelled', {
  policy_id: id(),
  reason: z.string().nullable(),
})

export const PolicyActivated = eventType('PolicyActivated', { policy_id: id() })
/** The policy was paid for, or asked for otherwise, and still is not active: an operator must see to it. */
export const PolicyNotActivated = eventType('PolicyNotActivated', {
  policy_id: id(),
  reason: z.enum(['policy_cancelled', 'policy_number_taken']),
  /** The policy that has the number, where that is the reason. */
  holder_policy_id: id().nullable(),
})

const events = [
  PolicyIssued,
  PolicyTermsChanged,
  PolicyCancelled,
  PolicyActivated,
  PolicyNotActivated,
] as const
export type PolicyEvent = EventOf<(typeof events)[number]>
export interface Policy extends Omit<z.output<typeof PolicyIssued.schema>, 'status'> {
  readonly status: 'active' | 'in_progress' | 'cancelled'
}

/** A policy's status on a day: an active policy past its expiration date reads `expired`. */
export function statusOn(
  policy: Pick<Policy, 'status' | 'expiration_date'>,
  epochMs: number,
): Policy['status'] | 'expired' {
  return policy.status === 'active' && policy.expiration_date < newYorkDate(epochMs)
    ? 'expired'
    : policy.status
}

/** Whether a policy no longer has a claim to its number. One in progress that has it is about to become active. */
export function hasLostNumber(
  { status, expiration_date }: Pick<Policy, 'status' | 'expiration_date'>,
  epochMs: number,
): boolean {
  return status === 'cancelled' || expiration_date < newYorkDate(epochMs)
}

export type PolicyCommand =
  | { readonly type: 'Issue'; readonly data: z.output<typeof PolicyIssued.schema> }
  | { readonly type: 'ChangeTerms'; readonly terms: Partial<PolicyTerms> }
  | { readonly type: 'Cancel'; readonly reason: string | null }
  /** Its number is reserved before. */
  | { readonly type: 'Activate' }
  | {
      readonly type: 'RecordNotActivated'
      readonly reason: z.output<typeof PolicyNotActivated.schema>['reason']
      readonly holderPolicyId: string | null
    }

export const policy: Decider<Policy | null, PolicyCommand, PolicyEvent> = {
  category: 'policy',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'PolicyIssued':
        return event.data
      case 'PolicyTermsChanged':
        return { ...state!, ...event.data }
      case 'PolicyCancelled':
        return { ...state!, status: 'cancelled' }
      case 'PolicyActivated':
        return { ...state!, status: 'active' }
      case 'PolicyNotActivated':
        return state
    }
  },
  decide(command, state): readonly PolicyEvent[] | Rejection {
    if (command.type === 'Issue') {
      if (state) return reject('conflict', 'policy_exists', 'The policy exists already')
      return [PolicyIssued.of(command.data)]
    }
    if (!state) return reject('not_found', 'policy_not_found', 'No such policy')
    const { policy_id } = state
    if (command.type === 'Cancel') {
      return state.status === 'cancelled' ? [] : [PolicyCancelled.of({ policy_id, reason: command.reason })]
    }
    if (command.type === 'RecordNotActivated') {
      const { reason, holderPolicyId: holder_policy_id } = command
      return [PolicyNotActivated.of({ policy_id, reason, holder_policy_id })]
    }
    if (command.type === 'Activate') {
      if (state.status === 'active') return []
      return state.status === 'cancelled' ? policyCancelled() : [PolicyActivated.of({ policy_id })]
    }
    if (state.status === 'cancelled') {
      return reject('conflict', 'policy_cancelled', 'The policy is cancelled; its terms no longer change')
    }
    const terms = changedTerms(command.terms, state)
    return Object.keys(terms).length === 0 ? [] : [PolicyTermsChanged.of({ policy_id, ...terms })]
  },
}

/** Why a policy does not become active. */
function policyCancelled(): Rejection {
  return reject('conflict', 'policy_cancelled', 'The policy is cancelled')
}

/** Those of the named terms that are not as they stand already: a repeated change changes nothing. */
function changedTerms(named: Partial<PolicyTerms>, present: PolicyTerms): Partial<PolicyTerms> {
  return Object.fromEntries(
    Object.entries(named).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(present[name as keyof PolicyTerms]),
    ),
  )
}
