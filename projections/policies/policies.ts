import { carriers, policies as policiesTable } from '../../application/policies/policies-table.ts'
import { CarrierRegistered } from '../../domain/parties/carrier.ts'
import {
  PolicyActivated,
  PolicyCancelled,
  PolicyIssued,
  PolicyTermsChanged,
} from '../../domain/policies/policy.ts'
import { changing, projection } from '../runtime/projection.ts'

const ofPolicy = changing(policiesTable)

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
    ofPolicy(PolicyTermsChanged, ({ data: { policy_id: _id, rates: _rates, ...terms } }) =>
      terms.fees ? { ...terms, fee_count: terms.fees.length } : terms,
    ),
    ofPolicy(PolicyCancelled, () => ({ status: 'cancelled' })),
    ofPolicy(PolicyActivated, () => ({ status: 'active' })),
    on(CarrierRegistered, {
      apply: ({ data, position }, { carriers }) => carriers.put({ ...data, seq: position }),
    }),
  ],
})
