import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { policy } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import { findCurrent } from '../queries/find-current.ts'
import { type Parameter, statement } from '../queries/statement.ts'
import { stateOf } from './owned-by.ts'

/** What an API client may see. */
type ClientScope = Pick<ApiClient, 'tenant_id' | 'environment' | 'employer_ids' | 'carrier_ids'>

type Parts = Pick<Application, 'commands' | 'log' | 'read' | 'readModels'>

/**
 * The employer with that id, where no one policy tells whose it is: it lies inside the scope, and has at
 * least one policy of a carrier inside it.
 * @returns null outside the scope, and for ids that exist nowhere: the two look the same.
 * @throws ReadModelsLate when it may have such a policy that cannot be found yet.
 */
export async function employerOfClient(
  app: Parts,
  scope: ClientScope,
  employerId: string,
): Promise<Employer | null> {
  const found = await stateOf(app, employer, employerId)
  const visible =
    found !== null &&
    found.tenant_id === scope.tenant_id &&
    found.environment === scope.environment &&
    mayActFor(scope, employerId) &&
    (await isInsuredInScope(app, scope, employerId))
  return visible ? found : null
}

/** Whether a policy's carrier lies inside the scope; false for an id that names no policy. */
export async function isPolicyInScope(
  app: Pick<Application, 'commands'>,
  scope: Pick<ClientScope, 'carrier_ids'>,
  policyId: string,
): Promise<boolean> {
  if (scope.carrier_ids === 'all') return true
  const { state } = await app.commands.load(policy, policyId)
  return state !== null && mayUseCarrier(scope, state.carrier_id)
}

const POLICY_OF_CARRIERS = statement(
  'policy-of-employer-and-carriers',
  (db, $: Parameter<{ employerId: string; carrierIds: readonly string[] }>) =>
    db
      .selectFrom('policies')
      .select('policy_id')
      .where('employer_id', '=', $('employerId'))
      .where('carrier_id', '=', ({ fn }) => fn.any($('carrierIds')))
      .orderBy('seq')
      .limit(({ lit }) => lit(1)),
)

/**
 * Whether an employer has a policy, in whatever status, of a carrier inside the scope. Employer and carrier
 * of a policy never change, so the read model serves as an index: what it names is checked in the log,
 * and that it names none counts only once it is at the head of the log.
 */
export async function isInsuredInScope(
  app: Parts,
  scope: Pick<ClientScope, 'carrier_ids'>,
  employerId: string,
): Promise<boolean> {
  const { carrier_ids } = scope
  if (carrier_ids === 'all') return true
  if (carrier_ids.length === 0) return false
  const found = await findCurrent(app, 'policies', async () => {
    const [row] = await app.read.query(POLICY_OF_CARRIERS, { employerId, carrierIds: carrier_ids })
    const state = row ? (await app.commands.load(policy, row.policy_id)).state : null
    return state?.employer_id === employerId && mayUseCarrier(scope, state.carrier_id) ? state : null
  })
  return found !== null
}

const POLICY_OF_EMPLOYER = statement('policy-of-employer', (db, $: Parameter<{ employerId: string }>) =>
  db
    .selectFrom('policies')
    .select('policy_id')
    .where('employer_id', '=', $('employerId'))
    .limit(({ lit }) => lit(1)),
)

/**
 * Whether an employer has policies, and none of a carrier inside the scope: it is others' business. One without any is
 * not yet anybody's.
 * @throws ReadModelsLate when it may have one that cannot be found yet.
 */
export async function isInsuredElsewhere(
  app: Parts,
  scope: Pick<ClientScope, 'carrier_ids'>,
  employerId: string,
): Promise<boolean> {
  if (await isInsuredInScope(app, scope, employerId)) return false
  const found = await findCurrent(app, 'policies', async () => {
    const [row] = await app.read.query(POLICY_OF_EMPLOYER, { employerId })
    return row ?? null
  })
  return found !== null
}
