import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import * as agentCredentials from '../../../application/access/agent-credentials.ts'
import { apiKeyHash, authenticateAgent } from '../../../application/access/agent-scope.ts'
import * as apiClients from '../../../application/access/api-clients.ts'
import { authenticateClient } from '../../../application/access/client-authentication.ts'
import * as inboundConnections from '../../../application/access/inbound-connections.ts'
import * as tenants from '../../../application/access/tenants.ts'
import type { Application } from '../../../application/commands/application.ts'
import { oncePerKey } from '../../../application/commands/keyed-call.ts'
import { agentCredential } from '../../../domain/access/agent-credential.ts'
import { inboundConnection } from '../../../domain/access/inbound-connection.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  openRegistrationProcesses,
  operatorContext,
  type RegistrationProcesses,
  waitingBefore,
} from '../../support/registrations.ts'
import { shortPauses } from '../../support/short-pauses.ts'

let processes: RegistrationProcesses
let one: Application
let two: Application
let tenantId: string

const openProcess = async () => (await processes.open()).app

beforeAll(async () => {
  processes = await openRegistrationProcesses()
  one = processes.one.app
  two = processes.two.app
  tenantId = accepted(await tenants.register(one, { name: 'Tenant' }, operatorContext())).tenant_id
})
afterAll(() => processes?.close())

const newClient = (): Parameters<typeof apiClients.issue>[1] => ({
  tenant_id: tenantId,
  name: 'Client',
  environment: 'live',
  products: ['all'],
  carrier_ids: 'all',
  employer_ids: 'all',
  request_signing: 'off',
})

interface Created {
  readonly id: string
  readonly secret: string
}

/** What hands out a secret once: how it is made, and whether its secret lets anybody in. */
interface Kind {
  readonly category: string
  readonly type: string
  create(app: Application, commandId: string): Promise<Created | Rejection>
  works(app: Application, created: Created): Promise<boolean>
}

const KINDS: readonly (readonly [string, Kind])[] = [
  [
    'an agent credential',
    {
      category: 'agentCredential',
      type: 'AgentCredentialIssued',
      async create(app, commandId) {
        const issued = await agentCredentials.issue(
          app,
          {
            agent_name: 'Agent',
            entity_type: 'employer',
            entity_id: 'nobody',
            sandbox: false,
            created_by: null,
          },
          operatorContext(commandId),
        )
        return isRejection(issued) ? issued : { id: issued.credential.credential_id, secret: issued.apiKey }
      },
      works: async (app, { id, secret }) => (await authenticateAgent(app, secret))?.credential_id === id,
    },
  ],
  [
    'an API client',
    {
      category: 'apiClient',
      type: 'ApiClientIssued',
      async create(app, commandId) {
        const issued = await apiClients.issue(app, newClient(), operatorContext(commandId))
        return isRejection(issued) ? issued : { id: issued.client.client_id, secret: issued.clientSecret }
      },
      works: async (app, { id, secret }) => typeof (await authenticateClient(app, id, secret)) === 'object',
    },
  ],
  [
    'an inbound connection',
    {
      category: 'inboundConnection',
      type: 'InboundConnectionOpened',
      async create(app, commandId) {
        const opened = await inboundConnections.open(
          app,
          { tenant_id: tenantId, environment: 'live' },
          operatorContext(commandId),
        )
        return isRejection(opened) ? opened : { id: opened.connection.connection_id, secret: opened.secret }
      },
      async works(app, { id, secret }) {
        const { state } = await app.commands.load(inboundConnection, id)
        return state?.status === 'active' && (await app.vault.get(state.secret_ref)) === secret
      },
    },
  ],
]

async function createdBy(type: string): Promise<number> {
  const page = await one.log.readAll({ after: 0n, maxCount: 10_000, types: [type] })
  return page.events.length
}

