import { beforeAll, describe, expect, it } from 'vitest'
import {
  callTool,
  operate,
  payrollRow,
  type SeededTenant,
  seedAgent,
  seedEmployer,
  seedPolicy,
  seedTenant,
  send,
  sendRpc,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

const admin = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  send(`${service.mcpUrl}/api/v1/agents${path}`, {
    method,
    headers: { Authorization: `Bearer ${service.operatorToken}`, ...headers },
    ...(body === undefined ? {} : { body }),
  })
const newAgent = (overrides: Record<string, unknown> = {}) => ({
  agent_name: 'Reporter',
  entity_type: 'employer',
  entity_id: seeded.employerId,
  ...overrides,
})
const ping = (apiKey: string | null, headers?: Record<string, string>) =>
  sendRpc(service, apiKey, { jsonrpc: '2.0', id: 'p', method: 'ping' }, headers)
const policiesFor = (apiKey: string, employerId: string) =>
  callTool(service, apiKey, 'list_employer_policies', { employer_id: employerId })

describe('credential admin routes', () => {
  it('create a credential whose key is shown this once', async () => {
    const { status, body } = await admin('POST', '', newAgent({ sandbox: true, created_by: 'ops' }))
    expect(status).toBe(201)
    expect(body).toEqual({
      credential_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      agent_name: 'Reporter',
      entity_type: 'employer',
      entity_id: seeded.employerId,
      sandbox: true,
      api_key: expect.stringMatching(/^mcp_[0-9a-f]{64}$/),
      api_key_prefix: body.api_key.slice(0, 12),
      message: expect.stringContaining('cannot be retrieved'),
    })
    const listed = await admin('GET', '')
    expect(listed.text).not.toContain(body.api_key)
    expect(listed.body.count).toBe(listed.body.agents.length)
    const one = listed.body.agents.find(
      (agent: { credential_id: string }) => agent.credential_id === body.credential_id,
    )
    expect(one).toEqual({
      credential_id: body.credential_id,
      agent_name: 'Reporter',
      entity_type: 'employer',
      entity_id: seeded.employerId,
      sandbox: true,
      api_key_prefix: body.api_key_prefix,
      status: 'active',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      last_used_at: null,
    })
  })

  it('tell when a credential was last used', async () => {
    const { credentialId, apiKey } = await seedAgent(service, newAgent())
    const lastUsed = async () =>
      (await admin('GET', `?entity_id=${seeded.employerId}`)).body.agents.find(
        (agent: { credential_id: string }) => agent.credential_id === credentialId,
      ).last_used_at
    expect(await lastUsed()).toBeNull()
    expect((await ping(apiKey)).status).toBe(200)
    expect(Date.parse(await lastUsed())).not.toBeNaN()
  })

  it('refuse what they do not know by its name, with the nearest one that they do', async () => {
    const listed = await admin('GET', '?entityType=employer')
    expect([listed.status, listed.body.message]).toEqual([
      400,
      'entityType is an unknown query parameter; did you mean entity_type?',
    ])
    const misspelt = await admin('POST', '', newAgent({ sandbx: true }))
    expect([misspelt.status, misspelt.body]).toEqual([
      400,
      expect.objectContaining({
        error: 'Invalid request',
        message: 'sandbx is an unknown field; did you mean sandbox?',
      }),
    ])
    const missing = await admin('POST', '', newAgent({ agent_name: undefined, agentName: 'x' }))
    expect(missing.body).toEqual(
      expect.objectContaining({
        error: 'Missing required fields',
        message: 'Missing: agent_name; agentName is an unknown field; did you mean agent_name?',
      }),
    )
    const { credentialId } = await seedAgent(service, newAgent())
    const revoked = await admin('POST', `/${credentialId}/revoke`, { reason: 'lost' })
    expect([revoked.status, revoked.body.message]).toEqual([
      400,
      'reason is an unknown field; none is taken here',
    ])
  })

  it('filter by entity type, by entity and by both', async () => {
    const entityId = 'a'.repeat(24)
    await seedAgent(service, { entity_type: 'employer', entity_id: entityId })
    await seedAgent(service, { entity_type: 'payroll_company', entity_id: entityId })
    const entities = async (query: string) =>
      (await admin('GET', query)).body.agents.map(
        (agent: { entity_type: string; entity_id: string }) => `${agent.entity_type} ${agent.entity_id}`,
      )
    expect(new Set(await entities(`?entity_id=${entityId}`))).toEqual(
      new Set([`employer ${entityId}`, `payroll_company ${entityId}`]),
    )
    expect(await entities(`?entity_type=employer&entity_id=${entityId}`)).toEqual([`employer ${entityId}`])
    const companies: string[] = await entities('?entity_type=payroll_company')
    expect(companies.length).toBeGreaterThanOrEqual(2)
    expect(companies.every((one) => one.startsWith('payroll_company '))).toBe(true)
    for (const nobody of ['nobody', '%00', '', `${entityId}%00`]) {
      expect(await entities(`?entity_id=${nobody}`)).toEqual([])
    }
    expect((await admin('GET', '?entity_type=carrier')).status).toBe(400)
  })

  it.each([
    [{ agent_name: undefined }, 'agent_name'],
    [{ entity_type: undefined }, 'entity_type'],
    [{ entity_id: '' }, 'entity_id'],
    [{ entity_type: 'carrier' }, 'entity_type'],
    [{ agent_name: 7 }, 'agent_name'],
    [{ sandbox: 'yes' }, 'sandbox'],
    [{ created_by: 7 }, 'created_by'],
  ])('refuse %j by naming the field', async (overrides, field) => {
    const { status, body } = await admin('POST', '', newAgent(overrides))
    expect(status).toBe(400)
    expect(Object.keys(body)).toEqual(['error', 'message', 'code', 'field', 'errors', 'doc_url'])
    expect(body.message).toContain(field)
  })

  it('open to the operator token alone', async () => {
    for (const [method, path] of [
      ['POST', ''],
      ['GET', ''],
      ['POST', `/${seeded.credentialId}/revoke`],
    ] as const) {
      for (const authorization of ['', 'Bearer wrong', `Basic ${service.operatorToken}`]) {
        const { status, body, headers } = await admin(method, path, undefined, {
          Authorization: authorization,
        })
        expect([status, Object.keys(body)]).toEqual([401, ['error', 'message', 'code', 'doc_url']])
        expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
      }
      const asAgent = await admin(method, path, undefined, { Authorization: `Bearer ${seeded.apiKey}` })
      expect(asAgent.status).toBe(403)
    }
    expect((await ping(seeded.apiKey)).status).toBe(200)
  })

  it('never hand out a second credential for one idempotency key', async () => {
    const headers = { 'Idempotency-Key': 'issue-1' }
    const first = await admin('POST', '', newAgent({ agent_name: 'Once' }), headers)
    expect(first.status).toBe(201)
    const second = await admin('POST', '', newAgent({ agent_name: 'Once' }), headers)
    expect(second.status).toBe(409)
    expect(second.body.message).toContain(first.body.credential_id)
    expect((await admin('POST', '', newAgent({ agent_name: 'Other' }), headers)).status).toBe(409)
    const { agents } = (await admin('GET', '')).body
    expect(agents.filter((agent: { agent_name: string }) => agent.agent_name === 'Once')).toHaveLength(1)
    expect((await admin('POST', '', newAgent(), { 'Idempotency-Key': 'two words' })).status).toBe(400)
  })

  it('revoke at once and for good', async () => {
    const { credentialId, apiKey } = await seedAgent(service, newAgent())
    expect((await ping(apiKey)).status).toBe(200)
    for (const _again of [1, 2]) {
      const { status, body } = await admin('POST', `/${credentialId}/revoke`)
      expect(status).toBe(200)
      expect(body).toEqual({ credential_id: credentialId, agent_name: 'Reporter', status: 'revoked' })
      const refused = await ping(apiKey)
      expect([refused.status, refused.body.error.code, refused.body.id]).toEqual([401, -32001, 'p'])
    }
    const { agents } = (await admin('GET', `?entity_id=${seeded.employerId}`)).body
    expect(
      agents.find((agent: { credential_id: string }) => agent.credential_id === credentialId),
    ).toMatchObject({ status: 'revoked' })
    expect((await admin('POST', `/${'0'.repeat(24)}/revoke`)).status).toBe(404)
    expect((await admin('POST', '/nobody/revoke')).status).toBe(404)
  })
})

describe('authentication', () => {
  it('refuses everything but an active key, on every method', async () => {
    const zeros = `mcp_${'0'.repeat(64)}`
    for (const authorization of ['', 'Bearer', `Bearer ${zeros}`, `Basic ${seeded.apiKey}`, seeded.apiKey]) {
      for (const method of ['ping', 'initialize', 'tools/list']) {
        const { status, headers, body } = await sendRpc(
          service,
          null,
          { jsonrpc: '2.0', id: 'x', method },
          { Authorization: authorization },
        )
        expect([status, body.error.code, body.id]).toEqual([401, -32001, 'x'])
        expect(headers.get('www-authenticate')).toBe('Bearer realm="mcp"')
      }
    }
    expect((await ping(null, { Authorization: `bearer ${seeded.apiKey}` })).status).toBe(200)
    expect((await sendRpc(service, null, '{oops')).body).toMatchObject({ id: null, error: { code: -32001 } })
    expect(
      (await sendRpc(service, service.operatorToken, { jsonrpc: '2.0', id: 1, method: 'ping' })).status,
    ).toBe(401)
  })
})

describe('scope', () => {
  it('of a payroll company follows its links at once', async () => {
    const linked = await seedEmployer(service, seeded)
    const unlinked = await seedEmployer(service, { tenantId: seeded.tenantId })
    const code = async (employerId: string) => (await policiesFor(seeded.apiKey, employerId)).error?.code
    expect(await code(seeded.employerId)).toBeUndefined()
    expect(await code(linked.employerId)).toBeUndefined()
    expect(await code(unlinked.employerId)).toBe(-32002)
    await operate(service, 'PATCH', `/employers/${unlinked.employerId}`, {
      payroll_company_ids: [seeded.payrollCompanyId],
    })
    expect(await code(unlinked.employerId)).toBeUndefined()
    await operate(service, 'PATCH', `/employers/${unlinked.employerId}`, { payroll_company_ids: [] })
    expect(await code(unlinked.employerId)).toBe(-32002)
  })

  it('of an employer is that employer', async () => {
    const other = await seedEmployer(service, seeded)
    const { apiKey } = await seedAgent(service, newAgent())
    expect((await policiesFor(apiKey, seeded.employerId)).error).toBeUndefined()
    expect((await policiesFor(apiKey, other.employerId)).error?.code).toBe(-32002)
  })

  it('holds for every tool that takes an employer, and hides which employers exist', async () => {
    const foreign = await seedTenant(service)
    const { apiKey } = await seedAgent(service, newAgent({ entity_id: 'nobody' }))
    const rows = { rows: [payrollRow()] }
    const policy = { policy_id: foreign.policyId }
    const messages = new Set<string>()
    for (const [name, rest] of [
      ['list_employer_policies', {}],
      ['get_expected_fields', policy],
      ['validate_payroll_submission', { ...policy, ...rows }],
      ['submit_payroll_data', { ...policy, ...rows }],
    ] as const) {
      for (const key of [seeded.apiKey, apiKey]) {
        for (const employer_id of [foreign.employerId, '0'.repeat(24), 'nobody']) {
          const { error } = await callTool(service, key, name, { employer_id, ...rest })
          expect([name, employer_id, error?.code]).toEqual([name, employer_id, -32002])
          messages.add(error!.message)
        }
      }
    }
    expect(messages.size).toBe(1)
  })

  it('knows a policy only with its own employer', async () => {
    const other = await seedEmployer(service, seeded)
    const { policyId } = await seedPolicy(service, {
      employerId: other.employerId,
      carrierId: seeded.carrierId,
    })
    for (const policy_id of [policyId, '0'.repeat(24), 'nobody']) {
      for (const [name, rest] of [
        ['get_expected_fields', {}],
        ['validate_payroll_submission', { rows: [payrollRow()] }],
        ['submit_payroll_data', { rows: [payrollRow()] }],
      ] as const) {
        const given = { employer_id: seeded.employerId, policy_id, ...rest }
        const { error } = await callTool(service, seeded.apiKey, name, given)
        expect(error).toMatchObject({ code: -32602, data: { field: 'policy_id' } })
      }
    }
  })

  it('of submissions is their employer’s', async () => {
    const { result } = await callTool(service, seeded.apiKey, 'submit_payroll_data', {
      employer_id: seeded.employerId,
      policy_id: seeded.policyId,
      rows: [payrollRow()],
    })
    const foreign = await seedTenant(service)
    for (const name of ['get_submission_status', 'get_validation_errors']) {
      for (const given of [{ submission_id: result.submission_id }, { file_id: result.file_id }]) {
        expect((await callTool(service, seeded.apiKey, name, given)).error).toBeUndefined()
        expect((await callTool(service, foreign.apiKey, name, given)).error?.code).toBe(-32002)
      }
      for (const field of ['submission_id', 'file_id']) {
        for (const unknown of ['0'.repeat(24), 'nobody']) {
          expect((await callTool(service, seeded.apiKey, name, { [field]: unknown })).error).toMatchObject({
            code: -32602,
            data: { field },
          })
        }
      }
    }
  })
})
