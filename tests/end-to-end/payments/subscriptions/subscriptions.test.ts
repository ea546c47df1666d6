import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { newClient } from '../../../support/intake.ts'
import { partner } from '../../../support/payments.ts'
import {
  type Answer,
  operate,
  type SeededTenant,
  seedCarrier,
  seedPolicy,
  seedTenant,
} from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'
import {
  createLink,
  type Json,
  subscribe,
  subscriptionBody,
  subscriptionOf,
  tenantWithCustomer,
  told,
} from '../../../support/subscriptions.ts'

let service: SharedService
let live: SeededTenant
let sandbox: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  live = await tenantWithCustomer(service)
  sandbox = await tenantWithCustomer(service, { environment: 'sandbox' })
})

const NOTHING = '0'.repeat(24)

function post(tenant: SeededTenant, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return partner(service, { ...tenant.clientHeaders, ...headers }, 'POST', '/subscriptions', body)
}

/** Headers of a further key of a tenant. */
const keyOf = async ({ tenantId }: SeededTenant, scope: Record<string, unknown>) =>
  (await newClient(service, tenantId, { environment: 'live', ...scope })).headers

describe('a subscription', () => {
  test('of a live key waits for its first payment', async () => {
    const made = await subscribe(service, live, { metadata: { region: 'west', source: 'me' } })
    expect(made).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      employer_id: live.employerId,
      carrier_id: live.carrierId,
      policy_id: live.policyId,
      payment_link_id: null,
      amount_cents: 5_000,
      currency: 'usd',
      interval: 'month',
      payment_method_id: 'pm_card_visa',
      status: 'incomplete',
      processor_subscription_id: expect.stringMatching(/^sub_/),
      scheduled_payments: [
        {
          _id: expect.stringMatching(/^[0-9a-f]{24}$/),
          installment_number: 1,
          due_at: made.created_at,
          amount_cents: 5_000,
          status: 'scheduled',
          failed_attempts: 0,
          paid_at: null,
        },
      ],
      metadata: { region: 'west', source: 'payment_api', api_client_id: live.tenantId },
      created_at: expect.any(String),
      updated_at: made.created_at,
      canceled_at: null,
      cancellation_reason: null,
    })
    expect(await subscriptionOf(service, live, made._id)).toEqual(made)
  })

  test('of a sandbox key is active at once, and raises a webhook', async () => {
    const tenant = await tenantWithCustomer(service, { environment: 'sandbox' })
    const made = await subscribe(service, tenant)
    expect(made.status).toBe('active')
    expect(made.scheduled_payments.map(({ status }: Json) => status)).toEqual(['paid', 'scheduled'])
    expect(await told(service, tenant.tenantId)).toEqual([
      [
        'subscription.created',
        {
          subscription_id: made._id,
          employer_id: tenant.employerId,
          policy_id: tenant.policyId,
          carrier_id: tenant.carrierId,
          amount_cents: 5_000,
          currency: 'usd',
          status: 'active',
          metadata: { source: 'payment_api', api_client_id: tenant.tenantId },
        },
      ],
    ])
  })

  test('whose card is declined stays incomplete, in the sandbox too', async () => {
    const made = await subscribe(service, sandbox, { payment_method_id: 'pm_card_declined' })
    expect(made.status).toBe('incomplete')
  })

  test('takes the carrier of a key for one carrier', async () => {
    const headers = await keyOf(live, { carrier_ids: [live.carrierId] })
    const { carrier_id: _, ...body } = subscriptionBody(live)
    const answer = await partner(service, headers, 'POST', '/subscriptions', body)
    expect([answer.status, answer.body.data?.carrier_id]).toEqual([201, live.carrierId])
  })
})

describe('a request for a subscription', () => {
  const without = (field: string) => ({ ...subscriptionBody(live), [field]: undefined })

  test.each([
    ['payment_method_id', 'pm card'],
    ['payment_method_id', 'p'.repeat(256)],
    ['metadata', { a: 'x'.repeat(64 * 1024) }],
  ])('is refused with %s = %j', async (field, value) => {
    const answer = await post(live, subscriptionBody(live, { [field]: value }))
    expect([answer.status, answer.body.error]).toEqual([400, 'Bad Request'])
    expect(answer.body.message).toContain(field)
  })

  test('is refused with a payment method that the processor does not know', async () => {
    for (const tenant of [live, sandbox]) {
      const answer = await post(tenant, subscriptionBody(tenant, { payment_method_id: '4242424242424242' }))
      expect([answer.status, answer.body.message]).toEqual([
        400,
        expect.stringContaining('payment_method_id'),
      ])
      expect(answer.text).not.toContain('42424242')
    }
  })

  test('needs a carrier from a key for several', async () => {
    const answer = await post(live, without('carrier_id'))
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('carrier_id')])
  })

  test.each(['employer_id', 'policy_id', 'carrier_id'])(
    'is refused where %s names nothing',
    async (field) => {
      const other = {
        employer_id: sandbox.employerId,
        policy_id: sandbox.policyId,
        carrier_id: sandbox.carrierId,
      }
      for (const id of [NOTHING, other[field as keyof typeof other], 'no-id']) {
        const answer = await post(live, subscriptionBody(live, { [field]: id }))
        expect([answer.status, answer.body.message]).toEqual([404, expect.stringContaining(field)])
      }
    },
  )

  test('is refused before the employer has a customer, which its first link brings', async () => {
    const tenant = await seedTenant(service)
    const refused = await post(tenant, subscriptionBody(tenant))
    expect([refused.status, refused.body.error]).toEqual([409, 'Conflict'])
    expect(refused.body.message).toContain('payment link')
    await createLink(service, tenant)
    expect((await post(tenant, subscriptionBody(tenant))).status).toBe(201)
  })
})

