import { newYorkDate } from '../../domain/kernel/new-york.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { policy } from '../../domain/policies/policy.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../access/owned-by.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isWithinKey, keyScope, type KeyScope as ListedScope, loadPage, pagedList } from '../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../queries/statement.ts'
import { type ShownPolicy, showPolicy } from './list-policies.ts'

/** What a list of policies is narrowed to; null is everything. */
interface PolicyFilter {
  readonly employer_id: string | null
  readonly carrier_id: string | null
  readonly policy_number: string | null
  /** As it reads today. */
  readonly status: ShownPolicy['status'] | null
}

interface PolicyScope extends ListedScope, PolicyFilter {
  /** `YYYY-MM-DD`: active policies that expire before it read `expired`. */
  readonly today: string
  readonly active: 'active'
  readonly expired: 'expired'
}

const POLICIES = pagedList(
  { projection: 'policies', name: 'policies-in-scope' },
  (db, $: Parameter<PolicyScope>) =>
    db
      .selectFrom('policies')
      .select('policy_id as id')
      .where((eb) => isWithinKey(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'carrier_id', 'policy_number'))
      .where((eb) => {
        const isOver = eb.and([eb('status', '=', $('active')), eb('expiration_date', '<', $('today'))])
        const wanted = eb.cast<string | null>($('status'), 'text')
        return eb.or([
          eb(wanted, 'is', null),
          eb.and([isOver, eb(wanted, '=', $('expired'))]),
          eb.and([eb.not(isOver), eb(eb.cast<string | null>('status', 'text'), '=', wanted)]),
        ])
      })
      .orderBy('seq', 'desc'),
)

/** The policies within the scope of a key, newest first, with the status that each has today. */
export async function listPoliciesInScope(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  client: KeyScope,
  filter: PolicyFilter,
  page: PageRequest,
): Promise<ListPage<ShownPolicy>> {
  const now = app.clock.now()
  const scope: PolicyScope = {
    ...keyScope(client),
    ...filter,
    today: newYorkDate(now),
    active: 'active',
    expired: 'expired',
  }
  const { items, total } = await loadPage(app, policy, POLICIES, scope, page)
  return { items: items.map((one) => showPolicy(one, now)), total }
}

/** A policy that a partner names, with the status that it has today. */
export async function policyInScope(
  app: Pick<Application, 'commands' | 'clock'>,
  client: KeyScope,
  policyId: string,
): Promise<ShownPolicy | Rejection> {
  const found = await ownedBy(client, await stateOf(app, policy, policyId), 'policy', (one) =>
    mayReach(client, one),
  )
  return isRejection(found) ? found : showPolicy(found, app.clock.now())
}
