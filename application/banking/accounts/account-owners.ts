import { type ApiClient, mayActFor, mayUseCarrier } from '../../../domain/access/api-client.ts'
import type { AchAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { isId } from '../../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { isInsuredElsewhere, isInsuredInScope } from '../../access/client-scope.ts'
import type { Application } from '../../commands/application.ts'
import { legalName } from '../../parties/legal-names.ts'

export type Scope = Pick<
  ApiClient,
  'client_id' | 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'
>
type Parts = Pick<Application, 'commands' | 'log' | 'personalData' | 'read' | 'readModels'>

/** The owners of an account; null: none of the kind. */
export interface Association {
  readonly employer_id: string | null
  readonly carrier_id: string | null
}

/** The same of what is there, with the client that created it, where that is known. */
export interface Owned extends Association {
  readonly client_id?: string | null | undefined
}

/** The owner of an ACH account. */
export type AchAccountOwner = Pick<AchAccount, 'owner_type' | 'owner_id'>

/**
 * Whether what belongs to an employer or a carrier lies inside the scope of a key. An employer without a named carrier
 * must have a policy of one inside it; what belongs to nobody is open to keys for all of both, and to the one that created it.
 * @throws ReadModelsLate when the employer may have such a policy that cannot be found yet.
 */
export async function isInScope(
  app: Parts,
  client: Scope,
  { employer_id, carrier_id, client_id }: Owned,
): Promise<boolean> {
  if (employer_id === null && carrier_id === null) {
    const isForAll = client.carrier_ids === 'all' && client.employer_ids === 'all'
    return isForAll || client_id === client.client_id
  }
  if (employer_id !== null && !mayActFor(client, employer_id)) return false
  if (carrier_id !== null) return mayUseCarrier(client, carrier_id)
  return employer_id === null || isInsuredInScope(app, client, employer_id)
}

/** Lists for a key of some carriers need the employers that these insure. */
export async function insuredAsOfNow(
  { readModels, log }: Pick<Application, 'readModels' | 'log'>,
  { carrier_ids }: Scope,
): Promise<void> {
  if (carrier_ids !== 'all') await readModels.reached(['policies'], await log.head())
}

/**
 * Refuses employers and carriers that a request names: those that are not there first, then those outside the scope. A
 * carrier that is named as well does not bring in an employer that only others insure. Without an owner it is its creator's.
 * @throws ReadModelsLate
 */
export async function refuseAssociation(
  app: Parts,
  client: Scope,
  { employer_id, carrier_id, client_id }: Owned,
): Promise<Rejection | null> {
  const found = await Promise.all([
    employer_id === null ? null : legalNameOf(app, client, 'employer', employer_id, 'employer_id'),
    carrier_id === null ? null : legalNameOf(app, client, 'carrier', carrier_id, 'carrier_id'),
  ])
  const missing = found.find(isRejection)
  if (missing) return missing
  if (employer_id !== null && !mayActFor(client, employer_id)) return outside('employer_id')
  if (!(await isInScope(app, client, { employer_id, carrier_id, client_id }))) {
    return outside(carrier_id === null ? 'employer_id' : 'carrier_id')
  }
  const isOthers =
    employer_id !== null && carrier_id !== null && (await isInsuredElsewhere(app, client, employer_id))
  return isOthers ? outside('employer_id') : null
}

/**
 * The legal name of the owner that a request names, which banks know the account by.
 * @returns a rejection where there is none, or the key does not reach it.
 */
export async function ownersName(
  app: Parts,
  client: Scope,
  owner: AchAccountOwner,
): Promise<string | Rejection> {
  const name = await legalNameOf(app, client, owner.owner_type, owner.owner_id, 'owner_id')
  if (isRejection(name)) return name
  const isInside = await isInScope(app, client, associationOf(owner))
  return isInside ? name : outside('owner_id')
}

/** The tenant and environment of an owner's things. */
export function associationOf({ owner_type, owner_id }: AchAccountOwner): Association {
  return owner_type === 'employer'
    ? { employer_id: owner_id, carrier_id: null }
    : { employer_id: null, carrier_id: owner_id }
}

async function legalNameOf(
  { commands, personalData }: Pick<Application, 'commands' | 'personalData'>,
  { tenant_id, environment }: Scope,
  kind: AchAccountOwner['owner_type'],
  id: string,
  field: string,
): Promise<string | Rejection> {
  const missing = reject('not_found', `${kind}_not_found`, `${field} names no ${kind} of this account`, field)
  if (!isId(id)) return missing
  if (kind === 'carrier') {
    const { state } = await commands.load(carrier, id)
    return state?.tenant_id === tenant_id ? state.name : missing
  }
  const { state } = await commands.load(employer, id)
  return state?.tenant_id === tenant_id && state.environment === environment
    ? legalName({ personalData }, state)
    : missing
}

function outside(field: string): Rejection {
  return reject('forbidden', 'owner_out_of_scope', `${field} lies outside the scope of the key`, field)
}
