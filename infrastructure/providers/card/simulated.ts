import { hash } from 'node:crypto'
import {
  declinesAlways,
  isSimulatedMethod,
} from '../../../application/payments/processor/simulated-methods.ts'
import type { CardProcessor, NewRefund } from '../../../application/ports/card-processor.ts'
import type { Faults } from '../../../application/ports/faults.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'

interface Settings {
  readonly faults: Pick<Faults, 'take'>
  /** Address of the page that simulates the hosted checkout of a link. */
  readonly pageOf: (linkId: string) => string
  /** Takes the first payment of a subscription as it is created; otherwise that waits to be simulated. */
  readonly chargesAtOnce: boolean
  /** What nobody can tell from a text that does not have it. */
  readonly secretFor: (text: string) => string
}

/**
 * Stands for a card processor: no money moves. It keeps nothing: its ids derive from the keys of the calls, so that a
 * call that comes again is the same one, and when it charges follows from the subscription
 * (`application/payments/simulated-processor.ts`).
 */
export class SimulatedCardProcessor implements CardProcessor {
  readonly kind = 'simulated'
  readonly publishableKey = 'pk_sim'
  readonly #settings: Settings

  constructor(settings: Settings) {
    this.#settings = settings
  }

  createCustomer(_customer: unknown, key: string) {
    return this.#answer(() => ({ customerId: idOf('cus', key) }))
  }

  createPaymentLink({ linkId }: { readonly linkId: string }, key: string) {
    return this.#answer(() => ({
      processorLinkId: idOf('plink', key),
      url: this.#settings.pageOf(linkId),
    }))
  }

  openCheckout(_checkout: unknown, key: string) {
    return this.#answer(() => {
      const processorCheckoutId = idOf('cs', key)
      return { processorCheckoutId, clientSecret: this.#secretOf(processorCheckoutId) }
    })
  }

  secretOf(processorCheckoutId: string) {
    return this.#answer(() => this.#secretOf(processorCheckoutId))
  }

  /** What is taken by it is simulated, and recorded at once. */
  closeCheckout() {
    return this.#answer(() => ({ outcome: 'nothing' as const }))
  }

  #secretOf(processorCheckoutId: string): string {
    return `${processorCheckoutId}_secret_${this.#settings.secretFor(processorCheckoutId)}`
  }

  deactivatePaymentLink() {
    return this.#answer(() => undefined)
  }

  /** One that may have been asked for before has been carried out then. */
  async refund({ isRepeated }: Pick<NewRefund, 'isRepeated'>, key: string) {
    await this.#meetFaults(isRepeated ? 'answers' : 'declines')
    return { processorRefundId: idOf('re', key), status: 'succeeded' as const }
  }

  async createSubscription(
    { paymentMethodId, firstChargeAt }: Parameters<CardProcessor['createSubscription']>[0],
    key: string,
  ) {
    const { chargesAtOnce } = this.#settings
    const chargesNow = firstChargeAt === null && chargesAtOnce
    // a fault that declines meets the first thing that can be declined: a charge
    const isDeclined = await this.#meetFaults(chargesNow ? 'charges' : 'answers')
    if (paymentMethodId !== null && !isSimulatedMethod(paymentMethodId)) {
      throw new ProviderRefused('The card processor knows no such payment method', 'payment_method')
    }
    const isPaid = chargesNow && !isDeclined && !declinesAlways(paymentMethodId)
    const status = firstChargeAt !== null || isPaid ? ('active' as const) : ('incomplete' as const)
    return { processorSubscriptionId: idOf('sub', key), status }
  }

  /** The payment waits to be simulated. */
  chargeFirst() {
    return this.#answer(() => undefined)
  }

  cancelSubscription() {
    return this.#answer(() => undefined)
  }

  /** Nobody signs notices for it. */
  readNotices() {
    return null
  }

  async #answer<Answered>(answer: () => Answered): Promise<Answered> {
    await this.#meetFaults('declines')
    return answer()
  }

  /** @returns whether a charge is declined. @throws ProviderUnavailable, and ProviderRefused where `declines` says so. */
  async #meetFaults(call: 'answers' | 'charges' | 'declines'): Promise<boolean> {
    const outages = ['unreachable', 'timeout'] as const
    const fault = await this.#settings.faults.take(
      'card-processor',
      call === 'answers' ? outages : [...outages, 'decline'],
    )
    if (fault === 'unreachable') {
      throw new ProviderUnavailable('The card processor could not be reached', { nothingHappened: true })
    }
    // what was asked for has happened there: the same key has the same effect again
    if (fault === 'timeout') throw new ProviderUnavailable('The card processor did not answer in time')
    if (fault === 'decline' && call === 'declines') {
      throw new ProviderRefused('The card processor declined')
    }
    return fault === 'decline'
  }
}

function idOf(kind: string, key: string): string {
  return `${kind}_sim_${hash('sha256', `${kind}/${key}`, 'hex').slice(0, 24)}`
}
