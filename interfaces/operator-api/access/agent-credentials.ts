import { z } from 'zod'
import { listAgentCredentials } from '../../../application/access/list-agent-credentials.ts'
import { agentCredential } from '../../../domain/access/agent-credential.ts'
import { id, ofOne, text, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList } from '../host/lists.ts'

const Credential = z
  .object({
    credential_id: id(),
    agent_name: z.string(),
    entity_type: z.enum(['payroll_company', 'employer']),
    entity_id: z.string(),
    sandbox: z.boolean().describe('Every submission becomes a dry run'),
    api_key_prefix: z.string(),
    status: z.enum(['active', 'revoked']),
  })
  .meta({ id: 'OperatorAgentCredential' })

export const agentCredentialEndpoints = [
  endpoint({
    operation: 'listAgentCredentials',
    route: 'GET /agent-credentials',
    summary: 'List the credentials of agents on the tool server, newest first, without their keys',
    ...listOf(Credential, {
      entity_type: narrowing(word('payroll_company', 'employer')),
      entity_id: narrowing(text()),
      status: narrowing(word('active', 'revoked')),
    }),
    columns: 'credential_id name:agent_name of:entity_type entity_id status',
    handle: handleList(listAgentCredentials),
  }),
  endpoint({
    operation: 'showAgentCredential',
    route: 'GET /agent-credentials/{credential_id}',
    summary: 'Show the credential of an agent without its key',
    ...ofOne('credential_id', 'credential'),
    answers: { 200: Credential },
    handle: ({ host, params }) => loaded(host, agentCredential, params.credential_id, 'credential'),
  }),
]
