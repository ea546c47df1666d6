import type { NewAgentCredential } from '../../application/access/agent-credentials.ts'
import * as agentCredentials from '../../application/access/agent-credentials.ts'
import { listAgents } from '../../application/access/list-agents.ts'
import type { Application } from '../../application/application.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { runClaimed } from '../../application/idempotency/claims.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { requestIdOf, sendJson } from '../http/answers.ts'
import type { OperatorGate } from '../http/bearer.ts'
import { readJson, SMALL_BODY } from '../http/body.ts'
import { HttpError } from '../http/errors.ts'
import { idempotencyKeyOf, refusalOf } from '../http/rejections.ts'
import { queryOf, type Route } from '../http/server.ts'
import { isObject } from './json-rpc.ts'

const KEY_WARNING = 'Store the api_key now: only its hash is kept, and the key cannot be retrieved again.'
/** Characters of a name or identifier at the most. */
const MAX_TEXT = 200

/** The credential admin routes, for the operator alone. */
export function credentialRoutes(app: Application, operator: OperatorGate): readonly Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/agents',
      async handle(request, response) {
        await operator.require(request, response)
        const key = idempotencyKeyOf(request.headers)
        const { value } = await readJson(request, SMALL_BODY)
        const input = newCredential(value)
        const context = { ...operatorContext(requestIdOf(response)), tenantId: null, environment: null }
        const issue = async (within: CommandContext) => {
          const issued = await agentCredentials.issue(app, input, within)
          if (isRejection(issued)) throw refusalOf(issued)
          const { credential, apiKey } = issued
          return {
            status: 201,
            createdId: credential.credential_id,
            body: {
              credential_id: credential.credential_id,
              agent_name: credential.agent_name,
              entity_type: credential.entity_type,
              entity_id: credential.entity_id,
              sandbox: credential.sandbox,
              api_key: apiKey,
              api_key_prefix: credential.api_key_prefix,
              message: KEY_WARNING,
            },
          }
        }
        if (key === null) {
          const { status, body } = await issue({ ...context, commandId: app.randomness.commandId() })
          sendJson(response, status, body)
          return
        }
        const outcome = await runClaimed(
          app,
          {
            caller: 'operator',
            operation: 'issue agent credential',
            key,
            requestHash: await requestHash(value),
            context,
            secretAnswer: true,
          },
          issue,
        )
        if (isRejection(outcome)) throw refusalOf(outcome)
        sendJson(response, outcome.status, outcome.body)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/agents',
      async handle(request, response) {
        await operator.require(request, response)
        const query = queryOf(request)
        const entityType = query.get('entity_type') ?? null
        if (entityType !== null && !isEntityType(entityType)) throw badEntityType()
        const agents = await listAgents(app, { entityType, entityId: query.get('entity_id') ?? null })
        sendJson(response, 200, { agents, count: agents.length })
      },
    },
    {
      method: 'POST',
      path: '/api/v1/agents/:credential_id/revoke',
      async handle(request, response) {
        await operator.require(request, response)
        const revoked = await agentCredentials.revoke(app, String(request.params.credential_id), {
          ...operatorContext(requestIdOf(response)),
          commandId: app.randomness.commandId(),
        })
        if (isRejection(revoked)) throw refusalOf(revoked)
        const { credential_id, agent_name, status } = revoked
        sendJson(response, 200, { credential_id, agent_name, status })
      },
    },
  ]
}

function operatorContext(correlationId: string) {
  return { actor: { type: 'operator', id: 'operator' } as const, correlationId }
}

/** @throws HttpError 400 that names the field at fault. */
function newCredential(value: unknown): NewAgentCredential {
  if (!isObject(value)) throw invalid('The body must be a JSON object')
  const missing = ['agent_name', 'entity_type', 'entity_id'].filter(
    (field) => value[field] === undefined || value[field] === null || value[field] === '',
  )
  if (missing.length > 0) {
    throw new HttpError(400, 'Missing required fields', `Missing: ${missing.join(', ')}`)
  }
  const { entity_type, sandbox = false, created_by = null } = value
  if (!isEntityType(entity_type)) throw badEntityType()
  if (sandbox !== null && typeof sandbox !== 'boolean') throw invalid('sandbox must be true or false')
  return {
    agentName: text(value.agent_name, 'agent_name'),
    entityType: entity_type,
    entityId: text(value.entity_id, 'entity_id'),
    sandbox: sandbox ?? false,
    createdBy: created_by === null ? null : text(created_by, 'created_by'),
  }
}

function text(value: unknown, field: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT) return value
  throw invalid(`${field} must be a string of 1 to ${MAX_TEXT} characters`)
}

function isEntityType(value: unknown): value is AgentCredential['entity_type'] {
  return value === 'payroll_company' || value === 'employer'
}

function badEntityType(): HttpError {
  return invalid('entity_type must be payroll_company or employer')
}

function invalid(message: string): HttpError {
  return new HttpError(400, 'Invalid request', message)
}
