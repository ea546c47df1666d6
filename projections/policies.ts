import { CarrierRegistered } from '../domain/parties/carrier.ts'
import { PolicyCancelled, PolicyIssued, PolicyTermsChanged } from '../domain/policies/policy.ts'
import { on, type Projection } from './runtime/projection.ts'

/** Policies of an employer as they are listed and described, and the carriers whose names they show. */
export const policies: Projection = {
  name: 'policies',
  version: 1,
  tables: [
    {
      name: 'policies',
      key: ['policy_id'],
      columns: {
        policy_id: 'text',
        tenant_id: 'text',
        environment: 'text',
        employer_id: 'text',
        carrier_id: 'text',
        policy_number: 'text',
        /** `active`, `in_progress` or `cancelled`; whether an active one is expired depends on the day. */
        status: 'text',
        effective_date: 'date',
        expiration_date: 'date',
        class_codes: 'jsonb',
        states: 'jsonb',
        /** `{ id, state }` each. */
        locations: 'jsonb',
        payroll_frequency: 'text',
        /** `{ label, amount_cents }` each. */
        fees: 'jsonb',
        fee_count: 'integer',
        billing_type: 'text',
        /** Order of issue. */
        seq: 'bigint',
      },
      indexes: [['employer_id', 'seq']],
    },
    {
      name: 'carriers',
      key: ['carrier_id'],
      columns: { carrier_id: 'text', tenant_id: 'text', name: 'text' },
    },
  ],
  handlers: [
    on(PolicyIssued, {
      apply({ data, position }, { policies }) {
        const {
          annual_premium_cents: _premium,
          overtime_exclusion: _overtime,
          rates: _rates,
          ...shown
        } = data
        policies!.put({ ...shown, fee_count: data.fees.length, seq: position })
      },
    }),
    on(PolicyTermsChanged, {
      reads: ({ data }) => ({ policies: [[data.policy_id]] }),
      apply({ data }, { policies }) {
        const { policy_id, rates: _rates, ...terms } = data
        policies!.change([policy_id], terms.fees ? { ...terms, fee_count: terms.fees.length } : terms)
      },
    }),
    on(PolicyCancelled, {
      reads: ({ data }) => ({ policies: [[data.policy_id]] }),
      apply: ({ data }, { policies }) => policies!.change([data.policy_id], { status: 'cancelled' }),
    }),
    on(CarrierRegistered, {
      apply: ({ data: { carrier_id, tenant_id, name } }, { carriers }) =>
        carriers!.put({ carrier_id, tenant_id, name }),
    }),
  ],
}
