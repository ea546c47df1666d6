import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { type Environment, isId } from '../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { RejectionCode } from '../../domain/kernel/rejection-codes.ts'
import type { Reads } from '../commands/command-handler.ts'

/** The key of a partner, as far as it says what it reaches. */
export type KeyScope = Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>

interface Place {
  readonly tenant_id: string
  readonly environment: Environment
}

/** The state of an aggregate that a request names; null also for what is no id. */
export async function stateOf<State, Command, Event extends DomainEvent>(
  { commands }: Reads,
  decider: Decider<State | null, Command, Event>,
  id: unknown,
): Promise<State | null> {
  return isId(id) ? (await commands.load(decider, id)).state : null
}

/** Whether something is there in a tenant and environment, and was not deleted. */
export function isOf<One extends Place & { readonly deleted_at?: string | null }>(
  { tenant_id, environment }: Place,
  one: One | null,
): one is One {
  return one !== null && one.tenant_id === tenant_id && one.environment === environment && !one.deleted_at
}

/** Whether a key reaches what belongs to an employer and a carrier. */
export function mayReach(
  client: KeyScope,
  { employer_id, carrier_id }: { readonly employer_id: string; readonly carrier_id: string },
): boolean {
  return mayActFor(client, employer_id) && mayUseCarrier(client, carrier_id)
}

/** What has a code for each of its refusals. */
type Owned = RejectionCode extends infer Code
  ? Code extends `${infer What}_out_of_scope`
    ? What
    : never
  : never

/**
 * What a partner names: of another tenant or environment it is not found, out of the scope of its key it is forbidden.
 * @param what it is, in words.
 */
export async function ownedBy<One extends Place & { readonly deleted_at?: string | null }>(
  client: Place,
  one: One | null,
  what: string,
  isReached: (one: One) => boolean | Promise<boolean>,
): Promise<One | Rejection> {
  const code = what.toLowerCase().replaceAll(' ', '_') as Owned
  if (!isOf(client, one))
    return reject('not_found', `${code}_not_found` as RejectionCode, `There is no such ${what}`)
  if (await isReached(one)) return one
  return reject('forbidden', `${code}_out_of_scope`, `The ${what} lies outside the scope of the key`)
}
