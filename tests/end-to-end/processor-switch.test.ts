import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linkBody, newLink, partner } from '../support/payments.ts'
import { operate, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { StripeStandIn, stripeSettings } from '../support/stripe-stand-in.ts'
import { subscriptionBody } from '../support/subscriptions.ts'

let dataDir: string
let stripe: StripeStandIn
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-'))
  stripe = await StripeStandIn.start()
  service = await startService({ dataDir })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await stripe?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const ask = (method: string, path: string, body?: unknown) =>
  partner(service, tenant.clientHeaders, method, path, body)

test('who goes on with another card processor keeps its employers, and nothing is asked of it about what it never had', async () => {
  const open = await newLink(service, tenant, { delivery: { email: false } })
  const paid = await newLink(service, tenant, { delivery: { email: false } })
  await operate(service, 'POST', `/card-processor/${paid._id}/succeed`)
  await operate(service, 'POST', '/drain')
  await service.stop()
  service = await startService({ dataDir, env: stripeSettings(stripe) })

  const elsewhere = { message: expect.stringContaining('at another card processor (simulated)') }
  const cancelled = await ask('DELETE', `/payment-links/${open._id}`)
  expect([cancelled.status, cancelled.body]).toEqual([409, expect.objectContaining(elsewhere)])
  const refunded = await ask('POST', `/payment-links/${paid._id}/refund`, {})
  expect([refunded.status, refunded.body]).toEqual([409, expect.objectContaining(elsewhere)])
  expect((await ask('GET', `/payment-links/${paid._id}`)).body.data.refunds).toEqual([])

  // the employer has a customer at the other one only
  const subscription = subscriptionBody(tenant, { payment_method_id: stripe.method('pm_new') })
  expect((await ask('POST', '/subscriptions', subscription)).status).toBe(409)
  expect((await ask('POST', '/payment-links', linkBody(tenant, { delivery: { email: false } }))).status).toBe(
    201,
  )
  expect(stripe.customers.size).toBe(1)
  const subscribed = await ask('POST', '/subscriptions', subscription)
  expect([subscribed.status, subscribed.text]).toEqual([201, expect.any(String)])
})
