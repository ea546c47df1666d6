import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, send } from '../../../support/seed.ts'
import { type RunningService, startService } from '../../../support/service.ts'
import {
  advance,
  createLink,
  type Json,
  subscribe,
  subscriptionOf,
  tenantWithCustomer,
  told,
} from '../../../support/subscriptions.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

let service: RunningService

// a service of its own: years pass here
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.stop())

/** Those of the test that runs. */
const tenants: SeededTenant[] = []
async function newTenant(options: Parameters<typeof tenantWithCustomer>[1] = {}): Promise<SeededTenant> {
  const tenant = await tenantWithCustomer(service, options)
  tenants.push(tenant)
  return tenant
}
// what goes on would be charged in all the years of the tests behind it
afterEach(async () => {
  for (const { clientHeaders } of tenants.splice(0)) {
    const ask = (method: string, path: string) => partner(service, clientHeaders, method, path)
    const { body } = await ask('GET', '/subscriptions?limit=200')
    await Promise.all(body.data.map(({ _id }: Json) => ask('DELETE', `/subscriptions/${_id}`)))
  }
})

const now = async () => Date.parse((await operate(service, 'GET', '/clock')).now)
const simulate = (id: string, verb: 'succeed' | 'decline', body: unknown = {}) =>
  operate(service, 'POST', `/card-processor/${id}/${verb}`, body)
const payments = async (tenant: SeededTenant, id: string): Promise<Json[]> =>
  (await subscriptionOf(service, tenant, id)).scheduled_payments
const statuses = async (tenant: SeededTenant, id: string) =>
  (await payments(tenant, id)).map(({ status }) => status)
const statusOf = async (tenant: SeededTenant, id: string) =>
  (await subscriptionOf(service, tenant, id)).status

/** Moves the clock to a day and hour of the year after the present one. */
async function nextYear(month: number, day: number, hour: number): Promise<number> {
  const year = new Date(await now()).getUTCFullYear() + 1
  return advance(service, { to: Date.UTC(year, month - 1, day, hour, 30) })
}

/** A plan whose down payment is paid. @returns its subscription. */
async function plan(
  tenant: SeededTenant,
  terms: { readonly total_installments: number; readonly down_payment_months: number },
): Promise<{ readonly link: Json; readonly subscription: Json }> {
  const link = await createLink(service, tenant, {
    payment_type: 'DIRECT_BILLING',
    premium_cents: 120_000,
    ...terms,
    metadata: { quote: 'Q-7' },
  })
  await simulate(link._id, 'succeed')
  await operate(service, 'POST', '/drain')
  const { body } = await partner(service, tenant.clientHeaders, 'GET', '/subscriptions')
  return { link, subscription: body.data.find((one: Json) => one.payment_link_id === link._id) }
}

