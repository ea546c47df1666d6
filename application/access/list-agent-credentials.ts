import { agentCredential } from '../../domain/access/agent-credential.ts'
import { operatorList } from '../queries/lists.ts'

/** Credentials of agents. */
export const listAgentCredentials = operatorList(agentCredential, {
  projection: 'agent-credentials',
  table: 'agent_credentials',
  id: 'credential_id',
  by: ['entity_type', 'entity_id', 'status'],
})
