import { createHash, timingSafeEqual } from 'node:crypto'
import { type AgentCredential, agentCredential } from '../../domain/access/agent-credential.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { reservation } from '../../domain/kernel/reservation.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { type Policy, policy, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import type { Loaded, Reads } from '../commands/command-handler.ts'
import { agentKeyReservation } from '../commands/reservations.ts'

const API_KEY = /^mcp_[0-9a-f]{64}$/

/** True for a key of the issued form, `mcp_` and 64 hex characters; anything else is not looked up. */
function isApiKey(value: string): boolean {
  return API_KEY.test(value)
}

/** What the log keeps of a key: its SHA-256, hex. */
export function apiKeyHash(apiKey: string): string {
  return createHash('sha256').update(apiKey).digest('hex')
}

/** The id of the credential that a key hash belongs to, if there is such a credential. */
async function credentialIdOf(app: Reads, keyHash: string): Promise<string> {
  const { fingerprint, id } = agentKeyReservation(keyHash)
  // keys were not always reserved: their credentials have the fingerprint for an id
  return (await app.commands.load(reservation, id)).state.owner_id ?? fingerprint
}

/**
 * The active credential that a key belongs to, from the log and never from a read model, so that a
 * revoked key is refused by the very next request.
 * @returns null for a malformed, unknown or revoked key.
 */
export async function authenticateAgent(
  app: Pick<Application, 'commands'>,
  apiKey: string,
): Promise<AgentCredential | null> {
  if (!isApiKey(apiKey)) return null
  const keyHash = apiKeyHash(apiKey)
  const { state } = await app.commands.load(agentCredential, await credentialIdOf(app, keyHash))
  if (state?.status !== 'active') return null
  const known = Buffer.from(state.key_hash, 'hex')
  const presented = Buffer.from(keyHash, 'hex')
  return known.length === presented.length && timingSafeEqual(known, presented) ? state : null
}

/** True for the key of an active credential; what is no well-formed key is not looked up. */
export async function isActiveApiKey(app: Pick<Application, 'commands'>, value: string): Promise<boolean> {
  return (await authenticateAgent(app, value)) !== null
}

/**
 * The employer with that id, if the agent may act for it at this moment: the one employer of an
 * employer's agent, or an employer that is linked to the payroll company of a payroll company's agent.
 * @returns null outside the scope, and for ids that exist nowhere: the two look the same.
 */
export async function employerInScope(
  app: Reads,
  agent: Pick<AgentCredential, 'entity_type' | 'entity_id'>,
  employerId: string,
): Promise<Employer | null> {
  if (!isId(employerId)) return null
  if (agent.entity_type === 'employer' && agent.entity_id !== employerId) return null
  const { state } = await app.commands.load(employer, employerId)
  return state !== null && isInScope(agent, state) ? state : null
}

/** True for an employer that the agent may act for, as it is. */
export function isInScope(
  { entity_type, entity_id }: Pick<AgentCredential, 'entity_type' | 'entity_id'>,
  { employer_id, payroll_company_ids }: Pick<Employer, 'employer_id' | 'payroll_company_ids'>,
): boolean {
  return entity_type === 'employer' ? employer_id === entity_id : payroll_company_ids.includes(entity_id)
}

/** A policy as loaded, which is known to exist. */
export type LoadedPolicy = Loaded<Policy | null> & { readonly state: Policy }

/**
 * The policy with that id, if it is one of the employer's that payroll is reported against: active,
 * or expired (final payroll is reported after expiry).
 */
export async function reportablePolicy(
  app: Reads & Pick<Application, 'clock'>,
  employerId: string,
  policyId: string,
): Promise<LoadedPolicy | null> {
  if (!isId(policyId)) return null
  const { state, revision } = await app.commands.load(policy, policyId)
  if (state?.employer_id !== employerId) return null
  const status = statusOn(state, app.clock.now())
  return status === 'active' || status === 'expired' ? { state, revision } : null
}