describe('a subscription whose first payment does not come', () => {
  test('is cancelled after 23 hours, and no event tells so', async () => {
    const tenant = await newTenant()
    const { _id: id } = await subscribe(service, tenant)
    await simulate(id, 'decline')
    const start = await now()
    await advance(service, { to: start + 23 * HOUR - 1_000 })
    expect(await statusOf(tenant, id)).toBe('incomplete')
    await advance(service, { to: start + 23 * HOUR })
    expect(await subscriptionOf(service, tenant, id)).toMatchObject({
      status: 'canceled',
      cancellation_reason: 'never_paid',
      canceled_at: new Date(start + 23 * HOUR).toISOString(),
    })
    expect((await told(service, tenant.tenantId)).map(([type]) => type)).toEqual([
      'subscription.created',
      'installment.failed',
    ])
    const late = await send(`${service.opsUrl}/ops/v1/card-processor/${id}/succeed`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.operatorToken}` },
      body: {},
    })
    expect(late.status).toBe(409)
  })

  test('goes on when it came in time', async () => {
    const tenant = await newTenant()
    const { _id: id } = await subscribe(service, tenant)
    await advance(service, { seconds: 22 * 3_600 })
    await simulate(id, 'succeed')
    await advance(service, { seconds: 2 * 3_600 })
    expect(await statusOf(tenant, id)).toBe('active')
  })
})

describe('a standalone subscription', () => {
  test('is charged every month on the day it began, clamped to the month', async () => {
    const tenant = await newTenant({ environment: 'sandbox' })
    const start = await nextYear(1, 31, 9)
    const year = new Date(start).getUTCFullYear()
    const { _id: id } = await subscribe(service, tenant)
    await advance(service, { to: Date.UTC(year, 5, 30, 12) })
    const february = new Date(Date.UTC(year, 2, 0)).getUTCDate()
    const days = [`01-31`, `02-${february}`, '03-31', '04-30', '05-31', '06-30', '07-31']
    const charges = await payments(tenant, id)
    expect(charges.map(({ due_at }) => due_at)).toEqual(days.map((day) => `${year}-${day}T09:30:00.000Z`))
    expect(charges.map(({ status }) => status)).toEqual([...Array(6).fill('paid'), 'scheduled'])
    // each at its time, though the clock jumped
    expect(charges.slice(0, 6).map(({ paid_at }) => paid_at)).toEqual(
      charges.slice(0, 6).map(({ due_at }) => due_at),
    )
    const events = await told(service, tenant.tenantId)
    expect(events.map(([type, { installment_number }]) => [type, installment_number])).toEqual([
      ['subscription.created', undefined],
      ...[2, 3, 4, 5, 6].map((number) => ['installment.paid', number]),
    ])
  })

  test('is charged no more once it is cancelled', async () => {
    const tenant = await newTenant({ environment: 'sandbox' })
    const { _id: id } = await subscribe(service, tenant)
    await advance(service, { seconds: 35 * 86_400 })
    await partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${id}`)
    await advance(service, { seconds: 70 * 86_400 })
    expect(await statuses(tenant, id)).toEqual(['paid', 'paid', 'cancelled'])
  })
})

describe('a declined card', () => {
  test('is tried again after 1, 3, 5 and 7 days, then the subscription is over, without an event of its own', async () => {
    const tenant = await newTenant({ environment: 'sandbox' })
    const { _id: id } = await subscribe(service, tenant)
    await advance(service, { seconds: 10 * 86_400 })
    await simulate(id, 'decline')
    const first = await now()
    const seen: unknown[] = []
    for (const [days, hours] of [
      [0, 0],
      [1, -1],
      [1, 0],
      [3, -1],
      [3, 0],
      [5, -1],
      [5, 0],
      [7, -1],
      [7, 0],
    ]) {
      await advance(service, { to: first + days! * DAY + hours! * HOUR })
      const { status, scheduled_payments } = await subscriptionOf(service, tenant, id)
      seen.push([status, scheduled_payments[1].failed_attempts])
    }
    expect(seen).toEqual([
      ['past_due', 1],
      ['past_due', 1],
      ['past_due', 2],
      ['past_due', 2],
      ['past_due', 3],
      ['past_due', 3],
      ['past_due', 4],
      ['past_due', 4],
      ['canceled', 5],
    ])
    expect(await subscriptionOf(service, tenant, id)).toMatchObject({ cancellation_reason: 'payment_failed' })
    expect(await statuses(tenant, id)).toEqual(['paid', 'failed', 'cancelled'])
    await advance(service, { seconds: 90 * 86_400 })
    expect((await told(service, tenant.tenantId)).map(([type]) => type)).toEqual([
      'subscription.created',
      ...Array(5).fill('installment.failed'),
    ])
  })

  test('that is paid in between is forgotten', async () => {
    const tenant = await newTenant({ environment: 'sandbox' })
    const start = await now()
    const { _id: id } = await subscribe(service, tenant)
    await simulate(id, 'decline')
    await advance(service, { to: start + 4 * DAY })
    expect(await statusOf(tenant, id)).toBe('past_due')
    await simulate(id, 'succeed')
    expect(await statusOf(tenant, id)).toBe('active')
    await advance(service, { to: start + 65 * DAY })
    expect(await statuses(tenant, id)).toEqual(['paid', 'paid', 'paid', 'scheduled'])
    expect((await payments(tenant, id))[1].failed_attempts).toBe(3)
  })

  test('is only a failure of the moment when a fault declined it', async () => {
    const tenant = await newTenant({ environment: 'sandbox' })
    const start = await now()
    const { _id: id } = await subscribe(service, tenant)
    const [, next] = await payments(tenant, id)
    // what others of this service are charged in between meets no fault
    await advance(service, { to: Date.parse(next.due_at) - 1_000 })
    await operate(service, 'POST', '/faults', { point: 'card-processor', mode: 'decline', times: 1 })
    await advance(service, { to: next.due_at })
    expect(await statusOf(tenant, id)).toBe('past_due')
    await advance(service, { to: Date.parse(next.due_at) + DAY })
    expect(await statusOf(tenant, id)).toBe('active')
    expect((await payments(tenant, id))[1].failed_attempts).toBe(1)
    expect(start).toBeLessThan(Date.parse(next.due_at))
  })
})

