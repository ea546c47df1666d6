import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import type { Application } from '../commands/application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { equalIfGiven, type Parameter, statement } from '../queries/statement.ts'

interface Filter {
  readonly entity_type: AgentCredential['entity_type'] | null
  readonly entity_id: string | null
}

const AGENTS = statement('agents', (db, $: Parameter<Filter>) =>
  db
    .selectFrom('agent_credentials')
    .select(['credential_id', 'agent_name', 'entity_type', 'entity_id', 'sandbox'])
    .select(['api_key_prefix', 'status', 'created_at'])
    .where((eb) => equalIfGiven(eb, $, 'entity_type', 'entity_id'))
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
  const { entity_id } = filter
  if (entity_id !== null && !isId(entity_id)) return []
  const rows = await app.read.query(AGENTS, filter)
  const lastUsed = await app.lastUsed.of(rows.map((row) => row.credential_id))
  return rows.map((row) => {
    const at = lastUsed.get(row.credential_id)
    return { ...row, last_used_at: at === undefined ? null : isoTime(at) }
  })
}
