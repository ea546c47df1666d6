import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { ListPage } from '../ports/read-database.ts'
import { OF_TENANT, operatorList } from '../queries/lists.ts'

const POLICIES = operatorList(policy, {
  projection: 'policies',
  table: 'policies',
  id: 'policy_id',
  by: [...OF_TENANT, 'employer_id'],
})

/** A policy with the status it has today. */
export type ShownPolicy = Omit<Policy, 'status'> & { readonly status: Policy['status'] | 'expired' }

/** A policy as of a moment in epoch milliseconds: what it is and whose, then its terms. */
export function showPolicy(state: Policy, now: number): ShownPolicy {
  const { policy_id, policy_number, tenant_id, environment, employer_id, carrier_id, ...rest } = state
  const { status: _status, effective_date, expiration_date, ...terms } = rest
  const whose = { tenant_id, environment, employer_id, carrier_id }
  const term = { status: statusOn(state, now), effective_date, expiration_date }
  return { policy_id, policy_number, ...whose, ...term, ...terms }
}

/** Policies, newest first. */
export async function listPolicies(
  ...[app, scope, page]: Parameters<typeof POLICIES>
): Promise<ListPage<ShownPolicy>> {
  const { items, total } = await POLICIES(app, scope, page)
  const now = app.clock.now()
  return { items: items.map((state) => showPolicy(state, now)), total }
}
