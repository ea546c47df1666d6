import { isoTime } from '../../kernel/calendar.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import {
  type PaymentLinkData as DataOf,
  type PaymentLinkEvent,
  PaymentLinkRefunded,
  PaymentLinkRefundFailed,
  PaymentLinkRefundRequested,
  type RefundReason,
} from './payment-link-events.ts'

export interface Refund
  extends Omit<DataOf<'PaymentLinkRefundRequested'>, 'payment_link_id' | 'requested_at'> {
  readonly status: 'pending' | 'succeeded' | 'failed'
  /** Once it is settled; null where the processor has none. */
  readonly processor_refund_id: string | null
  readonly created_at: string
}

/** What refunds need of a payment link. */
interface RefundedLink {
  readonly payment_link_id: string
  readonly payment: { readonly amount_cents: number } | null
  readonly refunds: readonly Refund[]
}

/** Times are epoch milliseconds. */
export type RefundCommand =
  | {
      readonly type: 'RequestRefund'
      readonly refundId: string
      /** Null: whatever is left. */
      readonly amountCents: number | null
      readonly reason: RefundReason | null
      readonly at: number
    }
  | {
      readonly type: 'RecordRefunded'
      readonly refundId: string
      readonly processorRefundId: string | null
      readonly at: number
    }
  | {
      readonly type: 'RecordRefundFailed'
      readonly refundId: string
      /** Of one that the processor had taken. */
      readonly processorRefundId: string | null
      readonly at: number
    }

/** Cents that were refunded. */
export function refundedCents({ refunds }: Pick<RefundedLink, 'refunds'>): number {
  return refunds.reduce(
    (sum, { status, amount_cents }) => sum + (status === 'succeeded' ? amount_cents : 0),
    0,
  )
}

/** Cents that were paid and not refunded; a refund that is under way is not counted. */
export function refundableCents(one: Pick<RefundedLink, 'payment' | 'refunds'>): number {
  return (one.payment?.amount_cents ?? 0) - refundedCents(one)
}

/** The refund that is under way: asked for, with an unknown outcome. */
export function pendingRefund({ refunds }: Pick<RefundedLink, 'refunds'>): Refund | null {
  return refunds.find(({ status }) => status === 'pending') ?? null
}

/** A link as a refund was asked for. */
export function withNewRefund<Link extends Pick<RefundedLink, 'refunds'>>(
  before: Link,
  { payment_link_id: _link, requested_at, ...asked }: DataOf<'PaymentLinkRefundRequested'>,
) {
  const begun = { status: 'pending', processor_refund_id: null, created_at: requested_at } as const
  return { ...before, refunds: [...before.refunds, { ...asked, ...begun }], updated_at: requested_at }
}

/** A link as a refund was settled. */
export function withRefund<Link extends Pick<RefundedLink, 'refunds'>>(
  before: Link,
  { refund_id, processor_refund_id }: Pick<Refund, 'refund_id' | 'processor_refund_id'>,
  status: Refund['status'],
  updated_at: string,
) {
  const refunds = before.refunds.map((one) =>
    one.refund_id === refund_id ? { ...one, status, processor_refund_id } : one,
  )
  return { ...before, refunds, updated_at }
}

type CommandOf<Type extends RefundCommand['type']> = RefundCommand & { readonly type: Type }
type Decision = readonly PaymentLinkEvent[] | Rejection

export function requestRefund(
  { refundId: refund_id, amountCents, reason, at }: CommandOf<'RequestRefund'>,
  state: RefundedLink,
): Decision {
  const { payment_link_id } = state
  if (state.payment === null) {
    return reject(
      'conflict',
      'payment_link_not_paid',
      'The payment link is not paid: nothing can be refunded',
    )
  }
  if (pendingRefund(state)) {
    return reject('conflict', 'refund_pending', 'Another refund of the payment is under way')
  }
  const left = refundableCents(state)
  if (left === 0) return reject('conflict', 'nothing_to_refund', 'The payment is refunded in full already')
  if (amountCents !== null && amountCents > left) {
    const why = `amount_cents must not exceed the ${left} cents that are not refunded yet`
    return reject('invalid', 'refund_exceeds_rest', why, 'amount_cents')
  }
  return [
    PaymentLinkRefundRequested.of({
      payment_link_id,
      refund_id,
      amount_cents: amountCents ?? left,
      reason,
      requested_at: isoTime(at),
    }),
  ]
}

export function settleRefund(
  command: CommandOf<'RecordRefunded' | 'RecordRefundFailed'>,
  state: RefundedLink,
): Decision {
  const { payment_link_id } = state
  const { refundId: refund_id, at } = command
  const refund = state.refunds.find((one) => one.refund_id === refund_id)
  if (!refund) return reject('not_found', 'refund_not_found', 'There is no such refund')
  // one that failed at the processor is over, however late it is told that it had succeeded before
  const isOver = refund.status === 'failed' && refund.processor_refund_id !== null
  const { processorRefundId: processor_refund_id } = command
  if (command.type === 'RecordRefundFailed') {
    // that it was refused says nothing of one that went through, but that it came back does
    const isSettled = refund.status === 'succeeded' && processor_refund_id === null
    if (refund.status === 'failed' || isSettled) return []
    const failed = { payment_link_id, refund_id, processor_refund_id, failed_at: isoTime(at) }
    return [PaymentLinkRefundFailed.of(failed)]
  }
  if (refund.status === 'succeeded' || isOver) return []
  // also of one that somebody else gave up beside: money that went back counts
  const { amount_cents, reason } = refund
  return [
    PaymentLinkRefunded.of({
      payment_link_id,
      refund_id,
      amount_cents,
      reason,
      refunded_cents: refundedCents(state) + amount_cents,
      processor_refund_id,
      refunded_at: isoTime(at),
    }),
  ]
}
