import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { Statement } from '../ports/read-database.ts'

/** A credential as operators list it: never with its key. */
export interface ListedAgent
  extends Pick<
    AgentCredential,
    'credential_id' | 'agent_name' | 'entity_type' | 'entity_id' | 'sandbox' | 'api_key_prefix' | 'status'
  > {
  readonly created_at: string
  /** Null until the first use. */
  readonly last_used_at: string | null
}

const select = (name: string, where: string): Statement => ({
  name,
  text: `
    SELECT credential_id, agent_name, entity_type, entity_id, sandbox, api_key_prefix, status, created_at
    FROM read_model.agent_credentials ${where} ORDER BY seq DESC`,
})
const ALL = select('agents', '')
const BY_TYPE = select('agents-by-type', 'WHERE entity_type = $1')
const BY_ENTITY = select('agents-by-entity', 'WHERE entity_id = $1')
const BY_BOTH = select('agents-by-type-and-entity', 'WHERE entity_type = $1 AND entity_id = $2')

/** Agent credentials, newest first; each filter that is not null narrows the list. */
export async function listAgents(
  app: Pick<Application, 'read' | 'lastUsed'>,
  filter: {
    readonly entityType: AgentCredential['entity_type'] | null
    readonly entityId: string | null
  },
): Promise<readonly ListedAgent[]> {
  const { entityType, entityId } = filter
  if (entityId !== null && !isId(entityId)) return []
  const statement =
    entityType === null ? (entityId === null ? ALL : BY_ENTITY) : entityId === null ? BY_TYPE : BY_BOTH
  const values = [entityType, entityId].filter((value) => value !== null)
  const rows = await app.read.query<Omit<ListedAgent, 'last_used_at'>>(statement, values)
  const lastUsed = await app.lastUsed.of(rows.map((row) => row.credential_id))
  return rows.map((row) => {
    const at = lastUsed.get(row.credential_id)
    return { ...row, last_used_at: at === undefined ? null : isoTime(at) }
  })
}
