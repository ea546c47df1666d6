import { expect } from 'vitest'
import { partner } from '../support/payments.ts'
import { operate, type SeedableService } from '../support/seed.ts'
import type { LoggedEvents } from './logged-events.ts'
import type { PaymentClients, PaymentsKey, Sale } from './payment-clients.ts'
import type { WebhookListeners } from './webhook-listeners.ts'

type Sold = Pick<PaymentClients, 'sales' | 'subscriptions'>
type Json = ReturnType<typeof JSON.parse>
type Service = SeedableService & { readonly paymentsUrl: string }

/** Steps that would say that something was done twice, or could not be done. */
const NEVER = [
  ...['PaymentLinkPaidAgain', 'PaymentLinkAmountDiffered', 'PaymentLinkPlanNotStarted', 'AlertRaised'],
  ...[
    'PaymentLinkRefundFailed',
    'SubscriptionChargePaidAgain',
    'PolicyNotActivated',
    'WebhookDeliveryDropped',
  ],
]

/** Holds the log against what partners were answered: every sale, payment, refund and subscription is there, once. */
export function checkPayments(log: LoggedEvents, { sales, subscriptions }: Sold): void {
  for (const type of NEVER) expect(log.ofType(type), type).toEqual([])
  const links = log.streams('paymentLink')
  expect([...links.keys()].sort()).toEqual(sales.map(({ linkId }) => linkId).sort())
  expect([...log.streams('intake').values()].map((events) => events.map(({ type }) => type))).toEqual(
    sales.map(() => ['IntakeReceived', 'IntakeCompleted']),
  )
  for (const { name, linkId, status, refunds } of sales) {
    const events = links.get(linkId)!
    const ofType = (type: string) => events.filter((event) => event.type === type).map(({ data }) => data)
    const happened = {
      paid: ofType('PaymentLinkPaid').length,
      cancelled: ofType('PaymentLinkCancelled').length,
      expired: ofType('PaymentLinkExpired').length,
      requested: ofType('PaymentLinkRefundRequested').map(({ amount_cents }) => amount_cents),
      refunded: ofType('PaymentLinkRefunded').map(({ amount_cents }) => amount_cents),
    }
    expect(happened, name).toEqual({
      paid: status === 'paid' ? 1 : 0,
      cancelled: status === 'cancelled' ? 1 : 0,
      expired: status === 'expired' ? 1 : 0,
      requested: refunds,
      refunded: refunds,
    })
  }
  checkActivations(log, sales)
  checkSubscriptions(log, sales, subscriptions)
}

/** Every key is answered, but for those under which a secret was handed out to nobody. */
export function checkKeys(log: LoggedEvents, { lostSecrets }: Pick<WebhookListeners, 'lostSecrets'>): void {
  const unanswered = [...log.streams('idempotencyKey')].flatMap(([id, events]) => {
    const types = events.map(({ type }) => type.replace('IdempotencyKey', '')).join()
    return types.endsWith('Answered') ? [] : [`${id} ${types}`]
  })
  expect(unanswered.length, unanswered.join()).toBeLessThanOrEqual(lostSecrets)
  // a session is replaced once: who asks again under the key, however often, is told by what, and the key is free
  const isUnanswered = /^Claimed(,Released,Claimed)*(,Released)?$/
  expect(unanswered.filter((one) => !isUnanswered.test(one.split(' ')[1]!))).toEqual([])
}

/** The policy of a sale is active before anybody is told that it was paid; others never are. */
function checkActivations(log: LoggedEvents, sales: readonly Sale[]): void {
  const places = new Map<string, number>()
  for (const [place, { type, data }] of log.all.entries()) {
    if (type === 'PolicyActivated') {
      expect(places.has(data.policy_id), data.policy_id).toBe(false)
      places.set(data.policy_id, place)
    } else if (type === 'WebhookEventRaised' && data.payload.payment_link_id !== undefined) {
      if (data.event_type !== 'payment.completed') continue
      expect(places.has(data.payload.policy_id), data.payload.policy_id).toBe(true)
    }
  }
  const paid = sales.filter(({ status }) => status === 'paid')
  expect([...places.keys()].sort()).toEqual(paid.map(({ policyId }) => policyId).sort())
}

