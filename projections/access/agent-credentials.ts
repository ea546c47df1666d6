import { agentCredentials as table } from '../../application/access/agent-credentials-table.ts'
import { AgentCredentialIssued, AgentCredentialRevoked } from '../../domain/access/agent-credential.ts'
import { changing, projection } from '../runtime/projection.ts'

/** Agent credentials as operators list them; what authenticates is the log, not this table. */
export const agentCredentials = projection({
  name: 'agent-credentials',
  version: 1,
  tables: [table],
  handlers: (on) => [
    on(AgentCredentialIssued, {
      apply({ data, metadata, position }, { agent_credentials }) {
        const { recorded_at: created_at } = metadata
        agent_credentials.put({ ...data, status: 'active', created_at, seq: position })
      },
    }),
    changing(table)(AgentCredentialRevoked, () => ({ status: 'revoked' })),
  ],
})
