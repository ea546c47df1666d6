import type { Environment } from '../../domain/kernel/ids.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import { type ShownEmployer, showEmployers } from '../parties/show-employers.ts'
import type { Statement } from '../ports/read-database.ts'

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

const OF_SCOPE = '($1::text IS NULL OR tenant_id = $1) AND ($2::text IS NULL OR environment = $2)'

const EMPLOYERS: Statement = {
  name: 'operator-employers',
  text: `SELECT employer_id AS id FROM read_model.employers WHERE ${OF_SCOPE} ORDER BY seq DESC LIMIT $3 OFFSET $4`,
}
const EMPLOYER_COUNT: Statement = {
  name: 'operator-employer-count',
  text: `SELECT count(*) AS total FROM read_model.employers WHERE ${OF_SCOPE}`,
}

/** Employers, newest first. The read model tells which there are; what they are comes from the log. */
export async function listEmployers(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'personalData'>,
  scope: ListScope,
  page: PageRequest,
): Promise<ListPage<ShownEmployer>> {
  await app.readModels.reached(['employers'], await app.log.head())
  const filter = [scope.tenantId, scope.environment]
  const { ids, total } = await idsOf(app, EMPLOYERS, EMPLOYER_COUNT, filter, page)
  const loaded = await Promise.all(ids.map(async (id) => (await app.commands.load(employer, id)).state))
  const employers = loaded.filter((state): state is Employer => state !== null)
  return { items: await showEmployers(app, employers), total }
}

const OF_EMPLOYER = `${OF_SCOPE} AND ($3::text IS NULL OR employer_id = $3)`
const POLICIES: Statement = {
  name: 'operator-policies',
  text: `SELECT policy_id AS id FROM read_model.policies WHERE ${OF_EMPLOYER} ORDER BY seq DESC LIMIT $4 OFFSET $5`,
}
const POLICY_COUNT: Statement = {
  name: 'operator-policy-count',
  text: `SELECT count(*) AS total FROM read_model.policies WHERE ${OF_EMPLOYER}`,
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
  scope: ListScope & { readonly employerId: string | null },
  page: PageRequest,
): Promise<ListPage<ShownPolicy>> {
  await app.readModels.reached(['policies'], await app.log.head())
  const filter = [scope.tenantId, scope.environment, scope.employerId]
  const { ids, total } = await idsOf(app, POLICIES, POLICY_COUNT, filter, page)
  const loaded = await Promise.all(ids.map(async (id) => (await app.commands.load(policy, id)).state))
  const now = app.clock.now()
  const policies = loaded.filter((state): state is Policy => state !== null)
  return { items: policies.map((state) => showPolicy(state, now)), total }
}

async function idsOf(
  app: Pick<Application, 'read'>,
  list: Statement,
  count: Statement,
  filter: readonly (string | null)[],
  { page, limit }: PageRequest,
): Promise<{ ids: readonly string[]; total: number }> {
  const [rows, counted] = await Promise.all([
    app.read.query<{ id: string }>(list, [...filter, limit, (page - 1) * limit]),
    app.read.query<{ total: number }>(count, filter),
  ])
  return { ids: rows.map(({ id }) => id), total: counted[0]!.total }
}
