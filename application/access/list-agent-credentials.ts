import { type AgentCredential, agentCredential } from '../../domain/access/agent-credential.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { loadPage, pagedList } from '../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../queries/statement.ts'

/** What a list of the credentials of agents is narrowed to; null is everything. */
interface CredentialScope {
  readonly entity_type: string | null
  readonly entity_id: string | null
  readonly status: string | null
}

const CREDENTIALS = pagedList(
  { projection: 'agent-credentials', name: 'operator-agent-credentials' },
  (db, $: Parameter<CredentialScope>) =>
    db
      .selectFrom('agent_credentials')
      .select('credential_id as id')
      .where((eb) => equalIfGiven(eb, $, 'entity_type', 'entity_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Credentials of agents, newest first. */
export function listAgentCredentials(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  scope: CredentialScope,
  page: PageRequest,
): Promise<ListPage<AgentCredential>> {
  return loadPage(app, agentCredential, CREDENTIALS, scope, page)
}
