import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import {
  type ListPage,
  type ListScope,
  type PagePart,
  type PageRequest,
  readPage,
} from '../read-models/pages.ts'
import {
  equalsIfGiven,
  isOfTenant,
  type Parameter,
  type Reading,
  statement,
} from '../read-models/statement.ts'

/** What a list of policies is narrowed to. */
interface PolicyScope extends ListScope {
  readonly employerId: string | null
}

const policiesOf = (db: Reading, $: Parameter<PolicyScope>) =>
  db
    .selectFrom('policies')
    .where((eb) => isOfTenant(eb, $))
    .where((eb) => equalsIfGiven(eb, 'employer_id', $('employerId')))
const POLICIES = {
  projection: 'policies',
  rows: statement('operator-policies', (db, $: Parameter<PolicyScope & PagePart>) =>
    policiesOf(db, $).select('policy_id').orderBy('seq', 'desc').limit($('limit')).offset($('offset')),
  ),
  count: statement('operator-policy-count', (db, $: Parameter<PolicyScope>) =>
    policiesOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
  ),
}

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

/** Policies, newest first. The read model tells which there are; their terms come from the log. */
export async function listPolicies(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  scope: PolicyScope,
  page: PageRequest,
): Promise<ListPage<ShownPolicy>> {
  const { items, total } = await readPage(app, POLICIES, scope, page)
  const loaded = await Promise.all(items.map(({ policy_id }) => app.commands.load(policy, policy_id)))
  const now = app.clock.now()
  const policies = loaded.map(({ state }) => state).filter((state): state is Policy => state !== null)
  return { items: policies.map((state) => showPolicy(state, now)), total }
}
