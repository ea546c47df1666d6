import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import {
  type PaymentSessionData as DataOf,
  PaymentSessionCancelled,
  PaymentSessionCheckoutBegun,
  PaymentSessionCheckoutClosed,
  PaymentSessionCreated,
  PaymentSessionDebitArranged,
  PaymentSessionDebitConfirmed,
  type PaymentSessionEvent,
  PaymentSessionExpired,
  PaymentSessionInstalmentMinted,
  PaymentSessionInvited,
  PaymentSessionOpened,
  PaymentSessionPlanStopped,
  PaymentSessionReplaced,
  paymentSessionEvents,
} from './payment-session-events.ts'
import { afterPayment, decidePayment, type PaymentCommand, withClosed } from './payment-session-payments.ts'
import {
  type CheckoutAtProcessor,
  isAwaited,
  openCheckouts,
  type PaymentSession,
  type SessionStatus,
  sessionStatusAt,
  takesCards,
} from './payment-session-status.ts'
import { schedule } from './session-plan.ts'

/** Times are epoch milliseconds. */
export type PaymentSessionCommand =
  | {
      readonly type: 'Create'
      readonly data: DataOf<'PaymentSessionCreated'>
      /** Of an embedded one: the checkout that it begins with. */
      readonly checkout: CheckoutAtProcessor | null
    }
  | { readonly type: 'RecordInvited'; readonly invitation: PaymentSession['invitations'][number] }
  | { readonly type: 'Open'; readonly at: number }
  | {
      readonly type: 'BeginCheckout'
      readonly checkout: CheckoutAtProcessor
      readonly at: number
    }
  | { readonly type: 'RecordCheckoutClosed'; readonly checkoutId: string; readonly at: number }
  | PaymentCommand
  | {
      readonly type: 'ArrangeDebit'
      readonly debitId: string
      readonly account: NonNullable<PaymentSession['debit']>['account']
      readonly at: number
    }
  | {
      // ids of commands derive from this name
      readonly type: 'CreateInstalmentDebit'
      readonly number: number
      readonly debitId: string
      readonly isPolicyCancelled: boolean
      /** The down payment was returned, or not debited: the plan is about to be stopped for that. */
      readonly isDownPaymentGone: boolean
      readonly at: number
    }
  | {
      readonly type: 'ConfirmDebit'
      readonly debitId: string
      readonly by: 'bank' | 'processor'
      readonly at: number
    }
  /** One of its debits came back, be it that of an installment. */
  | {
      readonly type: 'RecordDebitReturned'
      readonly debitId: string
      readonly return_code: string
      /** Nothing is debited from its account any more. */
      readonly disables: boolean
      readonly at: number
    }
  /** A debit of it ended before any money moved, without being cancelled. */
  | { readonly type: 'RecordDebitFailed'; readonly debitId: string; readonly at: number }
  | { readonly type: 'Cancel'; readonly at: number }
  | { readonly type: 'Expire'; readonly at: number }
  | { readonly type: 'Replace'; readonly replacedBy: string; readonly at: number }

/** Why a session that a partner wants to cancel or to replace stays as it is; null when it need not. */
type Refusal = Rejection | null

