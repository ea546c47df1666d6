import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { bigint, boolean, type RowOf, table, text, timestamptz } from '../queries/table.ts'

export const agentCredentials = table('agent_credentials', {
  key: ['credential_id'],
  columns: {
    credential_id: text(),
    agent_name: text(),
    entity_type: text<AgentCredential['entity_type']>(),
    entity_id: text(),
    sandbox: boolean(),
    api_key_prefix: text(),
    status: text<AgentCredential['status']>(),
    created_at: timestamptz(),
    /** Order of issue. */
    seq: bigint(),
  },
  indexes: [['entity_type', 'entity_id', 'seq'], ['seq']],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    agent_credentials: RowOf<typeof agentCredentials>
  }
}
