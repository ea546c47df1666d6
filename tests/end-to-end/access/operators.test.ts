// @module-tag each-log
import { beforeAll, describe, expect, test } from 'vitest'
import { OPERATOR_ROLES, type OperatorRole } from '../../../domain/access/operators.ts'
import type { Endpoint } from '../../../interfaces/endpoints/endpoint.ts'
import { agentCredentialEndpoints } from '../../../interfaces/mcp/access/agent-credentials.ts'
import { operatorEndpoints } from '../../../interfaces/operator-api/endpoints.ts'
import { AUDITING, CHANGING, rolesOf } from '../../../interfaces/operator-api/host/roles.ts'
import { type Answer, askOperator, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { until } from '../../support/workbench.ts'

let service: SharedService
let seeded: SeededTenant
const people = {} as Record<OperatorRole, { readonly operator_id: string; readonly token: string }>

const admin = (method: string, path: string, body?: unknown) => askOperator(service, method, path, body)
const as = (token: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  askOperator({ ...service, operatorToken: token }, method, path, body)
const by = (role: OperatorRole, method: string, path: string, body?: unknown) =>
  as(people[role].token, method, path, body)

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
  for (const role of OPERATOR_ROLES) {
    const { status, body } = await admin('POST', '/operators', { name: `Jo the ${role}`, role })
    expect(status).toBe(201)
    people[role] = body.data
  }
})

/** Each operation by its name and address; `reveal` is one more of those that open personal fields. */
const operations = [
  ...operatorEndpoints.flatMap((endpoint) => {
    const one = { name: endpoint.operation, endpoint, query: '', roles: rolesOf(endpoint) }
    const revealing = { ...one, name: `${one.name}?reveal`, query: 'reveal=true&', roles: AUDITING }
    return endpoint.query?.shape.reveal ? [one, revealing] : [one]
  }),
  ...agentCredentialEndpoints.map((endpoint) => ({
    ...{ name: endpoint.operation, query: '', roles: CHANGING },
    endpoint: endpoint as unknown as Endpoint<never>,
  })),
]

describe('an operation', () => {
  test('of the operator API is for the roles that it declares, and the credential routes are for admins and operators', async () => {
    const host = (one: (typeof operations)[number]) =>
      one.endpoint.api.name === 'operator' ? service.opsUrl : service.mcpUrl
    const found: Record<string, string> = {}
    for (const one of operations) {
      const { method, path, api } = one.endpoint
      // what no endpoint knows is refused after the role, and before anything is done
      const url = `${host(one)}${api.prefixes[0]}${path.replace(/\{\w+\}/g, 'f'.repeat(24))}?${one.query}none=1`
      const statuses = await Promise.all(
        OPERATOR_ROLES.map(async (role) => {
          const headers = { Authorization: `Bearer ${people[role].token}` }
          return (await send(url, { method, headers })).status
        }),
      )
      found[one.name] = statuses.join()
    }
    const declared = operations.map(({ name, roles }) => [
      name,
      OPERATOR_ROLES.map((role) => (roles.includes(role) ? 400 : 403)).join(),
    ])
    expect(found).toEqual(Object.fromEntries(declared))
  })

  test('that changes something is for admins and operators, but for those on operators and what auditors prove', () => {
    const unusual = operations
      .filter(({ endpoint, roles }) => roles !== (endpoint.method === 'GET' ? OPERATOR_ROLES : CHANGING))
      .map(({ name, roles }) => `${name}: ${roles.join(' ')}`)
    expect(unusual.sort()).toEqual([
      'cosignCheckpoint: admin operator auditor',
      'createOperator: admin',
      'exportSubject: admin operator auditor',
      'listAgentCredentials: admin operator',
      'listEmployeeRegister?reveal: admin operator auditor',
      'listEvents?reveal: admin operator auditor',
      'listOutbox: admin operator auditor',
      'listStreamEvents?reveal: admin operator auditor',
      'makeCheckpoint: admin operator auditor',
      'proveEvent: admin operator auditor',
      'revokeOperator: admin',
      'rotateOperator: admin',
      'showMicroDeposits: admin operator auditor',
      'showStory?reveal: admin operator auditor',
      'verifyLog: admin operator auditor',
    ])
  })
})