describe('an outage of the card processor', () => {
  const fault = (mode: string) =>
    operate(service, 'POST', '/faults', { point: 'card-processor', mode, times: 1 })
  const count = async (tenant: SeededTenant) =>
    (await partner(service, tenant.clientHeaders, 'GET', '/subscriptions')).body.pagination.total

  test.each(['unreachable', 'timeout'])('%s creates nothing, and the same key tries again', async (mode) => {
    const tenant = await tenantWithCustomer(service)
    const key = { 'Idempotency-Key': randomUUID() }
    await fault(mode)
    const refused = await post(tenant, subscriptionBody(tenant), key)
    expect([refused.status, refused.body]).toEqual([
      502,
      expect.objectContaining({
        ok: false,
        error: 'Bad Gateway',
        message: expect.stringMatching(/card processor/),
      }),
    ])
    expect(await count(tenant)).toBe(0)
    expect((await post(tenant, subscriptionBody(tenant), key)).status).toBe(201)
    expect(await count(tenant)).toBe(1)
    expect((await told(service, tenant.tenantId)).map(([type]) => type)).toEqual(['subscription.created'])
  })

  test.each(['unreachable', 'timeout', 'decline'])('%s cancels nothing', async (mode) => {
    const tenant = await tenantWithCustomer(service, { environment: 'sandbox' })
    const { _id: id } = await subscribe(service, tenant)
    await fault(mode)
    const cancel = () => partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${id}`)
    expect((await cancel()).status).toBe(mode === 'decline' ? 409 : 502)
    expect((await subscriptionOf(service, tenant, id)).status).toBe('active')
    expect((await cancel()).body.data.status).toBe('canceled')
    expect((await told(service, tenant.tenantId)).map(([type]) => type)).toEqual([
      'subscription.created',
      'subscription.cancelled',
    ])
  })
})

describe('reading subscriptions', () => {
  test('lists them newest first, by carrier and status, in pages', async () => {
    const tenant = await tenantWithCustomer(service, { environment: 'sandbox' })
    const other = await seedCarrier(service, tenant.tenantId)
    const policy = await seedPolicy(service, { employerId: tenant.employerId, carrierId: other })
    const ids: string[] = []
    for (const overrides of [{}, { carrier_id: other, policy_id: policy.policyId }, {}]) {
      ids.push((await subscribe(service, tenant, overrides))._id)
    }
    await partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${ids[0]}`)
    const list = async (query: string, headers = tenant.clientHeaders) =>
      (await partner(service, headers, 'GET', `/subscriptions${query}`)).body
    const idsOf = async (query: string, headers?: Record<string, string>) =>
      (await list(query, headers)).data.map(({ _id }: Json) => _id)

    expect(await idsOf('')).toEqual([ids[2], ids[1], ids[0]])
    expect(await idsOf(`?carrier_id=${other}`)).toEqual([ids[1]])
    expect(await idsOf('?status=canceled')).toEqual([ids[0]])
    expect(await idsOf('?status=past_due')).toEqual([])
    expect(await idsOf(`?status=active&carrier_id=${tenant.carrierId}`)).toEqual([ids[2]])
    expect(await list('?limit=2&page=2')).toMatchObject({
      data: [{ _id: ids[0] }],
      pagination: { page: 2, limit: 2, total: 3, total_pages: 2, has_more: false },
    })
    const narrow = { environment: 'sandbox' }
    expect(await idsOf('', await keyOf(tenant, { ...narrow, carrier_ids: [other] }))).toEqual([ids[1]])
    expect(await idsOf('', await keyOf(tenant, { ...narrow, employer_ids: [] }))).toEqual([])
  })
})

