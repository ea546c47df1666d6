import { beforeAll, describe, expect, test } from 'vitest'
import { linkBody, partner } from '../../support/payments.ts'
import { type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { subscriptionBody } from '../../support/subscriptions.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

const create = (overrides: Readonly<Record<string, unknown>>) =>
  partner(service, tenant.clientHeaders, 'POST', '/payment-links', linkBody(tenant, overrides))
const installments = (months: number, down: number) => ({
  payment_type: 'DIRECT_BILLING',
  total_installments: months,
  down_payment_months: down,
})

describe('a charge is no larger than card processors take', () => {
  const quiet = { fee_cents: 0, delivery: { email: false } }

  test.each([
    ['a link', { ...quiet, premium_cents: 100_000_000 }],
    ['a link with a fee', { ...quiet, premium_cents: 99_999_999, fee_cents: 1 }],
    ['a down payment', { ...quiet, premium_cents: 400_000_000, ...installments(4, 3) }],
    ['an installment', { ...quiet, premium_cents: 250_000_000, ...installments(2, 1) }],
  ])('of %s', async (_, body) => {
    const { status, body: answer } = await create(body)
    expect([status, answer.message]).toEqual([
      400,
      expect.stringMatching(/^premium_cents .* 99999999 cents$/),
    ])
  })

  test('and may be as large', async () => {
    expect((await create({ ...quiet, premium_cents: 99_999_999 })).status).toBe(201)
    const plan = await create({ ...quiet, premium_cents: 399_999_996, ...installments(4, 1) })
    expect([plan.status, plan.body.data.link_amount_cents]).toEqual([201, 99_999_999])
  })
})

describe('metadata', () => {
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`key ${n}`, 'x']))

  test('of a link may have 500 pairs, and no more', async () => {
    const { status, body } = await create({ metadata: pairs(501), delivery: { email: false } })
    expect([status, body.message]).toEqual([400, 'metadata must not have more than 500 pairs'])
    expect((await create({ metadata: pairs(500), delivery: { email: false } })).status).toBe(201)
  })

  test('of a subscription, too', async () => {
    const ask = (metadata: unknown) =>
      partner(service, tenant.clientHeaders, 'POST', '/subscriptions', subscriptionBody(tenant, { metadata }))
    expect((await ask(pairs(501))).body.message).toBe('metadata must not have more than 500 pairs')
    const { status, body } = await ask(pairs(500))
    expect(status).toBe(201)
    expect(body.data.metadata).toEqual({
      ...pairs(500),
      api_client_id: tenant.tenantId,
      source: 'payment_api',
    })
  })
})
