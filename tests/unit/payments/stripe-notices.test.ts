import { describe, expect, test } from 'vitest'
import { readNotice } from '../../../infrastructure/providers/card/stripe-notices.ts'

const OURS = 'a'.repeat(24)
const named = { metadata: { subscription_id: OURS } }
const event = (type: string, object: object, more: object = {}) => ({
  id: 'evt_1',
  type,
  created: 1,
  data: { object },
  ...more,
})
const invoice = { id: 'in_1', total: 5_000, created: 2 }
const paid = { about: 'subscription_paid', processorPaymentId: 'in_1', amountCents: 5_000, dueAt: 2_000 }

test.each([
  ['a link', { link_id: 'l' }],
  ['a checkout', { session_id: 's', checkout_id: 'c' }],
])('of a payment of %s counts what was received, not what was asked for', (_, metadata) => {
  const object = { id: 'pi_1', metadata, payment_method: null, amount: 200, amount_received: 100 }
  expect(readNotice(event('payment_intent.succeeded', object))).toMatchObject({ amountCents: 100 })
})

describe('an invoice of any API version tells whose it is', () => {
  test.each([
    ['since 2025', { parent: { subscription_details: { ...named, subscription: 'sub_1' } } }],
    ['before 2025', { subscription: 'sub_1', subscription_details: named }],
    ['before 2025, with a parent', { subscription: 'sub_1', subscription_details: named, parent: null }],
    ['before 2023, by its lines', { subscription: 'sub_1', lines: { data: [{ metadata: {} }, named] } }],
  ])('%s', (_, whose) => {
    const told = readNotice(event('invoice.paid', { ...invoice, ...whose }))
    expect(told).toEqual({ noticeId: 'evt_1', at: 1_000, subscriptionId: OURS, ...paid })
  })

  test.each([
    ['at the top', { subscription: 'sub_1' }],
    ['expanded', { subscription: { id: 'sub_1' }, lines: { data: [] } }],
    ['in its parent', { parent: { subscription_details: { subscription: 'sub_1' } } }],
  ])("by the processor's id alone: %s", (_, whose) => {
    const told = readNotice(event('invoice.paid', { ...invoice, ...whose }))
    expect(told).toEqual({ noticeId: 'evt_1', at: 1_000, processorSubscriptionId: 'sub_1', ...paid })
  })

  test('and when it was due', () => {
    const { created: date, ...older } = invoice
    const object = { ...older, date, subscription_details: named }
    expect(readNotice(event('invoice.payment_failed', object))).toMatchObject({ dueAt: 2_000 })
  })
})

test.each([
  ['refund.updated', 'since it has that name'],
  ['charge.refund.updated', 'before'],
])('a refund is told by %s %s', (type) => {
  const object = { id: 're_1', status: 'succeeded', metadata: { link_id: OURS, refund_id: OURS } }
  expect(readNotice(event(type, object))).toMatchObject({ about: 'link_refund', status: 'succeeded' })
})

describe('what names something that may be ours, and cannot be read, is not taken for nothing', () => {
  test.each([
    [
      'an invoice without an amount',
      event('invoice.paid', { id: 'in_1', created: 2, subscription_details: named }),
    ],
    [
      'an invoice whose amount is no number',
      event('invoice.paid', { ...invoice, ...named, total: '50.00', subscription: 'sub_1' }),
    ],
    [
      'an invoice that says elsewhere whose it is',
      event('invoice.paid', { ...invoice, origin: { of: named } }),
    ],
    [
      "an invoice that names the processor's subscription elsewhere",
      event('invoice.paid', { ...invoice, origin: ['sub_1'] }),
    ],
    [
      'a subscription with a new word',
      event('customer.subscription.updated', { ...named, status: 'on_hold' }),
    ],
    [
      'a payment without an amount',
      event('payment_intent.succeeded', { id: 'pi_1', metadata: { link_id: OURS } }),
    ],
    [
      'a payment that says elsewhere what it is for',
      event('payment_intent.succeeded', { id: 'pi_1', details: named }),
    ],
    [
      'a refund with a new word',
      event('refund.updated', { id: 're_1', status: 'sent', metadata: { link_id: OURS, refund_id: OURS } }),
    ],
    [
      'a checkout with a new word',
      event('checkout.session.completed', {
        payment_status: 'partly',
        metadata: { session_id: OURS, checkout_id: OURS },
      }),
    ],
    [
      'an event without a time',
      event('invoice.paid', { ...invoice, subscription: 'sub_1' }, { created: null }),
    ],
    [
      'an event with its object elsewhere',
      { id: 'evt_1', type: 'invoice.paid', created: 1, related_object: named },
    ],
  ])('%s', (_, body) => {
    expect(readNotice(body)).toEqual({
      about: 'unread',
      noticeId: 'evt_1',
      type: body.type,
      version: null,
      names: expect.arrayContaining([expect.stringMatching(/^(a{24}|sub_1)$/)]),
      body: JSON.stringify(body),
    })
  })
})

test.each([
  ['an invoice of nobody’s subscription', event('invoice.paid', { ...invoice, parent: null })],
  [
    'an invoice of a subscription of somebody else',
    event('invoice.paid', { parent: { subscription_details: { metadata: {}, subscription: 'sub_2' } } }),
  ],
  ['a payment of somebody else', event('payment_intent.succeeded', { metadata: {} })],
  ['a subscription that is paused', event('customer.subscription.updated', { ...named, status: 'paused' })],
  ['another event', event('payment_intent.created', { metadata: { link_id: OURS } })],
])('%s tells nothing', (_, body) => {
  expect(readNotice(body)).toBeNull()
})
