import { describe, expect, test } from 'vitest'
import { fold } from '../../domain/kernel/decider.ts'
import { type PolicyCommand, PolicyIssued, PolicyTermsChanged, policy } from '../../domain/policies/policy.ts'

const ID = 'a'.repeat(24)
const issued = PolicyIssued.of({
  ...{ policy_id: ID, tenant_id: ID, environment: 'live', employer_id: ID, carrier_id: ID },
  ...{ policy_number: 'WC-1', status: 'active', effective_date: '2026-01-01', expiration_date: '2026-12-31' },
  ...{ class_codes: ['8810'], states: ['CA'], locations: [], rates: [], payroll_frequency: 'WEEKLY' },
  ...{ fees: [], billing_type: null, annual_premium_cents: null, overtime_exclusion: false },
})

describe('a change of terms', () => {
  const change: PolicyCommand = {
    type: 'ChangeTerms',
    terms: { states: ['NV'], payroll_frequency: 'WEEKLY' },
  }

  test('carries only what changes', () => {
    expect(policy.decide(change, fold(policy, [issued]))).toEqual([
      PolicyTermsChanged.of({ policy_id: ID, states: ['NV'] }),
    ])
  })

  test('that has been made already changes nothing', () => {
    const once = fold(policy, [issued, PolicyTermsChanged.of({ policy_id: ID, states: ['NV'] })])
    expect(policy.decide(change, once)).toEqual([])
  })
})
