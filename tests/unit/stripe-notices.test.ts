import { expect, test } from 'vitest'
import { readNotice } from '../../infrastructure/providers/card/stripe-notices.ts'

test.each([
  ['a link', { link_id: 'l' }],
  ['a checkout', { session_id: 's', checkout_id: 'c' }],
])('of a payment of %s counts what was received, not what was asked for', (_, metadata) => {
  const object = { id: 'pi_1', metadata, payment_method: null, amount: 200, amount_received: 100 }
  const event = { id: 'evt_1', type: 'payment_intent.succeeded', created: 1, data: { object } }
  expect(readNotice(event)).toMatchObject({ amountCents: 100 })
})