describe.each(KINDS)('%s', (_, kind) => {
  const { category, type } = kind
  /** The creation under an idempotency key. */
  async function keyed(app: Application, key: string): Promise<Created | Rejection> {
    const request = { caller: 'operator', operation: category, key, sent: { category } }
    const outcome = await oncePerKey(
      app,
      { ...request, context: operatorContext() },
      {
        async run({ commandId }) {
          const created = await kind.create(app, commandId)
          return isRejection(created) ? created : { status: 201, body: created, createdId: created.id }
        },
        secretAnswer: true,
      },
    )
    return isRejection(outcome) ? outcome : (outcome.body as Created)
  }

  test('that was stored and never answered is one: a retry is a conflict that names it', async () => {
    onTestFinished(shortPauses())
    const before = await createdBy(type)
    const key = randomUUID()
    await expect(keyed(crashingAt(one, { category, at: 'after' }), key)).rejects.toThrow(Crashed)
    const page = await one.log.readAll({ after: 0n, maxCount: 10_000, types: [type] })
    const id = page.events.at(-1)!.stream.slice(category.length + 1)
    for (const app of [await openProcess(), one]) {
      const retried = await keyed(app, key)
      expect(retried).toMatchObject({ rejected: true, kind: 'conflict' })
      expect(retried).toMatchObject({ message: expect.stringContaining(id) })
    }
    expect(await createdBy(type)).toBe(before + 1)
  })

  test('that was not stored is made by a retry, and its secret works', async () => {
    onTestFinished(shortPauses())
    const before = await createdBy(type)
    const key = randomUUID()
    await expect(keyed(crashingAt(one, { category, at: 'before' }), key)).rejects.toThrow(Crashed)
    const created = await keyed(two, key)
    if (isRejection(created)) throw new Error(created.message)
    for (const app of [one, two]) expect(await kind.works(app, created)).toBe(true)
    expect(await createdBy(type)).toBe(before + 1)
  })

  test('that a slow attempt and one that took over make is one, and the secret shown works', async () => {
    const before = await createdBy(type)
    const commandId = randomUUID()
    const late = waitingBefore(one, category)
    const slow = kind.create(late.app, commandId)
    await late.arrived
    const created = await kind.create(two, commandId)
    late.goOn()
    expect(await slow).toMatchObject({ rejected: true, code: 'already_created' })
    if (isRejection(created)) throw new Error(created.message)
    expect(await kind.works(one, created)).toBe(true)
    expect(await createdBy(type)).toBe(before + 1)
  })

  test('that many attempts make at once is one, and only its secret is shown', async () => {
    const before = await createdBy(type)
    const commandId = randomUUID()
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_unused, index) => kind.create(index % 2 === 0 ? one : two, commandId)),
    )
    const shown = outcomes.filter((outcome) => !isRejection(outcome))
    expect(shown).toHaveLength(1)
    expect(await kind.works(two, shown[0] as Created)).toBe(true)
    expect(await createdBy(type)).toBe(before + 1)
  })
})

test('a rotation that is retried hands out no secret that does not work', async () => {
  const { client } = accepted(await apiClients.issue(one, newClient(), operatorContext()))
  const context = operatorContext()
  const rotated = accepted(await apiClients.rotate(one, client.client_id, context))
  expect(await apiClients.rotate(two, client.client_id, context)).toMatchObject({
    ...{ rejected: true, kind: 'conflict', code: 'already_created' },
    message: expect.stringContaining(client.client_id),
  })
  expect(typeof (await authenticateClient(one, client.client_id, rotated.clientSecret))).toBe('object')
  accepted(await apiClients.rotate(one, client.client_id, operatorContext()))
})

test('a key of an earlier release, whose credential is named after it, still lets its agent in', async () => {
  const apiKey = `mcp_${'ab'.repeat(32)}`
  const credentialId = apiKeyHash(apiKey).slice(0, 24)
  const data = {
    credential_id: credentialId,
    agent_name: 'Old',
    entity_type: 'employer' as const,
    entity_id: 'x',
    sandbox: false,
    key_hash: apiKeyHash(apiKey),
    api_key_prefix: apiKey.slice(0, 12),
    created_by: null,
  }
  await one.commands.execute(agentCredential, credentialId, { type: 'Issue', data }, operatorContext())
  for (const app of [one, two]) {
    expect((await authenticateAgent(app, apiKey))?.credential_id).toBe(credentialId)
  }
  await one.commands.execute(agentCredential, credentialId, { type: 'Revoke' }, operatorContext())
  for (const app of [one, two]) expect(await authenticateAgent(app, apiKey)).toBe(null)
})
