import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyWebhook } from '../../../clients/node/index.ts'
import { cli } from '../../support/cli.ts'
import { newPartner, type Partner, registerWebhook } from '../../support/partners.ts'
import { operate, type SeededTenant, seedEmployer, seedPolicy, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

/** Events of the sandbox on their way from a command line to the endpoints of partners. */

let service: SharedService
let receiver: Receiver
let tenant: SeededTenant
let partner: Partner
beforeAll(async () => {
  service = await sharedService()
  receiver = await startReceiver()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  partner = await newPartner(service, tenant.tenantId, { environment: 'sandbox' })
})
afterAll(() => receiver?.stop())

const at = (path: string) => receiver.requests.filter((one) => one.path === path)

async function newLink(of: { employerId: string; policyId: string }): Promise<string> {
  const { status, body, text } = await partner.call('POST', '/payment-links', {
    employer_id: of.employerId,
    carrier_id: tenant.carrierId,
    policy_id: of.policyId,
    premium_cents: 120_000,
    payment_type: 'ONE_TIME',
    payment_context: 'down_payment',
    customer: { name: 'Ada Moss', email: 'ada@bakery.example' },
  })
  expect([status, text]).toEqual([201, expect.any(String)])
  return body.data._id
}

test('reach who subscribed to their type, in whose scope they lie, and nobody else', async () => {
  const other = await seedEmployer(service, { tenantId: tenant.tenantId, environment: 'sandbox' })
  const { policyId } = await seedPolicy(service, {
    employerId: other.employerId,
    carrierId: tenant.carrierId,
  })
  const narrow = await newPartner(service, tenant.tenantId, {
    environment: 'sandbox',
    employer_ids: [tenant.employerId],
  })
  const { secret } = await registerWebhook(partner, `${receiver.url}/all`)
  await registerWebhook(partner, `${receiver.url}/refunds`, ['payment.refunded'])
  await registerWebhook(narrow, `${receiver.url}/narrow`)
  const links = [await newLink(tenant), await newLink({ employerId: other.employerId, policyId })]
  for (const link of links) {
    const run = await cli(['webhooks', 'trigger', 'payment.completed', '--of', link, '--json'], {
      env: {
        COMPSTREAM_PAYMENTS_URL: service.paymentsUrl,
        COMPSTREAM_CLIENT_ID: partner.clientId,
        COMPSTREAM_CLIENT_SECRET: partner.clientSecret,
      },
    })
    expect([run.code, run.stderr]).toEqual([0, ''])
  }
  await operate(service, 'POST', '/drain')
  const events = at('/all').map(({ body, headers }) =>
    verifyWebhook({ payload: body, headers, secret, now: () => Number(headers['x-webhook-timestamp']) }),
  )
  // payments of two links come in any order
  expect(events).toHaveLength(links.length)
  for (const payment_link_id of links) {
    const data = expect.objectContaining({ payment_link_id, amount_cents: 120_000 })
    expect(events).toContainEqual(expect.objectContaining({ type: 'payment.completed', data }))
  }
  expect(at('/narrow').map(({ body }) => JSON.parse(String(body)).payment_link_id)).toEqual([links[0]])
  expect(at('/refunds')).toEqual([])
})