describe('the plan of a link', () => {
  test('is charged from a month after the down payment at 17:00, so many times, and ends', async () => {
    const tenant = await newTenant()
    const start = await nextYear(1, 31, 9)
    const year = new Date(start).getUTCFullYear()
    const { subscription } = await plan(tenant, { total_installments: 6, down_payment_months: 2 })
    expect(subscription).toMatchObject({
      status: 'active',
      amount_cents: 20_000,
      employer_id: tenant.employerId,
      policy_id: tenant.policyId,
      metadata: { quote: 'Q-7', source: 'payment_api', api_client_id: tenant.tenantId },
    })
    const february = new Date(Date.UTC(year, 2, 0)).getUTCDate()
    const dates = [`02-${february}`, '03-31', '04-30', '05-31'].map((day) => `${year}-${day}T17:00:00.000Z`)
    const { _id: id } = subscription
    expect((await payments(tenant, id)).map(({ due_at, status }) => [due_at, status])).toEqual(
      dates.map((due) => [due, 'scheduled']),
    )
    await advance(service, { to: Date.parse(dates[0]!) - 1_000 })
    expect(await statuses(tenant, id)).toEqual(Array(4).fill('scheduled'))
    await advance(service, { to: dates[0]! })
    expect(await statuses(tenant, id)).toEqual(['paid', ...Array(3).fill('scheduled')])
    await advance(service, { to: Date.parse(dates[3]!) + 60 * DAY })
    expect(await subscriptionOf(service, tenant, id)).toMatchObject({
      status: 'canceled',
      cancellation_reason: 'completed',
      canceled_at: dates[3],
    })
    expect((await payments(tenant, id)).map(({ status, paid_at }) => [status, paid_at])).toEqual(
      dates.map((due) => ['paid', due]),
    )
    const events = await told(service, tenant.tenantId)
    expect(events.map(([type, body]) => [type, body.installment_number ?? body.status])).toEqual([
      ['subscription.created', 'active'],
      ...[1, 2, 3, 4].map((number) => ['installment.paid', number]),
    ])
    expect(events[1]![1]).toEqual({
      subscription_id: id,
      payment_id: (await payments(tenant, id))[0]._id,
      installment_number: 1,
      amount_cents: 20_000,
      currency: 'usd',
      paid_at: dates[0],
    })
  })

  test('starts once, however often its link is paid', async () => {
    const tenant = await newTenant({ environment: 'sandbox' })
    const { link } = await plan(tenant, { total_installments: 4, down_payment_months: 1 })
    await Promise.all([simulate(link._id, 'succeed'), simulate(link._id, 'succeed')])
    await operate(service, 'POST', '/drain')
    const { body } = await partner(service, tenant.clientHeaders, 'GET', '/subscriptions')
    expect(body.pagination.total).toBe(1)
  })

  test('that is cancelled leaves what is paid, and charges no more', async () => {
    const tenant = await newTenant()
    const { subscription } = await plan(tenant, { total_installments: 5, down_payment_months: 1 })
    const { _id: id } = subscription
    await advance(service, { seconds: 40 * 86_400 })
    const answer = await partner(service, tenant.clientHeaders, 'DELETE', `/subscriptions/${id}`)
    expect(answer.body.data.scheduled_payments.map(({ status }: Json) => status)).toEqual([
      'paid',
      ...Array(3).fill('cancelled'),
    ])
    await advance(service, { seconds: 90 * 86_400 })
    expect(await statuses(tenant, id)).toEqual(['paid', ...Array(3).fill('cancelled')])
    expect((await told(service, tenant.tenantId)).map(([type]) => type)).toEqual([
      'subscription.created',
      'installment.paid',
      'subscription.cancelled',
    ])
  })
})
