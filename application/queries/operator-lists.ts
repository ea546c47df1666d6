import type { Environment } from '../../domain/kernel/ids.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import { type ShownEmployer, showEmployers } from '../parties/show-employers.ts'
import type { Statement } from '../ports/read-database.ts'
import { equalsIfGiven, type Parameter, type Reading, statement } from '../read-models/statement.ts'

/** A page of a list: `page` from 1, `limit` rows on each. */
export interface PageRequest {
  readonly page: number
  readonly limit: number
}

export interface ListPage<Item> {
  readonly items: readonly Item[]
  /** How many there are on all pages. */
  readonly total: number
}

/** What a list is narrowed to; null is everything. */
export interface ListScope {
  readonly tenantId: string | null
  readonly environment: Environment | null
}

/** Rows on a page. */
interface Part {
  readonly limit: number
  readonly offset: number
}

const employersOf = (db: Reading, $: Parameter<ListScope>) =>
  db
    .selectFrom('employers')
    .where((eb) => equalsIfGiven(eb, 'tenant_id', $('tenantId')))
    .where((eb) => equalsIfGiven(eb, 'environment', $('environment')))
const EMPLOYERS = statement('operator-employers', (db, $: Parameter<ListScope & Part>) =>
  employersOf(db, $).select('employer_id as id').orderBy('seq', 'desc').limit($('limit')).offset($('offset')),
)
const EMPLOYER_COUNT = statement('operator-employer-count', (db, $: Parameter<ListScope>) =>
  employersOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
)

/** Employers, newest first. The read model tells which there are; what they are comes from the log. */
export async function listEmployers(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'personalData'>,
  scope: ListScope,
  page: PageRequest,
): Promise<ListPage<ShownEmployer>> {
  await app.readModels.reached(['employers'], await app.log.head())
  const { ids, total } = await idsOf(app, EMPLOYERS, EMPLOYER_COUNT, scope, page)
  const loaded = await Promise.all(ids.map(async (id) => (await app.commands.load(employer, id)).state))
  const employers = loaded.filter((state): state is Employer => state !== null)
  return { items: await showEmployers(app, employers), total }
}

/** What a list of policies is narrowed to. */
interface PolicyScope extends ListScope {
  readonly employerId: string | null
}

const policiesOf = (db: Reading, $: Parameter<PolicyScope>) =>
  db
    .selectFrom('policies')
    .where((eb) => equalsIfGiven(eb, 'tenant_id', $('tenantId')))
    .where((eb) => equalsIfGiven(eb, 'environment', $('environment')))
    .where((eb) => equalsIfGiven(eb, 'employer_id', $('employerId')))
const POLICIES = statement('operator-policies', (db, $: Parameter<PolicyScope & Part>) =>
  policiesOf(db, $).select('policy_id as id').orderBy('seq', 'desc').limit($('limit')).offset($('offset')),
)
const POLICY_COUNT = statement('operator-policy-count', (db, $: Parameter<PolicyScope>) =>
  policiesOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
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

/** Policies, newest first. The read model tells which there are; their terms come from the log. */
export async function listPolicies(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>,
  scope: PolicyScope,
  page: PageRequest,
): Promise<ListPage<ShownPolicy>> {
  await app.readModels.reached(['policies'], await app.log.head())
  const { ids, total } = await idsOf(app, POLICIES, POLICY_COUNT, scope, page)
  const loaded = await Promise.all(ids.map(async (id) => (await app.commands.load(policy, id)).state))
  const now = app.clock.now()
  const policies = loaded.filter((state): state is Policy => state !== null)
  return { items: policies.map((state) => showPolicy(state, now)), total }
}

async function idsOf<Scope>(
  app: Pick<Application, 'read'>,
  list: Statement<Scope & Part, { id: string }>,
  count: Statement<Scope, { total: number }>,
  scope: Scope,
  { page, limit }: PageRequest,
): Promise<{ ids: readonly string[]; total: number }> {
  const [rows, counted] = await Promise.all([
    app.read.query(list, { ...scope, limit, offset: (page - 1) * limit }),
    app.read.query(count, scope),
  ])
  return { ids: rows.map(({ id }) => id), total: counted[0]!.total }
}
