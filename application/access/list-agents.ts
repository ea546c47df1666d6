import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { type Parameter, type Reading, statement } from '../read-models/statement.ts'

interface Filter {
  readonly entityType: AgentCredential['entity_type'] | null
  readonly entityId: string | null
}

const listed = (db: Reading) =>
  db
    .selectFrom('agent_credentials')
    .select(['credential_id', 'agent_name', 'entity_type', 'entity_id', 'sandbox'])
    .select(['api_key_prefix', 'status', 'created_at'])
    .orderBy('seq', 'desc')
const ALL = statement('agents', (db, _: Parameter<Filter>) => listed(db))
const BY_TYPE = statement('agents-by-type', (db, $: Parameter<Filter>) =>
  listed(db).where('entity_type', '=', $('entityType')),
)
const BY_ENTITY = statement('agents-by-entity', (db, $: Parameter<Filter>) =>
  listed(db).where('entity_id', '=', $('entityId')),
)
const BY_BOTH = statement('agents-by-type-and-entity', (db, $: Parameter<Filter>) =>
  listed(db).where('entity_type', '=', $('entityType')).where('entity_id', '=', $('entityId')),
)

/** A credential as operators list it: never with its key. */
export interface ListedAgent extends ResultOf<typeof ALL> {
  /** Null until the first use. */
  readonly last_used_at: string | null
}

/** Agent credentials, newest first; each filter that is not null narrows the list. */
export async function listAgents(
  app: Pick<Application, 'read' | 'lastUsed'>,
  filter: Filter,
): Promise<readonly ListedAgent[]> {
  const { entityType, entityId } = filter
  if (entityId !== null && !isId(entityId)) return []
  const asked =
    entityType === null ? (entityId === null ? ALL : BY_ENTITY) : entityId === null ? BY_TYPE : BY_BOTH
  const rows = await app.read.query(asked, filter)
  const lastUsed = await app.lastUsed.of(rows.map((row) => row.credential_id))
  return rows.map((row) => {
    const at = lastUsed.get(row.credential_id)
    return { ...row, last_used_at: at === undefined ? null : isoTime(at) }
  })
}
