import { describe, expect, test } from 'vitest'
import { fold } from '../../../domain/kernel/decider.ts'
import {
  WebhookDeliveryDropped,
  WebhookEventRaised,
  webhookEvent,
} from '../../../domain/webhooks/webhook-event.ts'
import {
  isWithin,
  MAX_SUBSCRIPTIONS,
  receives,
  type WebhookSubscriptionEvent,
  webhookSubscriptions,
} from '../../../domain/webhooks/webhook-subscriptions.ts'
import { decisions, eventsOf } from '../../support/decider-spec.ts'

const ID = 'a'.repeat(24)
const [ONE, TWO, THREE] = ['1', '2', '3'].map((digit) => digit.repeat(24)) as [string, string, string]

const event = eventsOf(webhookSubscriptions, { subscription_id: ONE })
const register = (subscription_id: string, url = `https://partner.example/${subscription_id}`) =>
  event('WebhookSubscriptionRegistered', {
    subscription_id,
    tenant_id: ID,
    environment: 'live',
    client_id: 'service_live_cli_1',
    url,
    events: ['payment.completed', 'payment.failed'],
    secret_ref: 'ref/1',
    carrier_ids: 'all',
    employer_ids: [ID],
    at: 1,
  })
const one = register(ONE, 'https://partner.example/hooks?a=B')
const two = register(TWO)
const asOne = (subscriptionId: string, url: string) =>
  ({ type: 'Register', data: register(subscriptionId, url).data }) as const
const change = (to: { url?: string; events?: ['payment.failed'] }, subscriptionId = ONE) =>
  ({ type: 'Change', subscriptionId, ...to, at: 5 }) as const
const changed = (to: { url?: string; events?: ['payment.failed'] }) =>
  event('WebhookSubscriptionChanged', { ...to, at: 5 })
const verb = <Type extends 'Enable' | 'Delete'>(type: Type, subscriptionId = ONE) =>
  ({ type, subscriptionId, at: 5 }) as const
const disable = (by: 'partner' | 'failures' | 'operator', enabledRevision = -1) =>
  ({ type: 'Disable', subscriptionId: ONE, by, enabledRevision, at: 5 }) as const
const disabled = (by: 'partner' | 'failures' | 'operator') =>
  event('WebhookSubscriptionDisabled', { by, at: 5 })
const enabled = event('WebhookSubscriptionEnabled', { at: 5 })
const deleted = event('WebhookSubscriptionDeleted', { former_ref: 'ref/1', at: 5 })
const again = [one, disabled('failures'), enabled]
const full = Array.from({ length: MAX_SUBSCRIPTIONS }, (_, n) => register(n.toString(16).padStart(24, '0')))

decisions(webhookSubscriptions, [
  ['is registered', [], { type: 'Register', data: one.data }, one],
  ['is registered beside another', [one], { type: 'Register', data: two.data }, two],
  [
    'is registered once for an address, whatever the case of its host and with the default port',
    [one],
    asOne(TWO, 'HTTPS://Partner.EXAMPLE:443/hooks?a=B'),
    'url_registered',
  ],
  [
    'is registered once for an address, whether or not a dot ends its host',
    [one],
    asOne(TWO, 'https://partner.example./hooks?a=B'),
    'url_registered',
  ],
  [
    'is registered for another path',
    [one],
    asOne(TWO, 'https://partner.example/Hooks?a=B'),
    register(TWO, 'https://partner.example/Hooks?a=B'),
  ],
  [
    'is registered for another query',
    [one],
    asOne(TWO, 'https://partner.example/hooks?a=b'),
    register(TWO, 'https://partner.example/hooks?a=b'),
  ],
  [
    'is registered for another port',
    [one],
    asOne(TWO, 'https://partner.example:444/hooks?a=B'),
    register(TWO, 'https://partner.example:444/hooks?a=B'),
  ],
  ['has an address that was freed', [one, deleted], asOne(TWO, one.data.url), register(TWO, one.data.url)],
  ['is one of a hundred', full.slice(1), { type: 'Register', data: one.data }, one],
  ['is not one more', full, { type: 'Register', data: one.data }, 'too_many_subscriptions'],
  ['moves', [one], change({ url: 'https://b.example/' }), changed({ url: 'https://b.example/' })],
  ['moves to no address of another', [one, two], change({ url: two.data.url }), 'url_registered'],
  [
    'is written in another way',
    [one],
    change({ url: 'https://PARTNER.example/hooks?a=B' }),
    changed({ url: 'https://PARTNER.example/hooks?a=B' }),
  ],
  [
    'has its list replaced',
    [one],
    change({ events: ['payment.failed'] }),
    changed({ events: ['payment.failed'] }),
  ],
  [
    'stays as it is',
    [one, changed({ events: ['payment.failed'] })],
    change({ url: one.data.url, events: ['payment.failed'] }),
    [],
  ],
  ['that is unknown does not move', [two], change({}), 'subscription_not_found'],
  [
    'gets another secret',
    [one],
    { type: 'Rotate', subscriptionId: ONE, secretRef: 'ref/2', at: 5 },
    event('WebhookSecretRotated', { secret_ref: 'ref/2', former_ref: 'ref/1', at: 5 }),
  ],
  ['is disabled by its partner', [one], disable('partner'), disabled('partner')],
  ['is disabled by an operator', [one], disable('operator'), disabled('operator')],
  ['is disabled by failures', [one], disable('failures'), disabled('failures')],
  ['is disabled once', [one, disabled('failures')], disable('partner'), []],
  ['is disabled by failures after it was enabled', again, disable('failures', 2), disabled('failures')],
  ['is not disabled by failures from before it was enabled', again, disable('failures', 1), []],
  ['is enabled', [one, disabled('failures')], verb('Enable'), enabled],
  ['is enabled once', [one, disabled('failures'), enabled], verb('Enable'), []],
  ['is deleted', [one], verb('Delete'), deleted],
  ['is deleted once', [one, deleted], verb('Delete'), 'subscription_not_found'],
  ['that was deleted is not enabled', [one, deleted], verb('Enable'), 'subscription_not_found'],
  ['that is another is not enabled', [one], verb('Enable', THREE), 'subscription_not_found'],
])

