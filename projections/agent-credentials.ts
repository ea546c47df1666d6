import { AgentCredentialIssued, AgentCredentialRevoked } from '../domain/access/agent-credential.ts'
import { on, type Projection } from './runtime/projection.ts'

/** Agent credentials as operators list them; what authenticates is the log, not this table. */
export const agentCredentials: Projection = {
  name: 'agent-credentials',
  version: 1,
  tables: [
    {
      name: 'agent_credentials',
      key: ['credential_id'],
      columns: {
        credential_id: 'text',
        agent_name: 'text',
        entity_type: 'text',
        entity_id: 'text',
        sandbox: 'boolean',
        api_key_prefix: 'text',
        /** `active` or `revoked`. */
        status: 'text',
        created_at: 'timestamptz',
        /** Order of issue. */
        seq: 'bigint',
      },
      indexes: [['entity_type', 'entity_id', 'seq'], ['seq']],
    },
  ],
  handlers: [
    on(AgentCredentialIssued, {
      apply({ data, metadata, position }, { agent_credentials }) {
        const { key_hash: _hash, created_by: _by, ...shown } = data
        agent_credentials!.put({
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
        agent_credentials!.change([data.credential_id], { status: 'revoked' }),
    }),
  ],
}
