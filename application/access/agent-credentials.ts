import {
  type AgentCredential,
  type AgentCredentialCommand,
  agentCredential,
} from '../../domain/access/agent-credential.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { reservation } from '../../domain/kernel/reservation.ts'
import { employer } from '../../domain/parties/employer.ts'
import { payrollCompany } from '../../domain/parties/payroll-company.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { agentKeyReservation } from '../commands/reservations.ts'
import { secretGone } from '../commands/secret-gone.ts'
import { readable } from '../commands/verbs.ts'
import { apiKeyHash } from './agent-scope.ts'
import { stateOf } from './owned-by.ts'

/** Leading characters of a key that identify it: `mcp_` and 8 more. */
const API_KEY_PREFIX_LENGTH = 12

export type NewAgentCredential = Pick<
  AgentCredential,
  'agent_name' | 'entity_type' | 'entity_id' | 'sandbox' | 'created_by'
>

/** A credential with its key, which is shown this once and kept only as a hash. */
export interface IssuedAgentCredential {
  readonly credential: AgentCredential
  readonly apiKey: string
}

/**
 * Issues a credential for an agent; it is listed and usable when this returns. Its id derives from the
 * command id, so that of all attempts under one command one issues a credential; keys reserved by the
 * others lead to a credential that is not theirs, and let nobody in.
 * @returns a conflict that names the credential when an earlier attempt under the same command issued one.
 */
export async function issue(
  app: Application,
  input: NewAgentCredential,
  context: Omit<CommandContext, 'tenantId' | 'environment'>,
): Promise<IssuedAgentCredential | Rejection> {
  const credentialId = createdId(context, agentCredential)
  const earlier = await app.commands.load(agentCredential, credentialId)
  if (earlier.state) return secretGone('credential', credentialId)
  const apiKey = `mcp_${app.randomness.hex(32)}`
  const keyHash = apiKeyHash(apiKey)
  const command: AgentCredentialCommand = {
    type: 'Issue',
    data: {
      ...input,
      credential_id: credentialId,
      key_hash: keyHash,
      api_key_prefix: apiKey.slice(0, API_KEY_PREFIX_LENGTH),
    },
  }
  const tenantId = await tenantOf(app, input.entity_type, input.entity_id)
  const within = { ...context, tenantId, environment: null }
  const { kind, fingerprint, id } = agentKeyReservation(keyHash)
  const reserved = await app.commands.execute(
    reservation,
    id,
    { type: 'Reserve', data: { kind, fingerprint, owner_id: credentialId } },
    within,
  )
  if (isRejection(reserved)) return reserved
  const outcome = await app.commands.execute(agentCredential, credentialId, command, within)
  if (isRejection(outcome)) return outcome
  if (outcome.state!.key_hash !== keyHash) return secretGone('credential', credentialId)
  if (outcome.position !== null) await app.readModels.awaitProjections(agentCredential, outcome.position)
  return { credential: outcome.state!, apiKey }
}

/** Revokes a credential for good: its key is refused from the next request on. Again, it changes nothing. */
export async function revoke(
  app: Application,
  credentialId: string,
  context: Omit<CommandContext, 'tenantId' | 'environment'>,
): Promise<AgentCredential | Rejection> {
  const known = await stateOf(app, agentCredential, credentialId)
  if (!known) return reject('not_found', 'credential_not_found', 'No such credential', 'credential_id')
  const tenantId = await tenantOf(app, known.entity_type, known.entity_id)
  const outcome = await app.commands.execute(
    agentCredential,
    credentialId,
    { type: 'Revoke' },
    { ...context, tenantId, environment: null },
  )
  return readable(app, agentCredential, outcome)
}

/** The tenant that an agent's entity belongs to, null when there is no such entity. */
async function tenantOf(
  app: Pick<Application, 'commands'>,
  entityType: AgentCredential['entity_type'],
  entityId: string,
): Promise<string | null> {
  if (!isId(entityId)) return null
  const { state } =
    entityType === 'employer'
      ? await app.commands.load(employer, entityId)
      : await app.commands.load(payrollCompany, entityId)
  return state?.tenant_id ?? null
}
