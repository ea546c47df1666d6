import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from '../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../queries/statement.ts'

/** What a list of policies is narrowed to. */
interface PolicyScope extends ListScope {
  readonly employer_id: string | null
}

const POLICIES = pagedList(
  { projection: 'policies', name: 'operator-policies' },
  (db, $: Parameter<PolicyScope>) =>
    db
      .selectFrom('policies')
      .select('policy_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id'))
      .orderBy('seq', 'desc'),
)

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
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  scope: PolicyScope,
  page: PageRequest,
): Promise<ListPage<ShownPolicy>> {
  const { items, total } = await loadPage(app, policy, POLICIES, scope, page)
  const now = app.clock.now()
  return { items: items.map((state) => showPolicy(state, now)), total }
}
