import { afterAll, beforeAll, expect, test } from 'vitest'
import { post } from '../support/core.ts'
import { type Answer, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '30' } })
  tenant = await seedTenant(service)
})
afterAll(() => service?.stop())

const REPORTS = '/api/v1/payroll/reports'

function many(count: number, headers: Record<string, string>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, () => post(service, REPORTS, headers, '{}')))
}

function expectLimited(answers: readonly Answer[], passed: number): void {
  const limited = answers.filter((answer) => answer.status === 429)
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([passed, 429]))
  for (const answer of limited) {
    expect(answer.body).toEqual({ error: expect.any(String), message: expect.any(String) })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  }
}

test('a client over its rate is 429, while another passes', async () => {
  const other = await seedTenant(service)
  expectLimited(await many(200, tenant.clientHeaders), 400)
  expect((await many(1, other.clientHeaders))[0]!.status).toBe(400)
})

test('an address without valid credentials is 429, while a client from there passes', async () => {
  const fresh = await seedTenant(service)
  expectLimited(await many(200, { 'X-Client-ID': 'x', 'X-Client-Secret': 'y' }), 401)
  expect((await many(1, fresh.clientHeaders))[0]!.status).toBe(400)
})
