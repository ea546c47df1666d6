import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Checkout } from '../../../domain/payments/pages/checkout-settings.ts'
import { pageAddress } from '../../../domain/payments/pages/web-address.ts'

/** Where the page of a session is served. */
export interface PageHost {
  /** The partner's own address, rather than the service's. */
  readonly isCustom: boolean
  readonly urlOf: (token: string) => string
}

/** Settings without which no session can be sold, in the order in which they are missed. */
const REQUIRED = ['display_name', 'support_email', 'sender_email', 'link_ttl_minutes', 'link_format'] as const

/** Why a tenant cannot sell by sessions: the checkout is off, or a setting is missing, which the message names. */
export function refuseCheckout({ settings }: Checkout): Rejection | null {
  if (!settings.enabled) {
    return reject('forbidden', 'checkout_not_enabled', 'Custom checkout is off for this account')
  }
  const missing = REQUIRED.find((name) => settings[name] === null)
  if (missing === undefined) return null
  return reject('forbidden', 'checkout_not_enabled', `The checkout settings lack ${missing}`)
}

/**
 * Where a tenant's pages are served: on its own address once that is verified, else on the service's.
 * @param portalUrl base address of the service's pages; null when it has none.
 */
export function pageHost(
  { settings: { web_address, link_format }, web_address_proof }: Checkout,
  portalUrl: string | null,
): PageHost | Rejection {
  if (web_address !== null && web_address_proof !== null) {
    return { isCustom: true, urlOf: (token) => pageAddress(web_address, link_format!, token) }
  }
  if (portalUrl === null) {
    return reject('unavailable', 'no_payment_page_host', 'No verified host serves the payment page')
  }
  return { isCustom: false, urlOf: (token) => `${portalUrl}/pay/${token}` }
}
