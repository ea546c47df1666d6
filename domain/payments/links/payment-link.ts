import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import {
  type PaymentLinkData as DataOf,
  type DeliveryChannel,
  PaymentLinkAmountDiffered,
  PaymentLinkCancelled,
  PaymentLinkCreated,
  PaymentLinkDeliveryFailed,
  type PaymentLinkEvent,
  PaymentLinkExpired,
  PaymentLinkPaid,
  PaymentLinkPaidAgain,
  PaymentLinkPaymentFailed,
  PaymentLinkPlanNotStarted,
  PaymentLinkSent,
  paymentLinkEvents,
} from './payment-link-events.ts'
import {
  type Refund,
  type RefundCommand,
  requestRefund,
  settleRefund,
  withNewRefund,
  withRefund,
} from './payment-link-refunds.ts'

/**
 * A payment link: one hosted checkout, paid once. What the processor took counts in every state; refunds do not change
 * the state, and one at a time is under way.
 */
export const LINK_STATUSES = ['created', 'sent', 'cancelled', 'paid', 'expired'] as const
export type PaymentLinkStatus = (typeof LINK_STATUSES)[number]

export interface PaymentLink extends DataOf<'PaymentLinkCreated'> {
  /** As it was recorded; see {@link statusAt}. */
  readonly status: PaymentLinkStatus
  readonly payment: Omit<DataOf<'PaymentLinkPaid'>, 'payment_link_id'> | null
  /** Further payments by the processor's ids. */
  readonly paid_again: readonly string[]
  readonly refunds: readonly Refund[]
  /** Channels that it was sent by. */
  readonly sent_by: readonly DeliveryChannel[]
  readonly plan_not_started: boolean
  readonly sent_at: string | null
  readonly cancelled_at: string | null
  readonly expired_at: string | null
  readonly updated_at: string
}

/** Times are epoch milliseconds. */
export type PaymentLinkCommand =
  | { readonly type: 'Create'; readonly data: DataOf<'PaymentLinkCreated'> }
  | { readonly type: 'RecordSent'; readonly channel: DeliveryChannel; readonly at: number }
  | { readonly type: 'RecordDeliveryFailed'; readonly channel: DeliveryChannel; readonly at: number }
  | {
      readonly type: 'Pay'
      readonly paymentId: string
      readonly processorPaymentId: string | null
      readonly paymentMethodId: string | null
      /** What was taken; null: what the link asks for. */
      readonly amountCents: number | null
      /** When the money was taken. */
      readonly at: number
      /** When that was heard of. */
      readonly now: number
    }
  | {
      readonly type: 'RecordPaymentFailed'
      readonly failureId: string
      readonly message: string
      readonly at: number
    }
  | {
      readonly type: 'RecordPlanNotStarted'
      readonly reason: DataOf<'PaymentLinkPlanNotStarted'>['reason']
      readonly at: number
    }
  | { readonly type: 'Cancel'; readonly at: number }
  | { readonly type: 'Expire'; readonly at: number }
  | RefundCommand

/** What a link charges in all. */
export function totalCents({
  premium_cents,
  fee_cents,
}: Pick<PaymentLink, 'premium_cents' | 'fee_cents'>): number {
  return premium_cents + fee_cents
}

/** What a link charges now: the total, or the down payment of its plan. */
export function linkAmountCents(
  one: Pick<PaymentLink, 'premium_cents' | 'fee_cents' | 'installment_plan'>,
): number {
  return one.installment_plan?.down_payment_cents ?? totalCents(one)
}

/** The status at a moment in epoch milliseconds: an open link whose time is over reads `expired`. */
export function statusAt(
  { status, expires_at }: Pick<PaymentLink, 'status' | 'expires_at'>,
  now: number,
): PaymentLinkStatus {
  return isOpen(status) && Date.parse(expires_at) <= now ? 'expired' : status
}

/** Whether a link of a status can be paid, cancelled, or expire. */
export function isOpen(status: PaymentLinkStatus): status is 'created' | 'sent' {
  return status === 'created' || status === 'sent'
}