export const paymentSession: Decider<PaymentSession | null, PaymentSessionCommand, PaymentSessionEvent> = {
  category: 'paymentSession',
  events: paymentSessionEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'PaymentSessionCreated') return begun(event.data)
    const before = state!
    switch (event.type) {
      case 'PaymentSessionInvited': {
        const { payment_session_id: _session, ...invitation } = event.data
        return { ...before, invitations: [...before.invitations, invitation], updated_at: invitation.at }
      }
      case 'PaymentSessionOpened': {
        const { opened_at } = event.data
        const status = before.status === 'pending' ? 'opened' : before.status
        return { ...before, status, opened_at, updated_at: opened_at }
      }
      case 'PaymentSessionCheckoutBegun': {
        const { checkout_id, processor, processor_checkout_id } = event.data
        const at = { checkout_id, processor, processor_checkout_id }
        const checkout = { ...at, isOpen: true, isProcessing: false, failed_at: null }
        return { ...before, checkouts: [...before.checkouts, checkout] }
      }
      case 'PaymentSessionCheckoutClosed':
        return withClosed(before, event.data.checkout_id)
      case 'PaymentSessionPaymentProcessing':
      case 'PaymentSessionPaid':
      case 'PaymentSessionPaidAgain':
      case 'PaymentSessionAmountDiffered':
      case 'PaymentSessionPaymentFailed':
        return afterPayment(before, event)
      case 'PaymentSessionHeldUp':
        return before
      case 'PaymentSessionDebitArranged': {
        const { payment_session_id: _session, ...debit } = event.data
        return { ...before, status: 'scheduled', debit, updated_at: debit.scheduled_at }
      }
      case 'PaymentSessionInstalmentMinted': {
        const { number, at } = event.data
        return { ...before, installments_created: [...before.installments_created, number], updated_at: at }
      }
      case 'PaymentSessionDebitConfirmed':
        return confirmed(before, event.data)
      case 'PaymentSessionPlanStopped':
        return {
          ...before,
          plan_stopped: true,
          disabled_by: event.data.disabled_by ?? null,
          updated_at: event.data.at,
        }
      case 'PaymentSessionCancelled': {
        const { cancelled_at } = event.data
        return { ...before, status: 'cancelled', cancelled_at, updated_at: cancelled_at }
      }
      case 'PaymentSessionExpired':
        return { ...before, status: 'expired', updated_at: event.data.expired_at }
      case 'PaymentSessionReplaced': {
        const { replaced_by, replaced_at: updated_at } = event.data
        if (!isAwaited(before.status)) return { ...before, replaced_by, updated_at }
        return { ...before, status: 'cancelled', replaced_by, cancelled_at: updated_at, updated_at }
      }
    }
  },
  decide(command, state): readonly PaymentSessionEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'payment_session_exists', 'The payment session exists already')
      const { data, checkout } = command
      const { payment_session_id, created_at: at } = data
      const begun = checkout && PaymentSessionCheckoutBegun.of({ payment_session_id, ...checkout, at })
      return [PaymentSessionCreated.of(data), ...(begun ? [begun] : [])]
    }
    if (!state) return reject('not_found', 'payment_session_not_found', 'There is no such payment session')
    const { payment_session_id } = state
    switch (command.type) {
      case 'RecordInvited':
        return [PaymentSessionInvited.of({ payment_session_id, ...command.invitation })]
      case 'Open':
        if (sessionStatusAt(state, command.at) !== 'pending') return []
        return [PaymentSessionOpened.of({ payment_session_id, opened_at: isoTime(command.at) })]
      case 'BeginCheckout': {
        const { checkout, at } = command
        if (state.checkouts.some(({ checkout_id }) => checkout_id === checkout.checkout_id)) return []
        if (!takesCards(state, at)) return notPayable(state, at)
        return [PaymentSessionCheckoutBegun.of({ payment_session_id, ...checkout, at: isoTime(at) })]
      }
      case 'RecordCheckoutClosed': {
        const { checkoutId: checkout_id, at } = command
        if (!openCheckouts(state).some((one) => one.checkout_id === checkout_id)) return []
        return [PaymentSessionCheckoutClosed.of({ payment_session_id, checkout_id, at: isoTime(at) })]
      }
      case 'Pay':
      case 'RecordPaymentProcessing':
      case 'RecordPaymentFailed':
        return decidePayment(command, state)
      case 'ArrangeDebit': {
        const { debitId, account, at } = command
        if (!isAwaited(sessionStatusAt(state, at))) return notPayable(state, at)
        // the checkouts end before: one of them might take the money as well
        if (openCheckouts(state).length > 0) return checkoutsOpen()
        const leg_id = state.amount_cents > 0 ? debitId : null
        const arranged = { payment_session_id, leg_id, account, scheduled_at: isoTime(at) }
        return [PaymentSessionDebitArranged.of({ ...arranged, instalments: owed(state) })]
      }
      case 'CreateInstalmentDebit':
        return createInstallmentDebit(command, state)
      case 'ConfirmDebit': {
        const { debitId: leg_id, by, at } = command
        if (state.debit?.leg_id !== leg_id || state.confirmed_by.includes(by)) return []
        const sells_plan = state.plan !== null
        return [
          PaymentSessionDebitConfirmed.of({ payment_session_id, leg_id, by, sells_plan, at: isoTime(at) }),
        ]
      }
      case 'RecordDebitReturned': {
        const { debitId, return_code, disables, at } = command
        const isDownPayment = state.debit?.leg_id === debitId
        const disabled_by = disables ? return_code : undefined
        if (state.plan === null || state.plan_stopped || !(isDownPayment || disabled_by)) return []
        const reason = isDownPayment ? 'down_payment_returned' : 'account_disabled'
        return [
          PaymentSessionPlanStopped.of({
            payment_session_id,
            reason,
            ...(disabled_by && { disabled_by }),
            at: isoTime(at),
          }),
        ]
      }
      case 'RecordDebitFailed': {
        if (state.plan === null || state.debit?.leg_id !== command.debitId || state.plan_stopped) return []
        const reason = 'down_payment_failed' as const
        return [PaymentSessionPlanStopped.of({ payment_session_id, reason, at: isoTime(command.at) })]
      }
      case 'Cancel':
        return cancel(command.at, state)
      case 'Expire':
        if (!isAwaited(state.status)) return []
        // one may have been begun at the last moment
        if (openCheckouts(state).length > 0) return checkoutsOpen()
        return [PaymentSessionExpired.of({ payment_session_id, expired_at: isoTime(command.at) })]
      case 'Replace': {
        const { replacedBy: replaced_by, at } = command
        if (state.replaced_by === replaced_by) return []
        const refusal = refuseReplacing(state)
        if (refusal) return refusal
        if (openCheckouts(state).length > 0) return checkoutsOpen()
        const replaced = PaymentSessionReplaced.of({
          payment_session_id,
          replaced_by,
          replaced_at: isoTime(at),
        })
        // one whose time is over stays expired, whether or not that was recorded
        const isOver = isAwaited(state.status) && sessionStatusAt(state, at) === 'expired'
        if (!isOver) return [replaced]
        const { expires_at: expired_at } = state
        return [PaymentSessionExpired.of({ payment_session_id, expired_at }), replaced]
      }
    }
  },
}

