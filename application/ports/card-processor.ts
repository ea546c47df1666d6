import type { RefundReason } from '../../domain/payments/links/payment-link-events.ts'
import type { ProcessorKind } from '../../domain/payments/processor/processor-kinds.ts'

/** What of a card processor the service uses. Keys make every call repeatable: the same key is the same call. */
export interface CardProcessor {
  /** The simulated one charges by the service's clock and by what operators and sandbox keys simulate. */
  readonly kind: ProcessorKind
  /** @throws ProviderUnavailable, ProviderRefused; so do all others. */
  createCustomer(customer: NewCustomer, key: string): Promise<{ readonly customerId: string }>
  /** A hosted checkout that charges once. */
  createPaymentLink(
    link: NewProcessorLink,
    key: string,
  ): Promise<{ readonly processorLinkId: string; readonly url: string }>
  /** Nobody can pay by the link any more. One that is not active any more stays as it is. */
  deactivatePaymentLink(processorLinkId: string, key: string): Promise<void>
  /** What the pages of payers show the processor's own form by. */
  readonly publishableKey: string
  /** A checkout in a page of ours or of a partner, which charges once. */
  openCheckout(
    checkout: NewCheckout,
    key: string,
  ): Promise<{ readonly processorCheckoutId: string; readonly clientSecret: string }>
  /** What mounts a checkout in a page, again; null when it is not open any more. */
  secretOf(processorCheckoutId: string): Promise<string | null>
  /**
   * Nobody can pay by the checkout any more; closing it again changes nothing.
   * @returns what came of it before.
   * @throws ProviderUnavailable: somebody may be paying by it at this moment, or it is not known; ProviderRefused.
   */
  closeCheckout(processorCheckoutId: string): Promise<ClosedCheckout>
  /**
   * Gives money back, once for a refund: one that is asked for again, at whatever time, is looked up first.
   * @returns how it stands; a notice tells what becomes of one that is pending, or that fails later.
   * @throws ProviderRefused: nothing was refunded, by an earlier call neither.
   */
  refund(
    refund: NewRefund,
    key: string,
  ): Promise<{ readonly processorRefundId: string; readonly status: ProcessorRefundStatus }>
  /**
   * A monthly charge. One that is due at once stays `incomplete` and takes no money before {@link chargeFirst}, so that
   * a subscription which is not recorded here costs nobody anything; the processor drops it after a day. One that is
   * asked for again, at whatever time, is looked up first.
   * @throws ProviderRefused about `payment_method` where that is none, or another customer's.
   */
  createSubscription(
    subscription: NewProcessorSubscription,
    key: string,
  ): Promise<{ readonly processorSubscriptionId: string; readonly status: ProcessorSubscriptionStatus }>
  /** Takes the first payment of a subscription; a notice tells what came of it. */
  chargeFirst(processorSubscriptionId: string, key: string): Promise<void>
  /**
   * Whose a subscription is and how it stands, as the processor says now. Absent where nothing is told by notices: it is
   * as it is recorded here.
   * @throws ProviderRefused: there is none.
   */
  readSubscription?(processorSubscriptionId: string): Promise<{
    /** Null: it is none of this service. */
    readonly subscriptionId: string | null
    /** Null: a word that says nothing of the payments. */
    readonly status: ProcessorSubscriptionStatus | null
  }>
  /** No further charge is made. One that has ended already stays as it is. */
  cancelSubscription(processorSubscriptionId: string, key: string): Promise<void>
  /**
   * The notices in a request of the processor, in our words; those that are about nothing of ours are left out.
   * @returns null when the signature is wrong or too old: then nothing of it is believed; `unreadable` when what is
   *   signed is no notice.
   */
  readNotices(request: {
    readonly body: Buffer
    readonly headers: Readonly<Record<string, string | string[] | undefined>>
    readonly now: number
  }): readonly (ProcessorNotice | UnreadNotice)[] | 'unreadable' | null
  /** A notice that was believed before, by its body. @returns null when it is about nothing of ours. @throws Error: it is none. */
  readNotice?(body: string): ProcessorNotice | UnreadNotice | null
  /**
   * What was told since a time, whether or not it was received, oldest first, and in parts, each with how far it goes.
   * Absent where nothing is told by notices. A processor keeps its notices for a while only.
   * @param since epoch milliseconds of the processor's clock.
   * @throws ProviderUnavailable
   */
  noticesSince?(since: number): AsyncIterable<ListedNotices>
}

export interface ListedNotices {
  readonly notices: readonly (ProcessorNotice | UnreadNotice)[]
  /** Nothing of before is listed any more, epoch milliseconds of the processor's clock. */
  readonly until: number
}

export interface NewCustomer {
  readonly employerId: string
  readonly name: string
  readonly email: string
}

export interface NewProcessorLink {
  /** Our id of the link, which notices name again. */
  readonly linkId: string
  readonly customerId: string
  readonly amountCents: number
  /** Shown to the customer. */
  readonly description: string
  readonly afterCompletionUrl: string | null
  /** Keep the payment method for the monthly charges that follow. */
  readonly keepsMethod: boolean
}

