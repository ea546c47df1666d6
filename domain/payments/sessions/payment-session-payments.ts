import { isoTime } from '../../kernel/calendar.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import {
  type PaymentSessionData as DataOf,
  PaymentSessionAmountDiffered,
  type PaymentSessionEvent,
  PaymentSessionPaid,
  PaymentSessionPaidAgain,
  PaymentSessionPaymentFailed,
  PaymentSessionPaymentProcessing,
} from './payment-session-events.ts'
import {
  type Checkout,
  isAwaited,
  isPaidAgainByCard,
  type PaymentSession,
  sessionStatusAt,
  takesCards,
} from './payment-session-status.ts'

/**
 * What the card processor does about a payment session. A card is charged at once. A bank debit is processing for days: the
 * session is scheduled meanwhile, and can be paid again when it fails.
 */

/** Times are epoch milliseconds. */
export type PaymentCommand =
  | ({ readonly type: 'Pay' } & Payment)
  | { readonly type: 'RecordPaymentProcessing'; readonly checkoutId: string; readonly at: number }
  | {
      readonly type: 'RecordPaymentFailed'
      readonly checkoutId: string
      readonly failureId: string
      readonly message: string
      readonly at: number
    }

interface Payment {
  readonly paymentId: string
  readonly checkoutId: string
  readonly processorPaymentId: string
  readonly amountCents: number
  /** When the money was taken. */
  readonly at: number
  /** When that was heard of. */
  readonly now: number
  /** The payment was found as the checkout was closed, for the session was to be paid by it no more. */
  readonly isFoundClosing?: boolean
  /** Nothing was taken yet: the checkout must still be open. */
  readonly isToBeTaken?: boolean
}

type PaymentEvent = Extract<
  PaymentSessionEvent,
  {
    type:
      | 'PaymentSessionPaymentProcessing'
      | 'PaymentSessionPaid'
      | 'PaymentSessionPaidAgain'
      | 'PaymentSessionAmountDiffered'
      | 'PaymentSessionPaymentFailed'
  }
>

export function decidePayment(
  command: PaymentCommand,
  state: PaymentSession,
): readonly PaymentSessionEvent[] | Rejection {
  const { payment_session_id, checkouts } = state
  const { checkoutId: checkout_id, at } = command
  const checkout = checkouts.find((one) => one.checkout_id === checkout_id)
  switch (command.type) {
    case 'Pay':
      return pay(command, checkout, state)
    case 'RecordPaymentProcessing': {
      // notices come in any order: one that has failed since is over
      const hasFailed = checkout?.failed_at != null && Date.parse(checkout.failed_at) >= at
      if (!checkout?.isOpen || hasFailed) return []
      return [PaymentSessionPaymentProcessing.of({ payment_session_id, checkout_id, at: isoTime(at) })]
    }
    case 'RecordPaymentFailed': {
      const ends_checkout = checkout?.isProcessing === true
      // what is heard late of a session that is closed changes nothing for anybody
      if (!ends_checkout && !takesCards(state, at)) return []
      const { failureId: failure_id, message: failure_message } = command
      const failed = { payment_session_id, failure_id, failure_message, failed_at: isoTime(at) }
      return [PaymentSessionPaymentFailed.of({ ...failed, checkout_id, ends_checkout })]
    }
  }
}

export function afterPayment(before: PaymentSession, { type, data }: PaymentEvent): PaymentSession {
  switch (type) {
    case 'PaymentSessionPaymentProcessing': {
      const after = withCheckout(before, data.checkout_id, { isOpen: false, isProcessing: true })
      const status = isAwaited(before.status) ? 'scheduled' : before.status
      return { ...after, status, updated_at: data.at }
    }
    case 'PaymentSessionPaid': {
      const { late: paid_late, paid_at } = data
      return { ...withPayment(before, data), status: 'paid', paid_late, paid_at, updated_at: paid_at }
    }
    case 'PaymentSessionPaidAgain':
      return { ...withPayment(before, data), updated_at: data.paid_at }
    case 'PaymentSessionAmountDiffered':
      return before
    case 'PaymentSessionPaymentFailed': {
      const { checkout_id, failed_at, ends_checkout } = data
      const after = {
        ...(checkout_id === undefined ? before : withCheckout(before, checkout_id, { failed_at })),
        last_failed_at: failed_at,
        updated_at: failed_at,
      }
      if (!ends_checkout || checkout_id === undefined) return after
      const status = before.status === 'scheduled' && before.debit === null ? 'opened' : before.status
      return { ...withClosed(after, checkout_id), status }
    }
  }
}

/** Nobody pays by a checkout any more. */
export function withClosed(before: PaymentSession, checkoutId: string): PaymentSession {
  return withCheckout(before, checkoutId, { isOpen: false, isProcessing: false })
}

function withCheckout(before: PaymentSession, checkoutId: string, change: Partial<Checkout>): PaymentSession {
  const checkouts = before.checkouts.map((one) =>
    one.checkout_id === checkoutId ? { ...one, ...change } : one,
  )
  return { ...before, checkouts }
}

/** A checkout that took money is over. */
function withPayment(
  before: PaymentSession,
  { payment_id, processor_payment_id, checkout_id }: DataOf<'PaymentSessionPaidAgain' | 'PaymentSessionPaid'>,
): PaymentSession {
  const isBankDebit = before.checkouts.some((one) => one.checkout_id === checkout_id && one.isProcessing)
  const payments = [...before.payments, { payment_id, processor_payment_id, isBankDebit }]
  return withClosed({ ...before, payments }, checkout_id)
}

/** Money counts in every state, and the same payment counts once. */
function pay(
  { paymentId: payment_id, checkoutId, processorPaymentId, amountCents, at, ...circumstances }: Payment,
  checkout: Checkout | undefined,
  state: PaymentSession,
): readonly PaymentSessionEvent[] | Rejection {
  const { payment_session_id, payments, amount_cents: asked_cents } = state
  if (payments.some((one) => one.processor_payment_id === processorPaymentId)) return []
  if (circumstances.isToBeTaken && !checkout?.isOpen) {
    return reject('conflict', 'checkout_closed', 'The checkout was closed: nobody can pay by it any more')
  }
  const payment = {
    payment_session_id,
    payment_id,
    checkout_id: checkoutId,
    processor_payment_id: processorPaymentId,
    amount_cents: amountCents,
    paid_at: isoTime(at),
  }
  const differed =
    amountCents === asked_cents ? [] : [PaymentSessionAmountDiffered.of({ ...payment, asked_cents })]
  const isOnTime = checkout?.isProcessing || circumstances.now < Date.parse(state.expires_at)
  if (state.status === 'paid') {
    const is_wanted = isPaidAgainByCard(state)
    const late = circumstances.isFoundClosing || !isOnTime
    return [PaymentSessionPaidAgain.of({ ...payment, is_wanted, ...(late && { late }) }), ...differed]
  }
  const isExpected = checkout?.isProcessing
    ? state.status === 'scheduled' && state.debit === null
    : isAwaited(sessionStatusAt(state, circumstances.now))
  const late = circumstances.isFoundClosing || !isExpected
  const debit_leg_id = state.debit?.leg_id ?? null
  return [PaymentSessionPaid.of({ ...payment, late, debit_leg_id }), ...differed]
}