function checkSubscriptions(log: LoggedEvents, sales: readonly Sale[], asked: Sold['subscriptions']): void {
  const started = log.ofType('SubscriptionStarted').map(({ data }) => data)
  const idsOf = (source: string) => started.filter((one) => one.source === source)
  expect(
    idsOf('api')
      .map(({ subscription_id }) => subscription_id)
      .sort(),
  ).toEqual(asked.map(({ id }) => id).sort())
  expect(
    idsOf('plan')
      .map(({ link_id }) => link_id)
      .sort(),
  ).toEqual(
    sales
      .filter(({ isPlan, status }) => isPlan && status === 'paid')
      .map(({ linkId }) => linkId)
      .sort(),
  )
  const paid = log
    .ofType('SubscriptionChargePaid')
    .map(({ data }) => `${data.subscription_id} ${data.number}`)
  expect(new Set(paid).size).toBe(paid.length)
}

/** Holds what partners read against what they were answered. */
export async function expectLastingState(
  service: Service,
  keys: readonly PaymentsKey[],
  { sales, subscriptions }: Sold,
  { listeners }: WebhookListeners,
): Promise<void> {
  const policies = new Map<string, string>()
  for (const one of await pages((query) => operate(service, 'GET', `/policies?${query}`))) {
    policies.set(one.policy_id, one.status)
  }
  const sent = await pages((query) => operate(service, 'GET', `/outbox?${query}`))
  for (const key of keys) {
    const ask = async (path: string) => {
      const answer = await partner(service, key.headers, 'GET', path)
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
      return answer.body.data
    }
    const links = await pages((query) => ask(`/payment-links?${query}`))
    const own = sales.filter(({ environment }) => environment === key.environment)
    expect(links.length).toBe(own.length)
    const byId = new Map(links.map((link) => [link._id, link]))
    for (const { linkId, policyId, name, status, refunds } of own) {
      const link = byId.get(linkId)
      expect(
        {
          status: link?.status,
          metadata: link?.metadata.sale,
          refunds: amountsOf(link),
          policy: link?.policy_id,
        },
        name,
      ).toEqual({ status, refunds, policy: policyId, metadata: name })
      expect(link.refunded_cents, name).toBe(refunds.reduce((sum, one) => sum + one, 0))
      expect(policies.get(policyId), name).toBe(status === 'paid' ? 'active' : 'in_progress')
      const messages = sent.filter(({ to }) => to === `${name}@payer.example`)
      // who pays before the message is sent gets none
      expect(messages.length, name).toBeLessThanOrEqual(1)
      if (link.sent_at !== null) expect(messages.length, name).toBe(1)
    }
    const charged = new Map(
      (await pages((query) => ask(`/subscriptions?${query}`))).map((one) => [one._id, one]),
    )
    for (const { id, isCancelled, paid } of subscriptions.filter(
      (one) => one.environment === key.environment,
    )) {
      const shown = charged.get(id)
      if (isCancelled) expect(shown.status, id).toBe('canceled')
      const numbers = shown.scheduled_payments.filter(({ status }: Json) => status === 'paid')
      expect(
        numbers.map(({ installment_number }: Json) => installment_number),
        id,
      ).toEqual(expect.arrayContaining([...paid]))
    }
    await expectListeners(
      ask,
      listeners.filter((one) => one.key.environment === key.environment),
    )
  }
}

/** The subscriptions are as they were last answered, and what they were sent is delivered. */
async function expectListeners(
  ask: (path: string) => Promise<Json>,
  listeners: WebhookListeners['listeners'],
): Promise<void> {
  const shown: readonly Json[] = await ask('/webhooks')
  const living = listeners.filter(({ isDeleted }) => !isDeleted)
  expect(
    new Map(
      shown.map(({ _id, url, events, status }) => [_id, { path: new URL(url).pathname, events, status }]),
    ),
  ).toEqual(new Map(living.map(({ id, path, events }) => [id, { path, events, status: 'active' }])))
  for (const { id } of living) {
    const deliveries: readonly Json[] = await ask(`/webhooks/${id}/deliveries?limit=200`)
    expect(new Set(deliveries.map(({ status }) => status))).toEqual(
      new Set(deliveries.length > 0 ? ['delivered'] : []),
    )
  }
}

function amountsOf(link: Json): readonly number[] {
  return link?.refunds.map(({ amount_cents }: Json) => amount_cents)
}

/** All pages of a list. */
async function pages(ask: (query: string) => Promise<readonly Json[]>): Promise<readonly Json[]> {
  const found: Json[] = []
  for (let page = 1; ; page += 1) {
    const items = await ask(`limit=200&page=${page}`)
    found.push(...items)
    if (items.length < 200) return found
  }
}
