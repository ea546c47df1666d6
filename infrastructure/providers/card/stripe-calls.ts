import { Stripe } from 'stripe'

const { errors } = Stripe

/** Failures of Stripe itself that are met in one go: after this many it is asked again later. */
const FAILURES = 2
/** Keys that Stripe has kept a failure under; it forgets them after a day. */
const MOST_KEYS = 20

/**
 * Makes a call once under a key. Stripe keeps what it answered to a key for a day, its own failures (5xx) included: past
 * one it is asked under the next key, `key/1`, `key/2` and so on, the same in every repetition of this call.
 * @param find what an earlier try made all the same, looked up after each failure and refusal; needed where twice does harm.
 * @throws what the SDK throws.
 */
export async function onceUnder<Answer>(
  key: string,
  call: (options: Stripe.RequestOptions) => Promise<Answer>,
  find: () => Promise<Answer | null> = async () => null,
): Promise<Answer> {
  let failures = 0
  for (let number = 0; ; number += 1) {
    try {
      return await call({ idempotencyKey: number === 0 ? key : `${key}/${number}` })
    } catch (error) {
      if (!(error instanceof errors.StripeError) || error instanceof errors.StripeConnectionError) throw error
      const isFailure = (error.statusCode ?? 0) >= 500
      const isRefusal =
        error instanceof errors.StripeInvalidRequestError || error instanceof errors.StripeCardError
      const made = isFailure || isRefusal ? await find() : null
      if (made !== null) return made
      if (!isFailure) throw error
      if (error.headers?.['idempotent-replayed'] !== 'true') failures += 1
      if (failures === FAILURES || number === MOST_KEYS) throw error
    }
  }
}
