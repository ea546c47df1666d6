import { agentCredentials as table } from '../../application/access/agent-credentials-table.ts'
import { AgentCredentialIssued, AgentCredentialRevoked } from '../../domain/access/agent-credential.ts'
import { projection } from '../runtime/projection.ts'

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
    on(AgentCredentialRevoked, {
      reads: ({ data }) => ({ agent_credentials: [[data.credential_id]] }),
      apply: ({ data }, { agent_credentials }) =>
        agent_credentials.change([data.credential_id], { status: 'revoked' }),
    }),
  ],
})
