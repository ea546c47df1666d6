import type { PaymentSessionData as DataOf } from './payment-session-events.ts'

/**
 * A payment session: an invitation to pay, by card at once or by bank debit. What the card processor took counts in every
 * state. A debit that was arranged is never called back; the session waits for it without an end, whichever service collects it.
 */
export const SESSION_STATUSES = ['pending', 'opened', 'scheduled', 'paid', 'cancelled', 'expired'] as const
export type SessionStatus = (typeof SESSION_STATUSES)[number]

export interface PaymentSession extends DataOf<'PaymentSessionCreated'> {
  /** As it was recorded; see {@link sessionStatusAt}. */
  readonly status: SessionStatus
  readonly invitations: readonly Omit<DataOf<'PaymentSessionInvited'>, 'payment_session_id'>[]
  readonly checkouts: readonly Checkout[]
  /** By the card processor, the first one first. */
  readonly payments: readonly (Pick<DataOf<'PaymentSessionPaid'>, 'payment_id' | 'processor_payment_id'> & {
    /** The money was on its way for days, rather than charged to a card. */
    readonly isBankDebit: boolean
  })[]
  readonly debit: Omit<DataOf<'PaymentSessionDebitArranged'>, 'payment_session_id'> | null
  /** The source of the news that the debit's money is there. */
  readonly confirmed_by: readonly ('bank' | 'processor')[]
  /** Numbers of the installments whose debits are created. */
  readonly installments_created: readonly number[]
  readonly plan_stopped: boolean
  /** The return code after which the account of its plan is debited no more; null: it may be. */
  readonly disabled_by: string | null
  readonly paid_late: boolean
  /** When a payment by the card processor failed, last; null: never. */
  readonly last_failed_at: string | null
  readonly replaced_by: string | null
  readonly opened_at: string | null
  readonly paid_at: string | null
  readonly cancelled_at: string | null
  readonly updated_at: string
}

export type CheckoutAtProcessor = Pick<
  DataOf<'PaymentSessionCheckoutBegun'>,
  'checkout_id' | 'processor' | 'processor_checkout_id'
>

/** A checkout at the card processor. */
export interface Checkout extends CheckoutAtProcessor {
  /** Money may be taken by it. */
  readonly isOpen: boolean
  /** Somebody paid at it, and the money may come. */
  readonly isProcessing: boolean
  /** When an attempt at it failed last. */
  readonly failed_at: string | null
}

/** The status at a moment in epoch milliseconds: one that can be paid and whose time is over reads `expired`. */
export function sessionStatusAt(
  { status, expires_at }: Pick<PaymentSession, 'status' | 'expires_at'>,
  now: number,
): SessionStatus {
  return isAwaited(status) && Date.parse(expires_at) <= now ? 'expired' : status
}

/** Whether a session of a status waits for the customer. */
export function isAwaited(status: SessionStatus): status is 'pending' | 'opened' {
  return status === 'pending' || status === 'opened'
}

/** Whether a card can be charged for it: one that may be paid more than once also when it is paid, until its time is over. */
export function takesCards(state: PaymentSession, now: number): boolean {
  if (state.plan !== null) return false
  const status = sessionStatusAt(state, now)
  return isAwaited(status) || (status === 'paid' && mayBePaidAgain(state, now))
}

/** One that was paid late was to be paid no more. */
function mayBePaidAgain({ expires_at, ...state }: PaymentSession, now: number): boolean {
  return (
    isPaidAgainByCard(state) && !state.paid_late && state.replaced_by === null && now < Date.parse(expires_at)
  )
}

/** The checkouts that the card processor may still take money by. */
export function openCheckouts({ checkouts }: Pick<PaymentSession, 'checkouts'>): readonly Checkout[] {
  return checkouts.filter(({ isOpen }) => isOpen)
}

/** Whether further payments by card are wanted of a session that is paid: it was paid by card, and may be again. */
export function isPaidAgainByCard({
  payments,
  debit,
  single_use,
}: Pick<PaymentSession, 'payments' | 'debit' | 'single_use'>): boolean {
  return payments.length > 0 && debit === null && !single_use
}