describe('an operator', () => {
  test('is listed with name and role, and never with a token', async () => {
    const { body } = await admin('GET', '/operators')
    expect(body.data[0]).toEqual({
      operator_id: 'operator',
      name: 'First admin',
      role: 'admin',
      status: 'active',
      created_at: null,
      expires_at: null,
    })
    const { token, ...auditor } = people.auditor
    expect(body.data).toContainEqual({ ...auditor, name: 'Jo the auditor' })
    expect(JSON.stringify(body)).not.toContain(token)
  })

  test('stands in the events as who did it, without name and token', async () => {
    const { status } = await by('operator', 'PATCH', `/employers/${seeded.employerId}`, {
      legal_name: 'Renamed LLC',
    })
    expect(status).toBe(200)
    const { body } = await by('auditor', 'GET', `/streams/employer-${seeded.employerId}`)
    expect(body.data.at(-1).metadata.actor).toEqual({ type: 'operator', id: people.operator.operator_id })
    const events = await by('auditor', 'GET', '/streams/operators-service?limit=1000')
    expect(events.text).not.toContain('Jo the')
    expect(events.text).not.toContain(people.operator.token)
    const state = await by('auditor', 'GET', '/streams/operators-service/state')
    expect(state.body.data.state[people.operator.operator_id]).toMatchObject({
      name: '•••',
      token_hash: '•••',
    })
  })

  test('is named in the log with the id where the role does not suffice', async () => {
    expect((await by('support', 'POST', '/debit-batches')).status).toBe(403)
    const told = `"reason":"role","operator_id":"${people.support.operator_id}"`
    await until(async () => (await service.output()).some((line) => line.includes(told)))
  })

  test('with the role support reads masked what others read in plain', async () => {
    const read = async (role: OperatorRole) =>
      (await by(role, 'GET', `/employers/${seeded.employerId}`)).body.data
    expect(await read('auditor')).toMatchObject({ fein: seeded.fein, legal_name: 'Renamed LLC' })
    expect(await read('support')).toMatchObject({
      fein: '•••',
      contact_email: '•••',
      legal_name: 'Renamed LLC',
    })
  })

  test('who audits opens personal fields for a reason, which is recorded', async () => {
    const path = `/streams/employer-${seeded.employerId}?reveal=true`
    const refused = await by('auditor', 'GET', path)
    expect([refused.status, refused.body.field]).toEqual([400, 'reason'])
    const { status, body } = await by('auditor', 'GET', `${path}&reason=Case%207`)
    expect([status, body.data[0].data.fein]).toEqual([200, seeded.fein])
    const { body: events } = await admin('GET', '/events?type=OperatorActed&limit=1000')
    expect(events.data.at(-1)).toMatchObject({
      data: { action: 'reveal', details: { reason: 'Case 7' } },
      metadata: { actor: { type: 'operator', id: people.auditor.operator_id } },
    })
  })

  test('is refused from the next request on: the old token after a rotation, any after the revocation', async () => {
    const { operator_id, token } = (await admin('POST', '/operators', { name: 'Sam', role: 'support' })).body
      .data
    const status = async (with_: string) => (await as(with_, 'GET', '/work')).status
    expect(await status(token)).toBe(200)
    const rotated = await admin('POST', `/operators/${operator_id}/rotate`)
    expect(rotated.body.data).toMatchObject({ operator_id, name: 'Sam', role: 'support', status: 'active' })
    const next = rotated.body.data.token
    expect([await status(token), await status(next)]).toEqual([401, 200])
    const revoked = await admin('POST', `/operators/${operator_id}/revoke`, { reason: 'Left' })
    expect(revoked.body.data).toMatchObject({ operator_id, status: 'revoked' })
    expect(await status(next)).toBe(401)
    const again = await admin('POST', `/operators/${operator_id}/rotate`)
    expect([again.status, again.body.code]).toEqual([409, 'operator_revoked'])
  })

  test.each([
    [{ name: 'Sam', role: 'root' }, 'role'],
    [{ name: 'Sam' }, 'role'],
    [{ name: ' ', role: 'support' }, 'name'],
    [{ name: 'Sam', role: 'support', expires_at: 'tomorrow' }, 'expires_at'],
    [{ name: 'Sam', role: 'support', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
  ])('is not created from %j', async (body, field) => {
    const refused = await admin('POST', '/operators', body)
    expect([refused.status, refused.body.field]).toEqual([400, field])
  })

  test('is created once for a key, and the token is not told again', async () => {
    const headers = { 'Idempotency-Key': `operator-${people.admin.operator_id}` }
    const create = () => askOperator(service, 'POST', '/operators', { name: 'Kim', role: 'support' }, headers)
    const first = await create()
    const second = await create()
    expect([first.status, second.status]).toEqual([201, 409])
    expect(second.text).toContain(first.body.data.operator_id)
    expect(second.text).not.toContain('op_')
  })
})
