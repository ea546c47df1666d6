import { carriers, policies as policiesTable } from '../../application/policies/policies-table.ts'
import { CarrierRegistered } from '../../domain/parties/carrier.ts'
import {
  PolicyActivated,
  PolicyCancelled,
  PolicyIssued,
  PolicyTermsChanged,
} from '../../domain/policies/policy.ts'
import { projection } from '../runtime/projection.ts'

/** Policies of an employer as they are listed and described, and the carriers whose names they show. */
export const policies = projection({
  name: 'policies',
  version: 4,
  tables: [policiesTable, carriers],
  handlers: (on) => [
    on(PolicyIssued, {
      apply: ({ data, position }, { policies }) =>
        policies.put({ ...data, fee_count: data.fees.length, seq: position }),
    }),
    on(PolicyTermsChanged, {
      reads: ({ data }) => ({ policies: [[data.policy_id]] }),
      apply({ data }, { policies }) {
        const { policy_id, rates: _rates, ...terms } = data
        policies.change([policy_id], terms.fees ? { ...terms, fee_count: terms.fees.length } : terms)
      },
    }),
    on(PolicyCancelled, {
      reads: ({ data }) => ({ policies: [[data.policy_id]] }),
      apply: ({ data }, { policies }) => policies.change([data.policy_id], { status: 'cancelled' }),
    }),
    on(PolicyActivated, {
      reads: ({ data }) => ({ policies: [[data.policy_id]] }),
      apply: ({ data }, { policies }) => policies.change([data.policy_id], { status: 'active' }),
    }),
    on(CarrierRegistered, {
      apply: ({ data, position }, { carriers }) => carriers.put({ ...data, seq: position }),
    }),
  ],
})