export const paymentLink: Decider<PaymentLink | null, PaymentLinkCommand, PaymentLinkEvent> = {
  category: 'paymentLink',
  events: paymentLinkEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'PaymentLinkCreated') return begun(event.data)
    const before = state!
    switch (event.type) {
      case 'PaymentLinkSent': {
        const { channel, sent_at } = event.data
        const status = before.status === 'created' ? 'sent' : before.status
        const sent_by = [...before.sent_by, channel]
        return { ...before, status, sent_by, sent_at: before.sent_at ?? sent_at, updated_at: sent_at }
      }
      case 'PaymentLinkDeliveryFailed':
      case 'PaymentLinkPaymentFailed':
        return { ...before, updated_at: event.data.failed_at }
      case 'PaymentLinkPaid': {
        const { payment_link_id: _link, ...payment } = event.data
        return { ...before, status: 'paid', payment, updated_at: payment.paid_at }
      }
      case 'PaymentLinkPaidAgain': {
        const { processor_payment_id, paid_at } = event.data
        return { ...before, paid_again: [...before.paid_again, processor_payment_id], updated_at: paid_at }
      }
      case 'PaymentLinkAmountDiffered':
      case 'PaymentLinkHeldUp':
        return before
      case 'PaymentLinkPlanNotStarted':
        return { ...before, plan_not_started: true }
      case 'PaymentLinkCancelled': {
        const { cancelled_at } = event.data
        return { ...before, status: 'cancelled', cancelled_at, updated_at: cancelled_at }
      }
      case 'PaymentLinkExpired': {
        const { expired_at } = event.data
        return { ...before, status: 'expired', expired_at, updated_at: expired_at }
      }
      case 'PaymentLinkRefundRequested':
        return withNewRefund(before, event.data)
      case 'PaymentLinkRefunded':
        return withRefund(before, event.data, 'succeeded', event.data.refunded_at)
      case 'PaymentLinkRefundFailed':
        return withRefund(before, event.data, 'failed', event.data.failed_at)
    }
  },
  decide(command, state): readonly PaymentLinkEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'payment_link_exists', 'The payment link exists already')
      return [PaymentLinkCreated.of(command.data)]
    }
    if (!state) return reject('not_found', 'payment_link_not_found', 'There is no such payment link')
    const { payment_link_id } = state
    switch (command.type) {
      case 'RecordSent':
        if (state.sent_by.includes(command.channel)) return []
        return [
          PaymentLinkSent.of({ payment_link_id, channel: command.channel, sent_at: isoTime(command.at) }),
        ]
      case 'RecordDeliveryFailed': {
        const { channel, at } = command
        return [PaymentLinkDeliveryFailed.of({ payment_link_id, channel, failed_at: isoTime(at) })]
      }
      case 'Pay':
        return pay(command, state)
      case 'RecordPaymentFailed': {
        // what is heard late of a link that is closed changes nothing for anybody
        if (!isOpen(state.status)) return []
        const { failureId: failure_id, message: failure_message, at } = command
        const failed = { payment_link_id, failure_id, failure_message, failed_at: isoTime(at) }
        return [PaymentLinkPaymentFailed.of(failed)]
      }
      case 'RecordPlanNotStarted': {
        if (state.plan_not_started) return []
        const { policy_id } = state
        const { reason, at } = command
        return [PaymentLinkPlanNotStarted.of({ payment_link_id, policy_id, reason, at: isoTime(at) })]
      }
      case 'Cancel':
        return cancel(command, state)
      case 'Expire':
        if (!isOpen(state.status)) return []
        return [PaymentLinkExpired.of({ payment_link_id, expired_at: isoTime(command.at) })]
      case 'RequestRefund':
        return requestRefund(command, state)
      case 'RecordRefunded':
      case 'RecordRefundFailed':
        return settleRefund(command, state)
    }
  },
}

function begun(data: DataOf<'PaymentLinkCreated'>): PaymentLink {
  return {
    ...data,
    status: 'created',
    payment: null,
    paid_again: [],
    refunds: [],
    sent_by: [],
    plan_not_started: false,
    sent_at: null,
    cancelled_at: null,
    expired_at: null,
    updated_at: data.created_at,
  }
}

type CommandOf<Type extends PaymentLinkCommand['type']> = Extract<PaymentLinkCommand, { type: Type }>
type Decision = readonly PaymentLinkEvent[] | Rejection

function pay(
  { paymentId, processorPaymentId, paymentMethodId, amountCents, at, now }: CommandOf<'Pay'>,
  state: PaymentLink,
): Decision {
  const { payment_link_id, payment, paid_again } = state
  const [asked_cents, paid_at] = [linkAmountCents(state), isoTime(at)]
  const amount_cents = amountCents ?? asked_cents
  if (payment === null) {
    // money counts in every state; what only simulates it does not
    const refusal = processorPaymentId === null ? refuseUnlessOpen(statusAt(state, now)) : null
    if (refusal) return refusal
    const other = {
      payment_link_id,
      asked_cents,
      amount_cents,
      processor_payment_id: processorPaymentId,
      paid_at,
    }
    return [
      PaymentLinkPaid.of({
        payment_link_id,
        payment_id: paymentId,
        amount_cents,
        paid_at,
        processor_payment_id: processorPaymentId,
        payment_method_id: paymentMethodId,
        late: !isOpen(statusAt(state, now)),
        simulated: processorPaymentId === null,
      }),
      ...(amount_cents === asked_cents ? [] : [PaymentLinkAmountDiffered.of(other)]),
    ]
  }
  const isKnown =
    processorPaymentId === null ||
    payment.processor_payment_id === processorPaymentId ||
    paid_again.includes(processorPaymentId)
  if (isKnown) return []
  return [
    PaymentLinkPaidAgain.of({
      payment_link_id,
      amount_cents,
      processor_payment_id: processorPaymentId,
      paid_at,
    }),
  ]
}

/** Why a link of a status cannot be paid by simulation, cancelled or made to expire; null when it can. */
export function refuseUnlessOpen(status: PaymentLinkStatus): Rejection | null {
  if (isOpen(status)) return null
  const advice = status === 'paid' ? '; refund it instead' : ''
  return reject('conflict', `payment_link_${status}`, `The payment link is ${status}${advice}`)
}

function cancel({ at }: CommandOf<'Cancel'>, state: PaymentLink): Decision {
  const status = statusAt(state, at)
  if (status === 'cancelled') return []
  const refusal = refuseUnlessOpen(status)
  if (refusal) return refusal
  const { payment_link_id } = state
  return [PaymentLinkCancelled.of({ payment_link_id, cancelled_at: isoTime(at) })]
}