export interface NewCheckout {
  /** Our ids of the session and the checkout, which notices name again. */
  readonly sessionId: string
  readonly checkoutId: string
  readonly amountCents: number
  /** Shown to the customer. */
  readonly description: string | null
}

export interface NewRefund {
  /** Our ids of the link and the refund, which notices name again. */
  readonly linkId: string
  readonly refundId: string
  /** The refund may have been asked for before. */
  readonly isRepeated: boolean
  readonly processorPaymentId: string
  readonly amountCents: number
  readonly reason: RefundReason | null
}

export interface NewProcessorSubscription {
  /** Our id of the subscription, which notices name again. */
  readonly subscriptionId: string
  readonly customerId: string
  /** Null: the customer's default method. Else it becomes the default. */
  readonly paymentMethodId: string | null
  /**
   * The method is what the payer of a link left: it may be of a customer that the hosted page made for the payer, who
   * is charged then.
   */
  readonly isPayersMethod: boolean
  readonly amountCents: number
  /** Epoch milliseconds; null: at once. */
  readonly firstChargeAt: number | null
  /** Day of the month of all charges, in shorter months the last one; default that of the first. */
  readonly chargeDay?: number
  /** Charges in all; null: until it is cancelled. */
  readonly charges: number | null
}

export type ProcessorRefundStatus = 'pending' | 'succeeded' | 'failed'
export type ProcessorSubscriptionStatus = 'incomplete' | 'active' | 'past_due' | 'canceled'

/** Our id of a subscription; or the processor's, where a notice has no other. */
type NamedSubscription = { readonly subscriptionId: string } | { readonly processorSubscriptionId: string }

/** A monthly charge of a subscription. */
interface ChargeNotice {
  readonly processorPaymentId: string
  readonly amountCents: number
  /** When the processor first meant to make this charge, epoch milliseconds: what tells which of the charges it is. */
  readonly dueAt: number
}

/** What a processor tells of a payment link. */
export type LinkNotice =
  | {
      readonly about: 'link_paid'
      readonly linkId: string
      readonly processorPaymentId: string
      readonly paymentMethodId: string | null
      readonly amountCents: number
    }
  | { readonly about: 'link_failed'; readonly linkId: string; readonly failureMessage: string }
  | { readonly about: 'link_expired'; readonly linkId: string }
  | {
      readonly about: 'link_refund'
      readonly linkId: string
      readonly refundId: string
      readonly processorRefundId: string
      readonly status: Exclude<ProcessorRefundStatus, 'pending'>
    }

/** What a processor tells of a subscription. */
export type SubscriptionNotice =
  | ({ readonly about: 'subscription_paid' } & NamedSubscription & ChargeNotice)
  | ({ readonly about: 'subscription_failed'; readonly failureCode: string | null } & NamedSubscription &
      ChargeNotice)
  | {
      readonly about: 'subscription_status'
      readonly subscriptionId: string
      readonly status: ProcessorSubscriptionStatus
    }

interface CheckoutPaid {
  readonly processorPaymentId: string
  readonly amountCents: number
  /** When the money was taken, epoch milliseconds. */
  readonly at: number
}

/** What had come of a checkout when it was closed: nothing, money, or a payment whose outcome a notice tells later. */
export type ClosedCheckout =
  | { readonly outcome: 'nothing' | 'processing' }
  | ({ readonly outcome: 'paid' } & CheckoutPaid)

/** What a processor tells of a checkout. */
export type CheckoutNotice = { readonly sessionId: string; readonly checkoutId: string } & (
  | ({ readonly about: 'checkout_paid' } & Omit<CheckoutPaid, 'at'>)
  | { readonly about: 'checkout_failed'; readonly failureMessage: string }
  /** What was being paid was cancelled there; where nobody was paying, it says nothing. */
  | { readonly about: 'checkout_payment_cancelled' }
  /** Somebody paid by bank debit: whether the money comes is told days later. Nobody else can pay there. */
  | { readonly about: 'checkout_processing' }
  | { readonly about: 'checkout_expired' }
)

/** What a processor tells. */
export type ProcessorNotice = {
  /** The processor's id of the notice: the same notice may come again. */
  readonly noticeId: string
  /** When it happened there, epoch milliseconds: notices may come late and in any order. */
  readonly at: number
} & (LinkNotice | CheckoutNotice | SubscriptionNotice)

/** What a processor tells in a shape that is not understood, and that may be about something of ours. */
export interface UnreadNotice {
  readonly about: 'unread'
  /** The processor's id, type and version of it, as far as they can be read. */
  readonly noticeId: string | null
  readonly type: string | null
  readonly version: string | null
  /** Ids in it that may name something of ours: our own, or the processor's of subscriptions. */
  readonly names: readonly string[]
  /** Names people: it is kept sealed only. */
  readonly body: string
}
