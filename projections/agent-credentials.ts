import { agentCredentials as table } from '../application/read-models/agent-credentials.ts'
import { AgentCredentialIssued, AgentCredentialRevoked } from '../domain/access/agent-credential.ts'
import { projection } from './runtime/projection.ts'

/** Agent credentials as operators list them; what authenticates is the log, not this table. */
export const agentCredentials = projection({
  name: 'agent-credentials',
  version: 1,
  tables: [table],
  handlers: (on) => [
    on(AgentCredentialIssued, {
      apply({ data, metadata, position }, { agent_credentials }) {
        const { key_hash: _hash, created_by: _by, ...shown } = data
        agent_credentials.put({
          ...shown,
          status: 'active',
          created_at: metadata.recorded_at,
          seq: position,
        })
      },
    }),
    on(AgentCredentialRevoked, {
      reads: ({ data }) => ({ agent_credentials: [[data.credential_id]] }),
      apply: ({ data }, { agent_credentials }) =>
        agent_credentials.change([data.credential_id], { status: 'revoked' }),
    }),
  ],
})
