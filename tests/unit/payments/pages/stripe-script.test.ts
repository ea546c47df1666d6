import { expect, test } from 'vitest'
import { STRIPE_API_VERSION } from '../../../../infrastructure/providers/card/stripe.ts'
import { STRIPE_SCRIPT } from '../../../../interfaces/portal/stripe.ts'

test('the script of Stripe is of the release whose API is spoken', () => {
  const [, release] = STRIPE_API_VERSION.split('.')
  expect(STRIPE_SCRIPT).toBe(`https://js.stripe.com/${release}/stripe.js`)
})