describe('a conflict of addresses', () => {
  test('names who has it', () => {
    const state = fold(webhookSubscriptions, [two, one])
    expect(webhookSubscriptions.decide(asOne(THREE, one.data.url), state)).toMatchObject({ ids: { id: ONE } })
  })
})

describe('the subscriptions', () => {
  const after = (...history: WebhookSubscriptionEvent[]) =>
    fold(webhookSubscriptions, history).subscriptions.map(({ _id, url, status, secret_ref, updated_at }) => ({
      _id,
      url,
      status,
      secret_ref,
      updated_at,
    }))

  test('change one by one', () => {
    const rotated = event('WebhookSecretRotated', { subscription_id: TWO, secret_ref: 'ref/2', at: 6 })
    const moved = changed({ url: 'https://b.example/' })
    expect(after(one, two, rotated, moved, disabled('partner'))).toEqual([
      { _id: ONE, url: 'https://b.example/', status: 'disabled', secret_ref: 'ref/1', updated_at: 5 },
      { _id: TWO, url: two.data.url, status: 'active', secret_ref: 'ref/2', updated_at: 6 },
    ])
  })

  const [subscription] = fold(webhookSubscriptions, [one]).subscriptions
  const happening = { event_type: 'payment.failed', carrier_id: ONE, employer_id: ID } as const
  test.each([
    ['of a type in their list, in their scope', subscription!, happening, true],
    ['of no other type', subscription!, { ...happening, event_type: 'installment.paid' }, false],
    ['of no employer outside their scope', subscription!, { ...happening, employer_id: ONE }, false],
    ['that names no employer', subscription!, { ...happening, employer_id: null }, true],
    [
      'of no carrier where their scope is empty',
      { ...subscription!, scope: { carrier_ids: [], employer_ids: 'all' } },
      happening,
      false,
    ],
    [
      'of no carrier outside their scope',
      { ...subscription!, scope: { carrier_ids: [TWO], employer_ids: 'all' } },
      happening,
      false,
    ],
    ['never while they are disabled', { ...subscription!, status: 'disabled' }, happening, false],
  ] as const)('receive events %s', (_, receiver, happened, outcome) => {
    expect(receives(receiver, happened)).toBe(outcome)
  })

  test.each([
    ['all', 'all', true],
    [[ONE], 'all', true],
    [[ONE], [ONE, TWO], true],
    [[], [], true],
    [[ONE, TWO], [ONE], false],
    ['all', [ONE, TWO], false],
  ] as const)('of the carriers %s lie within the carriers %s: %s', (inner, outer, outcome) => {
    const scope = (ids: 'all' | readonly string[]) => ({ carrier_ids: ids, employer_ids: [ID] })
    expect(isWithin(scope(inner), scope(outer))).toBe(outcome)
    const turned = (ids: 'all' | readonly string[]) => ({ carrier_ids: 'all', employer_ids: ids }) as const
    expect(isWithin(turned(inner), turned(outer))).toBe(outcome)
  })
})

const raised = WebhookEventRaised.of({
  event_id: ID,
  tenant_id: ID,
  environment: 'live',
  event_type: 'payment.refunded',
  carrier_id: ID,
  employer_id: null,
  payload: { payment_id: ONE },
})
const drop = { type: 'Drop', subscriptionId: ONE, deliveryId: TWO } as const
const dropped = WebhookDeliveryDropped.of({ event_id: ID, subscription_id: ONE, delivery_id: TWO })
decisions(webhookEvent, [
  ['is raised', [], { type: 'Raise', data: raised.data }, raised],
  ['is raised once', [raised], { type: 'Raise', data: raised.data }, 'webhook_event_exists'],
  ['is dropped for a subscription', [raised], drop, dropped],
  ['is dropped there once', [raised, dropped], drop, []],
  [
    'is dropped for another one too',
    [raised, dropped],
    { ...drop, subscriptionId: THREE, deliveryId: THREE },
    WebhookDeliveryDropped.of({ event_id: ID, subscription_id: THREE, delivery_id: THREE }),
  ],
  ['that was never raised is not dropped', [], drop, 'webhook_event_not_found'],
])
