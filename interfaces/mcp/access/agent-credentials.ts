import { z } from 'zod'
import * as agentCredentials from '../../../application/access/agent-credentials.ts'
import { listAgents } from '../../../application/access/list-agents.ts'
import type { Operator } from '../../../domain/access/operators.ts'
import type { Api } from '../../endpoints/api.ts'
import { create, REPEATED } from '../../endpoints/creations.ts'
import { endpointsOf } from '../../endpoints/endpoint.ts'
import { machineReadable } from '../../endpoints/error-codes.ts'
import { naming, REQUIRED } from '../../endpoints/faults.ts'
import { idOf, optional, withDefault, wrongType } from '../../endpoints/fields.ts'
import { narrowing } from '../../endpoints/lists.ts'
import { SMALL_BODY } from '../../http/body.ts'
import { HttpError, refusalOf, writeCoreError } from '../../http/errors.ts'
import { contextOf, forOperators, keyed, type OperatorHost } from '../../operator-api/host/api.ts'
import { CHANGING } from '../../operator-api/host/roles.ts'

/** Credentials of agents, on the tool server's host and for the operator alone. */
const agentCredentialsApi: Api = {
  name: 'agents',
  title: 'Agent credentials',
  description: 'For operators: who may call the tool server, and for whom.',
  prefixes: ['/api/v1'],
  hasCommands: true,
  securitySchemes: { operator: { type: 'http', scheme: 'bearer', description: 'The token of an operator' } },
  bodyLimit: SMALL_BODY,
  takesEmptyBodies: false,
  objectOf(value) {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>
    }
    throw invalid('The body must be a JSON object')
  },
  unreadable: () => 'Invalid JSON',
  refuse(faults) {
    const missing = faults.filter(({ kind }) => kind === 'missing')
    const { field, message, kind } = faults[0]!
    const first = `${field} ${message}`
    if (missing.length > 0) {
      const lacks = `Missing: ${missing.map((one) => one.field).join(', ')}`
      const message = kind === 'unknown' ? `${lacks}; ${first}` : lacks
      return new HttpError(400, 'Missing required fields', message, naming(faults, missing[0]))
    }
    return invalid(first, naming(faults))
  },
  rejected: (rejection) => refusalOf(rejection),
  writeError: writeCoreError,
  errorBody: z.object({ error: z.string(), message: z.string(), ...machineReadable }),
  envelope: { wrap: (data) => data, schema: (data) => data },
}

const endpoint = endpointsOf<Omit<OperatorHost, 'services'>, Operator>(
  agentCredentialsApi,
  forOperators(() => CHANGING),
)

function invalid(message: string, about?: ReturnType<typeof naming>): HttpError {
  return new HttpError(400, 'Invalid request', message, about)
}

const KEY_WARNING = 'Store the api_key now: only its hash is kept, and the key cannot be retrieved again.'
/** Characters of a name or identifier at the most. */
const MAX_TEXT = 200
const TEXT = `must be a string of 1 to ${MAX_TEXT} characters`
const ENTITY_TYPE = 'must be payroll_company or employer'

/** A text that is kept as it is sent. @param empty what is said of the empty one. */
function text(empty: string) {
  return z
    .string(wrongType(TEXT))
    .min(1, empty)
    .max(MAX_TEXT, TEXT)
    .refine((value) => value.trim() !== '', TEXT)
}

/** @param empty what is said of the empty text. */
function entityType(empty: string) {
  const { error } = wrongType(ENTITY_TYPE)
  return z
    .enum(['payroll_company', 'employer'], {
      error: ({ input }) => (input === '' ? empty : error({ input })),
    })
    .describe('What the agent reports for')
}

const status = z.enum(['active', 'revoked'])

const Credential = z.object({
  credential_id: z.string(),
  agent_name: z.string(),
  entity_type: entityType(ENTITY_TYPE),
  entity_id: z.string(),
  sandbox: z.boolean().describe('Every submission becomes a dry run'),
})

const IssuedCredential = Credential.extend({
  api_key: z.string().describe('Shown this once'),
  api_key_prefix: z.string(),
  message: z.string(),
}).meta({ id: 'IssuedAgentCredential' })

const ListedCredential = Credential.extend({
  api_key_prefix: z.string(),
  status,
  created_at: z.string().meta({ format: 'date-time' }),
  last_used_at: z.string().nullable().meta({ format: 'date-time' }),
}).meta({ id: 'AgentCredential' })

const RevokedCredential = z
  .object({ credential_id: z.string(), agent_name: z.string(), status })
  .meta({ id: 'RevokedAgentCredential' })

export const agentCredentialEndpoints = [
  endpoint({
    operation: 'issueAgentCredential',
    route: 'POST /agents',
    summary: 'Issue a credential to an agent of a payroll company or an employer',
    description: 'An `entity_id` that exists nowhere is accepted and grants nothing.',
    body: z.object({
      agent_name: text(REQUIRED),
      entity_type: entityType(REQUIRED),
      entity_id: text(REQUIRED),
      sandbox: withDefault(z.boolean('must be true or false'), false).describe(
        'Every submission becomes a dry run',
      ),
      created_by: optional(text(TEXT)),
    }),
    idempotent: REPEATED.secret,
    answers: { 201: IssuedCredential, 200: IssuedCredential },
    refuses: { 409: ['agent_key_taken', 'already_created'] },
    handle: (call) =>
      create(keyed(call), 'issue agent credential', {
        create: (context) => agentCredentials.issue(call.host.app, call.body, context),
        idOf: ({ credential }) => credential.credential_id,
        show: ({ credential, apiKey }) => ({ ...credential, api_key: apiKey, message: KEY_WARNING }),
        repeated: null,
      }),
  }),
  endpoint({
    operation: 'listAgentCredentials',
    route: 'GET /agents',
    summary: 'List the credentials of agents, newest first, without their keys',
    query: z.object({ entity_type: narrowing(entityType(ENTITY_TYPE)), entity_id: narrowing(z.string()) }),
    answers: { 200: z.object({ agents: z.array(ListedCredential).readonly(), count: z.int() }) },
    columns: {
      'credential id': 'credential_id',
      name: 'agent_name',
      entity: (row) => `${String(row.entity_type)} ${String(row.entity_id)}`,
      sandbox: 'sandbox',
      key: 'api_key_prefix',
      status: 'status',
      'last used': 'last_used_at',
    },
    async handle({ host, query }) {
      const agents = await listAgents(host.app, query)
      return { agents, count: agents.length }
    },
  }),
  endpoint({
    operation: 'revokeAgentCredential',
    route: 'POST /agents/{credential_id}/revoke',
    summary: 'End a credential for good, from the next request on',
    params: z.object({ credential_id: idOf('credential') }),
    answers: { 200: RevokedCredential },
    errors: { 404: 'There is no such credential' },
    handle: (call) => agentCredentials.revoke(call.host.app, call.params.credential_id, contextOf(call)),
  }),
]
