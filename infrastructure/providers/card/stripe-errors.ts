import { Stripe } from 'stripe'
import {
  ProviderRefused,
  ProviderUnavailable,
  type RefusedAbout,
} from '../../../application/ports/provider.ts'

const { errors } = Stripe

/**
 * What an error of the SDK means. Stripe's own words may quote what was sent, so that only its code goes on.
 * @param about what a refusal is about.
 * @returns the error itself when it is none of the SDK's.
 */
export function refusalOf(error: unknown, about: ProviderRefused['about'] = null): unknown {
  if (!(error instanceof errors.StripeError)) return error
  const code = error.code ?? error.rawType ?? error.type
  if (error instanceof errors.StripeCardError || error instanceof errors.StripeInvalidRequestError) {
    // another call under the same key is still under way there
    if (error.code === 'idempotency_key_in_use' || error.code === 'lock_timeout') return busy(code)
    return new ProviderRefused(`The card processor refused (${code})`, about ?? aboutOf(error))
  }
  if (error instanceof errors.StripeConnectionError) {
    return new ProviderUnavailable('The card processor could not be reached, or did not answer in time')
  }
  if (error instanceof errors.StripeAuthenticationError || error instanceof errors.StripePermissionError) {
    return new ProviderUnavailable('The card processor does not accept the key of this service')
  }
  if (error instanceof errors.StripeIdempotencyError && error.statusCode !== 409) {
    return new ProviderRefused('The card processor knows the key of another request')
  }
  return busy(code)
}

/** Parameters that hold what a caller chose. */
const CALLERS: readonly (readonly [RegExp, RefusedAbout])[] = [
  [/\bunit_amount\b/, 'amount'],
  [/^email$/, 'email'],
  [/^after_completion\b/, 'return_url'],
]

/** What a refusal is about by the parameter that it names. */
function aboutOf({ code, param }: { readonly code?: string; readonly param?: string }): RefusedAbout | null {
  if (code === 'amount_too_large' || code === 'amount_too_small') return 'amount'
  return CALLERS.find(([name]) => name.test(param ?? ''))?.[1] ?? null
}

function busy(code: string): ProviderUnavailable {
  return new ProviderUnavailable(`The card processor is busy or failed (${code})`)
}
