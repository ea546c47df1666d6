import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { post } from '../../support/core.ts'
import { untilLimited } from '../../support/rate-limits.ts'
import {
  type Answer,
  payrollRow,
  type SeededTenant,
  seedAgent,
  seedTenant,
  sendRpc,
} from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

let service: RunningService
let seeded: SeededTenant

beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '5' } })
  seeded = await seedTenant(service)
})
afterAll(() => service?.stop())

describe('the tool server', () => {
  const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }

  function expectLimited(answer: Answer | undefined): void {
    const retryAfter = Number(answer?.headers.get('retry-after'))
    expect(retryAfter).toBeGreaterThanOrEqual(1)
    expect(answer?.body).toMatchObject({ error: { code: -32000, data: { retry_after: retryAfter } } })
  }

  it('limits each credential on its own, though the virtual clock stands still', async () => {
    const { passed, limited } = await untilLimited(5, () => sendRpc(service, seeded.apiKey, ping))
    expect(passed.map(({ status }) => status)).toEqual(passed.map(() => 200))
    expectLimited(limited)
    expect(limited.body.id).toBe(7)
    const other = await seedAgent(service, { entity_type: 'employer', entity_id: seeded.employerId })
    expect((await sendRpc(service, other.apiKey, ping)).status).toBe(200)
    await expect.poll(async () => (await sendRpc(service, seeded.apiKey, ping)).status).toBe(200)
  })

  it('counts every message of a batch', async () => {
    const { apiKey } = await seedAgent(service, { entity_type: 'employer', entity_id: seeded.employerId })
    const before = { tokens: 10, since: performance.now() }
    expect((await sendRpc(service, apiKey, Array(10).fill(ping))).status).toBe(200)
    expectLimited((await untilLimited(5, () => sendRpc(service, apiKey, ping), before)).limited)
  })

  it('limits an address that presents no valid key, and nobody who has one', async () => {
    const { apiKey } = await seedAgent(service, { entity_type: 'employer', entity_id: seeded.employerId })
    const { passed, limited } = await untilLimited(20, () => sendRpc(service, null, ping))
    expect(passed.map(({ status }) => status)).toEqual(passed.map(() => 401))
    expectLimited(limited)
    expect((await sendRpc(service, apiKey, ping)).status).toBe(200)
  })

  // unit/http/costs has what rows cost
  it('charges a credential for rows: other calls wait until they are paid for', {
    tags: 'long',
  }, async () => {
    const { apiKey } = await seedAgent(service, { entity_type: 'employer', entity_id: seeded.employerId })
    const params = {
      name: 'validate_payroll_submission',
      arguments: {
        employer_id: seeded.employerId,
        policy_id: seeded.policyId,
        rows: Array(50_000).fill(payrollRow()),
      },
    }
    const large = sendRpc(service, apiKey, { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    // a hundred tokens, of which a full bucket has ten and a second brings five; asking less often costs nothing
    let waits: Answer | undefined
    const retryAfter = async () => {
      waits = await sendRpc(service, apiKey, ping)
      return Number(waits.headers.get('retry-after'))
    }
    await expect.poll(retryAfter, { interval: 250 }).toBeGreaterThan(5)
    expectLimited(waits)
    expect((await large).body.result).toBeDefined()
  })
})

describe('the core API', () => {
  const send = (headers: Record<string, string>): Promise<Answer> =>
    post(service, '/api/v1/payroll/reports', headers, '{}')

  /** Requests over the rate are 429, those before have the given status. */
  async function expectLimited(rate: number, headers: Record<string, string>, code: number): Promise<void> {
    const { passed, limited } = await untilLimited(rate, () => send(headers))
    expect(new Set(passed.map(({ status }) => status))).toEqual(new Set([code]))
    expect(limited.body).toEqual({
      error: expect.any(String),
      message: expect.any(String),
      code: 'rate_limited',
      doc_url: `${service.coreUrl}/docs/errors#rate_limited`,
    })
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  }

  it('limits a client that is over its rate, while another passes', async () => {
    const other = await seedTenant(service)
    await expectLimited(5, seeded.clientHeaders, 400)
    expect((await send(other.clientHeaders)).status).toBe(400)
  })

  it('limits an address without valid credentials, while a client from there passes', async () => {
    const fresh = await seedTenant(service)
    await expectLimited(20, { 'X-Client-ID': 'x', 'X-Client-Secret': 'y' }, 401)
    expect((await send(fresh.clientHeaders)).status).toBe(400)
  })
})
