import { afterAll, beforeAll, expect, it } from 'vitest'
import { untilLimited } from '../support/rate-limits.ts'
import {
  type Answer,
  payrollRow,
  type SeededTenant,
  seedAgent,
  seedTenant,
  sendRpc,
} from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

let service: RunningService
let seeded: SeededTenant

beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '5' } })
  seeded = await seedTenant(service)
})
afterAll(() => service?.stop())

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

it('charges a credential for rows: other calls wait until they are paid for', async () => {
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

it('limits an address that presents no valid key, and nobody who has one', async () => {
  const { apiKey } = await seedAgent(service, { entity_type: 'employer', entity_id: seeded.employerId })
  const { passed, limited } = await untilLimited(20, () => sendRpc(service, null, ping))
  expect(passed.map(({ status }) => status)).toEqual(passed.map(() => 401))
  expectLimited(limited)
  expect((await sendRpc(service, apiKey, ping)).status).toBe(200)
})
