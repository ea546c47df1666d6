import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { equalsIfGiven, type Parameter, statement } from '../read-models/statement.ts'

interface Filter {
  readonly entityType: AgentCredential['entity_type'] | null
  readonly entityId: string | null
}

const AGENTS = statement('agents', (db, $: Parameter<Filter>) =>
  db
    .selectFrom('agent_credentials')
    .select(['credential_id', 'agent_name', 'entity_type', 'entity_id', 'sandbox'])
    .select(['api_key_prefix', 'status', 'created_at'])
    .where((eb) => equalsIfGiven(eb, 'entity_type', $('entityType')))
    .where((eb) => equalsIfGiven(eb, 'entity_id', $('entityId')))
    .orderBy('seq', 'desc'),
)

/** A credential as operators list it: never with its key. */
export interface ListedAgent extends ResultOf<typeof AGENTS> {
  /** Null until the first use. */
  readonly last_used_at: string | null
}

/** Agent credentials, newest first; each filter that is not null narrows the list. */
export async function listAgents(
  app: Pick<Application, 'read' | 'lastUsed'>,
  filter: Filter,
): Promise<readonly ListedAgent[]> {
  const { entityId } = filter
  if (entityId !== null && !isId(entityId)) return []
  const rows = await app.read.query(AGENTS, filter)
  const lastUsed = await app.lastUsed.of(rows.map((row) => row.credential_id))
  return rows.map((row) => {
    const at = lastUsed.get(row.credential_id)
    return { ...row, last_used_at: at === undefined ? null : isoTime(at) }
  })
}
