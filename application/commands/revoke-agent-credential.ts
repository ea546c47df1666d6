import { type AgentCredential, agentCredential } from '../../domain/access/agent-credential.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { tenantOf } from './issue-agent-credential.ts'

/** Revokes a credential for good: its key is refused from the next request on. Again, it changes nothing. */
export async function revokeAgentCredential(
  app: Application,
  credentialId: string,
  context: Omit<CommandContext, 'tenantId' | 'environment'>,
): Promise<AgentCredential | Rejection> {
  const known = isId(credentialId) ? (await app.commands.load(agentCredential, credentialId)).state : null
  if (!known) return reject('not_found', 'credential_not_found', 'No such credential', 'credential_id')
  const outcome = await app.commands.execute(
    agentCredential,
    credentialId,
    { type: 'Revoke' },
    { ...context, tenantId: await tenantOf(app, known.entity_type, known.entity_id), environment: null },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.position !== null) await app.readModels.tellOf(agentCredential, outcome.position)
  return outcome.state!
}
