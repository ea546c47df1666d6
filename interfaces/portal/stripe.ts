import type { Policy } from './page.ts'

/** Stripe's script, of the release that belongs to the version of its API that is spoken. */
export const STRIPE_SCRIPT = 'https://js.stripe.com/endive/stripe.js'

/** What its embedded checkout loads, and from where. */
export const STRIPE: Pick<Policy, 'scripts' | 'connections' | 'frames' | 'images'> = {
  scripts: ['https://js.stripe.com', 'https://*.js.stripe.com', 'https://checkout.stripe.com'],
  connections: ['https://api.stripe.com', 'https://checkout.stripe.com'],
  frames: [
    ...['https://js.stripe.com', 'https://*.js.stripe.com'],
    ...['https://hooks.stripe.com', 'https://checkout.stripe.com'],
  ],
  images: ['https://*.stripe.com'],
}
