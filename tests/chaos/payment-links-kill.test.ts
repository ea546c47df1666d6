import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { killTree } from '../support/chaos.ts'
import { linkBody, linkOf, partner, raised } from '../support/payments.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

/** Sales that each go on until every step of theirs is answered. */
const SALES = 40
const KILLS = 4

let dataDir: string
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-links-'))
  service = await startService({ dataDir })
  tenant = await seedTenant(service, { policy: { status: 'in_progress' } })
})
afterAll(async () => {
  await service?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Sends a request again until it is answered, by whichever process is there. */
async function insist(request: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await request().catch(() => null)
    if (answer && answer.status < 500) return answer
    await delay(20)
  }
}

/** Creates a link, has it paid and refunds some of it. @returns its id. */
async function sell(number: number): Promise<string> {
  const body = linkBody(tenant, {
    customer: { name: 'Tidewater', email: `sale-${number}@payer.example` },
    metadata: { sale: String(number) },
  })
  const ask = (path: string, sent: unknown, key: string) =>
    insist(() => partner(service, tenant.clientHeaders, 'POST', path, sent, key))
  const created = await ask('/payment-links', body, `sale-${number}`)
  expect([200, 201]).toContain(created.status)
  const { _id } = created.body.data
  const paid = await insist(() =>
    send(`${service.opsUrl}/ops/v1/card-processor/${_id}/succeed`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.operatorToken}` },
      body: {},
    }),
  )
  expect(paid.status).toBe(200)
  const refunded = await ask(`/payment-links/${_id}/refund`, { amount_cents: 1_000 }, `refund-${number}`)
  expect([refunded.status, refunded.body.data.refunded_cents]).toEqual([200, 1_000])
  return _id
}

test('links, payments and refunds happen once, however often the service is killed', async () => {
  const sales = Promise.all(
    Array.from({ length: SALES }, async (_, number) => {
      // one after the other, so that each kill meets some at every step
      await delay(number * 100)
      return sell(number)
    }),
  )
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(900)
    await (kill % 2 === 0 ? service.kill() : killTree(service))
    service = await startService({ dataDir })
  }
  const ids = await sales
  expect(new Set(ids).size).toBe(SALES)

  const completed = await raised(service, tenant.tenantId, 'payment.completed')
  const refunded = await raised(service, tenant.tenantId, 'payment.refunded')
  const linksOf = (payloads: readonly { payment_link_id: string }[]) =>
    payloads.map(({ payment_link_id }) => payment_link_id).sort()
  expect(linksOf(completed)).toEqual([...ids].sort())
  expect(linksOf(refunded)).toEqual([...ids].sort())
  const { body } = await partner(service, tenant.clientHeaders, 'GET', '/payment-links?limit=200')
  expect(body.pagination.total).toBe(SALES)
  for (const [number, id] of ids.entries()) {
    const link = await linkOf(service, tenant, id)
    expect(link).toMatchObject({ status: 'paid', refunded_cents: 1_000, metadata: { sale: String(number) } })
    expect(link.refunds).toHaveLength(1)
    // who pays before the message is sent gets none
    const sent = await operate(service, 'GET', `/outbox?to=sale-${number}@payer.example`)
    expect(sent.length).toBeLessThanOrEqual(1)
    expect(sent.length).toBe(link.sent_at === null ? sent.length : 1)
  }
  expect((await operate(service, 'GET', `/policies/${tenant.policyId}`)).status).toBe('active')
})
