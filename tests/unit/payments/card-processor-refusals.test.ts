import { Stripe } from 'stripe'
import { describe, expect, it } from 'vitest'
import { unlessRefused } from '../../../application/payments/processor/refused-fields.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { refusalOf } from '../../../infrastructure/providers/card/stripe-errors.ts'

const refusal = (code: string, param?: string) =>
  refusalOf(
    new Stripe.errors.StripeInvalidRequestError({
      type: 'invalid_request_error',
      code,
      message: 'no',
      ...(param !== undefined && { param }),
    }),
  )

describe('what Stripe refuses', () => {
  it.each([
    ['amount_too_large', 'line_items[0][price_data][unit_amount]', 'amount'],
    ['amount_too_small', undefined, 'amount'],
    ['parameter_invalid_integer', 'items[0][price_data][unit_amount]', 'amount'],
    ['email_invalid', 'email', 'email'],
    ['url_invalid', 'after_completion[redirect][url]', 'return_url'],
    ['resource_missing', 'customer', null],
    ['parameter_unknown', 'amounts', null],
  ])('as %s of %s is about %s', (code, param, about) => {
    const refused = refusal(code, param)
    expect(refused).toBeInstanceOf(ProviderRefused)
    expect((refused as ProviderRefused).about).toBe(about)
  })
})

describe('a caller', () => {
  const fields = { amount: 'premium_cents', email: 'customer.email' } as const
  const ask = (error: unknown) => unlessRefused(() => Promise.reject(error), fields)

  it('hears of its own value by the name of the field', async () => {
    expect(await ask(new ProviderRefused('no', 'amount'))).toMatchObject({
      kind: 'conflict',
      code: 'amount_refused',
      field: 'premium_cents',
      message: 'premium_cents is no amount that the card processor takes',
    })
    expect(await ask(new ProviderRefused('no', 'email'))).toMatchObject({
      kind: 'invalid',
      field: 'customer.email',
    })
  })

  it.each([
    new ProviderRefused('declined'),
    new ProviderRefused('no', 'payment_method'),
    new ProviderUnavailable('away'),
  ])('is not blamed for %s', async (error) => {
    await expect(ask(error)).rejects.toBe(error)
  })
})