/** Why a session cannot be replaced by another. */
export function refuseReplacing({ status, debit, checkouts, replaced_by }: PaymentSession): Refusal {
  if (replaced_by !== null) {
    const why = `The payment session was replaced by ${replaced_by} already`
    return { ...reject('conflict', 'payment_session_replaced', why), ids: { replaced_by } }
  }
  if (debit !== null || checkouts.some(({ isProcessing }) => isProcessing)) {
    const why =
      'A bank debit is already arranged for the payment session and must be cancelled first: it cannot be reissued'
    return reject('conflict', 'debit_arranged', why)
  }
  if (status !== 'paid') return null
  return reject('conflict', 'payment_session_paid', 'The payment session is paid: it cannot be reissued')
}

/** Why a session cannot be cancelled, at a moment in epoch milliseconds. One that is cancelled stays so. */
export function refuseCancelling(state: PaymentSession, at: number): Refusal {
  const status = sessionStatusAt(state, at)
  if (status !== 'paid' && status !== 'expired') return null
  const why = status === 'paid' ? 'is paid' : 'has expired'
  return reject('conflict', `payment_session_${status}`, `The payment session ${why}: it cannot be cancelled`)
}

/** Why the customer cannot pay, at a moment in epoch milliseconds. */
export function notPayable(state: PaymentSession, at: number): Rejection {
  const status = sessionStatusAt(state, at)
  if (state.plan !== null && isAwaited(status)) {
    const why = 'A payment plan is paid from a bank account: choose the bank option instead of a card'
    return reject('conflict', 'session_not_payable', why)
  }
  const why: Record<SessionStatus, string> = {
    pending: 'can be paid',
    opened: 'can be paid',
    scheduled: 'is scheduled to be paid from a bank account',
    paid: 'is paid',
    cancelled: 'was cancelled',
    expired: 'has expired',
  }
  return reject('conflict', 'session_not_payable', `The payment session ${why[status]}`)
}

