import type { ApiClient } from '../../domain/access/api-client.ts'
import { mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type Carrier, carrier } from '../../domain/parties/carrier.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { type Policy, policy } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import { stateOf } from './owned-by.ts'

/** What a request to the payments API names. */
export interface NamedPolicy {
  readonly employer: Employer
  readonly carrier: Carrier
  readonly policy: Policy
}

/** The carrier of a request: as sent, else the only one of the key. A key without that must send it. */
export function carrierIdOf(
  { carrier_ids }: Pick<ApiClient, 'carrier_ids'>,
  sent: string | null | undefined,
): string | Rejection {
  if (sent) return sent
  if (carrier_ids !== 'all' && carrier_ids.length === 1) return carrier_ids[0]!
  return reject(
    'invalid',
    'carrier_id_required',
    'carrier_id is required, as the key is not for one carrier',
    'carrier_id',
  )
}

/**
 * Employer, carrier and policy of a request, in this order of checks: what names nothing in the tenant and environment
 * is not found, then what lies outside the scope of the key is forbidden, then what does not belong together is invalid.
 */
export async function namedPolicy(
  { commands }: Pick<Application, 'commands'>,
  client: Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>,
  ids: {
    readonly employer_id: string
    readonly carrier_id: string | null
    readonly policy_id: string
  },
): Promise<NamedPolicy | Rejection> {
  const carrierId = carrierIdOf(client, ids.carrier_id)
  if (typeof carrierId !== 'string') return carrierId
  const { tenant_id, environment } = client
  const isHere = (one: { readonly tenant_id: string; readonly environment: string }) =>
    one.tenant_id === tenant_id && one.environment === environment
  const found = {
    employer: await stateOf({ commands }, employer, ids.employer_id),
    carrier: await stateOf({ commands }, carrier, carrierId),
    policy: await stateOf({ commands }, policy, ids.policy_id),
  }
  if (!found.employer || !isHere(found.employer)) return missing('employer')
  if (!found.policy || !isHere(found.policy)) return missing('policy')
  if (found.carrier?.tenant_id !== tenant_id) return missing('carrier')
  if (!mayActFor(client, ids.employer_id)) return outside('employer')
  if (!mayUseCarrier(client, carrierId) || !mayUseCarrier(client, found.policy.carrier_id))
    return outside('carrier')
  if (!mayActFor(client, found.policy.employer_id)) return outside('policy')
  if (found.policy.employer_id !== ids.employer_id) return mismatch('employer')
  if (found.policy.carrier_id !== carrierId) return mismatch('carrier')
  return found as NamedPolicy
}

type Named = 'employer' | 'carrier' | 'policy'

function missing(what: Named): Rejection {
  return reject('not_found', `${what}_not_found`, `${what}_id names no ${what} of this account`, `${what}_id`)
}

function outside(what: Named): Rejection {
  return reject(
    'forbidden',
    `${what}_out_of_scope`,
    `${what}_id lies outside the scope of the key`,
    `${what}_id`,
  )
}

function mismatch(what: Named): Rejection {
  return reject('invalid', 'policy_mismatch', `policy_id names a policy of another ${what}`, 'policy_id')
}
