import { afterAll, beforeAll, expect, test } from 'vitest'
import { post } from '../support/core.ts'
import { untilLimited } from '../support/rate-limits.ts'
import { type Answer, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '2' } })
  tenant = await seedTenant(service)
})
afterAll(() => service?.stop())

const REPORTS = '/api/v1/payroll/reports'

const send = (headers: Record<string, string>): Promise<Answer> => post(service, REPORTS, headers, '{}')

/** Whoever is over the rate gets 429, and before that the given status. */
async function expectLimited(rate: number, headers: Record<string, string>, code: number): Promise<void> {
  const { passed, limited } = await untilLimited(rate, () => send(headers))
  expect(new Set(passed.map(({ status }) => status))).toEqual(new Set([code]))
  expect(limited.body).toEqual({ error: expect.any(String), message: expect.any(String) })
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
}

test('a client over its rate is 429, while another passes', async () => {
  const other = await seedTenant(service)
  await expectLimited(2, tenant.clientHeaders, 400)
  expect((await send(other.clientHeaders)).status).toBe(400)
})

test('an address without valid credentials is 429, while a client from there passes', async () => {
  const fresh = await seedTenant(service)
  await expectLimited(20, { 'X-Client-ID': 'x', 'X-Client-Secret': 'y' }, 401)
  expect((await send(fresh.clientHeaders)).status).toBe(400)
})