function checkoutsOpen(): Rejection {
  return reject('conflict', 'checkout_open', 'A card checkout of the payment session is still open')
}

/** The installments of a plan that come to something. */
function owed({ plan, created_at }: PaymentSession) {
  if (plan === null) return []
  return schedule(plan, Date.parse(created_at))
    .filter(({ amount_cents }) => amount_cents > 0)
    .map(({ number, amount_cents, dueAt }) => ({ number, amount_cents, due_at: isoTime(dueAt) }))
}

function begun(data: DataOf<'PaymentSessionCreated'>): PaymentSession {
  return {
    ...data,
    status: 'pending',
    invitations: [],
    checkouts: [],
    payments: [],
    installments_created: [],
    confirmed_by: [],
    debit: null,
    plan_stopped: false,
    disabled_by: null,
    paid_late: false,
    replaced_by: null,
    last_failed_at: null,
    opened_at: null,
    paid_at: null,
    cancelled_at: null,
    updated_at: data.created_at,
  }
}

/** Decided here, so that of a cancellation and an installment at the same moment one comes first. */
function createInstallmentDebit(
  {
    number,
    debitId: leg_id,
    isPolicyCancelled,
    isDownPaymentGone,
    at,
  }: Extract<PaymentSessionCommand, { type: 'CreateInstalmentDebit' }>,
  state: PaymentSession,
): readonly PaymentSessionEvent[] | Rejection {
  const { payment_session_id, status, debit, installments_created, plan_stopped } = state
  const owed = debit?.instalments.find((one) => one.number === number)
  if (!owed || at < Date.parse(owed.due_at)) {
    return reject('conflict', 'instalment_not_due', `Installment ${number} is not due`)
  }
  if (installments_created.includes(number) || status === 'cancelled' || plan_stopped) return []
  if (isDownPaymentGone) return []
  if (isPolicyCancelled) {
    const reason = 'policy_cancelled' as const
    return [PaymentSessionPlanStopped.of({ payment_session_id, reason, at: isoTime(at) })]
  }
  return [PaymentSessionInstalmentMinted.of({ payment_session_id, number, leg_id, at: isoTime(at) })]
}

/** A plan stays scheduled for its life, and what was cancelled stays so. */
function confirmed(
  before: PaymentSession,
  { by, at }: DataOf<'PaymentSessionDebitConfirmed'>,
): PaymentSession {
  const after = { ...before, confirmed_by: [...before.confirmed_by, by], updated_at: at }
  if (before.status !== 'scheduled' || before.plan !== null) return after
  return { ...after, status: 'paid', paid_at: at }
}

function cancel(at: number, state: PaymentSession): readonly PaymentSessionEvent[] | Rejection {
  if (state.status === 'cancelled') return []
  const refusal = refuseCancelling(state, at)
  if (refusal) return refusal
  if (openCheckouts(state).length > 0) return checkoutsOpen()
  const { payment_session_id } = state
  return [PaymentSessionCancelled.of({ payment_session_id, cancelled_at: isoTime(at) })]
}