describe('cancelling', () => {
  test('ends a subscription in any status, once', async () => {
    const tenant = await tenantWithCustomer(service)
    const made = await subscribe(service, tenant)
    const cancel = () => partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${made._id}`)
    const first = await cancel()
    expect([first.status, first.body.data]).toMatchObject([
      200,
      {
        _id: made._id,
        status: 'canceled',
        cancellation_reason: 'requested',
        canceled_at: expect.any(String),
      },
    ])
    expect(first.body.data.scheduled_payments.map(({ status }: Json) => status)).toEqual(['cancelled'])
    const again = await cancel()
    expect([again.status, again.body]).toEqual([200, first.body])
    const events = await told(service, tenant.tenantId)
    expect(events.map(([type, { status }]) => [type, status])).toEqual([
      ['subscription.created', 'incomplete'],
      ['subscription.cancelled', 'canceled'],
    ])
  })
})

describe('simulated payments', () => {
  const simulate = (headers: Record<string, string>, id: string, verb: string) =>
    partner(service, headers, 'POST', `/sandbox/subscriptions/${id}/${verb}`, {})

  test('move a subscription of the sandbox', async () => {
    const tenant = await tenantWithCustomer(service, { environment: 'sandbox' })
    const { _id: id } = await subscribe(service, tenant)
    const steps = ['charge', 'fail', 'fail', 'charge']
    const seen: unknown[] = []
    for (const verb of steps) {
      const { status, body } = await simulate(tenant.clientHeaders, id, verb)
      const payments = body.data.scheduled_payments.map((one: Json) => one.status)
      seen.push([status, body.data.status, payments])
    }
    expect(seen).toEqual([
      [200, 'active', ['paid', 'paid', 'scheduled']],
      [200, 'past_due', ['paid', 'paid', 'failed', 'scheduled']],
      [200, 'past_due', ['paid', 'paid', 'failed', 'scheduled']],
      [200, 'active', ['paid', 'paid', 'paid', 'scheduled']],
    ])
    const events = (await told(service, tenant.tenantId)).slice(1)
    expect(events.map(([type, body]) => [type, body.installment_number])).toEqual([
      ['installment.paid', 2],
      ['installment.failed', 3],
      ['installment.failed', 3],
      ['installment.paid', 3],
    ])
    const { scheduled_payments } = await subscriptionOf(service, tenant, id)
    expect(events.at(-1)![1]).toEqual({
      subscription_id: id,
      payment_id: scheduled_payments[2]._id,
      installment_number: 3,
      amount_cents: 5_000,
      currency: 'usd',
      paid_at: scheduled_payments[2].paid_at,
    })
    await partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${id}`)
    for (const verb of ['charge', 'fail']) {
      expect((await simulate(tenant.clientHeaders, id, verb)).status).toBe(409)
    }
  })
})

describe('an operator', () => {
  const simulateProcessor = (id: string, verb: string, body: unknown = {}) =>
    operate(service, 'POST', `/card-processor/${id}/${verb}`, body)

  test('simulates the first payment of a live subscription, and what follows', async () => {
    const tenant = await tenantWithCustomer(service)
    const { _id: id } = await subscribe(service, tenant)
    const statuses: string[] = []
    for (const [verb, body] of [
      ['decline', { failure_code: 'insufficient_funds' }],
      ['succeed', {}],
      ['decline', {}],
      ['succeed', {}],
    ] as const) {
      const played = await simulateProcessor(id, verb, body)
      expect(played).toEqual({
        _id: id,
        kind: 'subscription',
        already_paid: false,
        outcome: verb === 'succeed' ? 'succeeded' : 'declined',
      })
      statuses.push((await subscriptionOf(service, tenant, id)).status)
    }
    expect(statuses).toEqual(['incomplete', 'active', 'past_due', 'active'])
    const events = await told(service, tenant.tenantId)
    expect(events.map(([type, body]) => [type, body.installment_number])).toEqual([
      ['subscription.created', undefined],
      ['installment.failed', 1],
      ['installment.paid', 1],
      ['installment.failed', 2],
      ['installment.paid', 2],
    ])
  })

  test('simulates payers of links', async () => {
    const tenant = await seedTenant(service)
    const { _id: id } = await createLink(service, tenant)
    expect(await simulateProcessor(id, 'decline')).toMatchObject({
      kind: 'payment_link',
      outcome: 'declined',
    })
    expect(await simulateProcessor(id, 'succeed')).toMatchObject({
      outcome: 'succeeded',
      already_paid: false,
    })
    expect(await simulateProcessor(id, 'succeed')).toMatchObject({ outcome: 'succeeded', already_paid: true })
    const link = await partner(service, tenant.clientHeaders, 'GET', `/payment-links/${id}`)
    expect(link.body.data.status).toBe('paid')
  })
})

test('the simulated card processor sends no notices', async () => {
  const answer = await fetch(`${service.paymentsUrl}/processor/notices`, { method: 'POST', body: '{}' })
  expect([answer.status, await answer.json()]).toMatchObject([404, { ok: false, error: 'Not Found' }])
})
