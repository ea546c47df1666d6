import { describe, expect, test } from 'vitest'
import type {
  CardProcessor,
  NewProcessorLink,
  NewProcessorSubscription,
} from '../../../application/ports/card-processor.ts'
import { ProviderRefused } from '../../../application/ports/provider.ts'

const link: NewProcessorLink = {
  linkId: '1'.repeat(24),
  customerId: 'cus',
  amountCents: 10_500,
  description: 'Premium',
  afterCompletionUrl: 'https://partner.example/done',
  keepsMethod: false,
}

/** What every card processor holds to. @param method makes a payment method that is nobody's yet, and never declined. */
export function describeCardProcessor(
  name: string,
  open: () => { readonly processor: CardProcessor; readonly method: () => string },
): void {
  describe(`a card processor: ${name}`, () => {
    const subscriptionOf = (customerId: string, paymentMethodId: string): NewProcessorSubscription => ({
      subscriptionId: '2'.repeat(24),
      customerId,
      paymentMethodId,
      isPayersMethod: false,
      amountCents: 5_000,
      firstChargeAt: null,
      charges: null,
    })
    const employer = { employerId: '3'.repeat(24), name: 'Rosen Masonry', email: 'a@rosen.example' }

    test('makes one thing of one key, and another of another', async () => {
      const { processor, method } = open()
      const customer = (key: string) => processor.createCustomer(employer, key)
      const { customerId } = await customer('c-1')
      expect(await customer('c-1')).toEqual({ customerId })
      expect((await customer('c-2')).customerId).not.toBe(customerId)

      const made = await processor.createPaymentLink({ ...link, customerId }, 'l-1')
      expect(made.url).toMatch(/^https?:\/\//)
      expect(await processor.createPaymentLink({ ...link, customerId }, 'l-1')).toEqual(made)
      const second = await processor.createPaymentLink({ ...link, customerId }, 'l-2')
      expect(second.processorLinkId).not.toBe(made.processorLinkId)

      const refund = (refundId: string, isRepeated: boolean) => ({
        linkId: link.linkId,
        refundId,
        isRepeated,
        processorPaymentId: 'pi_1',
        amountCents: 100,
        reason: null,
      })
      const refunded = await processor.refund(refund('r-1', false), 'r-1')
      expect(refunded.status).toBe('succeeded')
      expect(await processor.refund(refund('r-1', true), 'r-1')).toEqual(refunded)
      expect(await processor.refund(refund('r-2', false), 'r-2')).not.toEqual(refunded)

      const asked = subscriptionOf(customerId, method())
      const started = await processor.createSubscription(asked, 's-1')
      expect(await processor.createSubscription(asked, 's-1')).toEqual(started)
      const other = await processor.createSubscription({ ...asked, subscriptionId: '4'.repeat(24) }, 's-2')
      expect(other.processorSubscriptionId).not.toBe(started.processorSubscriptionId)
    })

    describe('a checkout', () => {
      const checkout = {
        sessionId: '6'.repeat(24),
        checkoutId: '7'.repeat(24),
        amountCents: 10_500,
        description: null,
      }

      test('is one of a key, and is mounted by the same secret for as long as it is open', async () => {
        const { processor } = open()
        const opened = await processor.openCheckout(checkout, 'o-1')
        expect(opened.clientSecret).not.toBe('')
        expect(await processor.openCheckout(checkout, 'o-1')).toEqual(opened)
        expect(await processor.secretOf(opened.processorCheckoutId)).toBe(opened.clientSecret)
        const other = await processor.openCheckout({ ...checkout, checkoutId: '8'.repeat(24) }, 'o-2')
        expect(other.processorCheckoutId).not.toBe(opened.processorCheckoutId)
        expect(other.clientSecret).not.toBe(opened.clientSecret)
        expect(processor.publishableKey).not.toBe('')
      })

      test('is closed as often as somebody asks for it, and nothing came of it', async () => {
        const { processor } = open()
        const { processorCheckoutId } = await processor.openCheckout(checkout, 'o-1')
        for (const _again of [1, 2]) {
          expect(await processor.closeCheckout(processorCheckoutId)).toEqual({ outcome: 'nothing' })
        }
      })
    })

    test('of several who ask at once under one key makes one customer', async () => {
      const { processor } = open()
      const asks = Array.from({ length: 5 }, (_, index) =>
        processor.createCustomer({ ...employer, name: `Name ${index}` }, 'c-1'),
      )
      expect(new Set((await Promise.all(asks)).map(({ customerId }) => customerId)).size).toBe(1)
    })

    test('holds a subscription that is due at once until its first payment, and one that is due later not', async () => {
      const { processor, method } = open()
      const { customerId } = await processor.createCustomer(employer, 'c-1')
      const now = subscriptionOf(customerId, method())
      expect(await processor.createSubscription(now, 's-1')).toMatchObject({ status: 'incomplete' })
      const later = {
        ...now,
        subscriptionId: '5'.repeat(24),
        firstChargeAt: Date.UTC(2030, 1, 28, 17),
        charges: 3,
      }
      const plan = await processor.createSubscription(later, 's-2')
      expect(plan.status).toBe('active')
      await processor.chargeFirst(plan.processorSubscriptionId, 'f-1')
    })

    test('knows no method that nobody has', async () => {
      const { processor } = open()
      const { customerId } = await processor.createCustomer(employer, 'c-1')
      const asked = processor.createSubscription(subscriptionOf(customerId, 'pm_nobody'), 's-1')
      await expect(asked).rejects.toThrow(ProviderRefused)
      await expect(asked).rejects.toMatchObject({ about: 'payment_method' })
    })

    test('ends what has ended already', async () => {
      const { processor, method } = open()
      const { customerId } = await processor.createCustomer(employer, 'c-1')
      const { processorLinkId } = await processor.createPaymentLink({ ...link, customerId }, 'l-1')
      const asked = subscriptionOf(customerId, method())
      const { processorSubscriptionId } = await processor.createSubscription(asked, 's-1')
      for (const key of ['e-1', 'e-1', 'e-2']) {
        await processor.deactivatePaymentLink(processorLinkId, key)
        await processor.cancelSubscription(processorSubscriptionId, key)
      }
    })

    test('believes nobody who cannot sign', async () => {
      const { processor } = open()
      const unsigned = [
        '',
        't=1,v1=00',
        't=1,v1=',
        't=1,v1',
        't=1,t=2,v1',
        'v1=',
        't=,v1=',
        't=1',
        '=',
        ',',
        't',
      ]
      for (const headers of [{}, ...unsigned.map((header) => ({ 'stripe-signature': header }))]) {
        expect(processor.readNotices({ body: Buffer.from('{}'), headers, now: 1_000 })).toBeNull()
      }
    })
  })
}
