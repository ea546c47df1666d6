import { describe, expect, test } from 'vitest'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import type { Sealed } from '../../../../domain/kernel/sealed.ts'
import { paymentLink, statusAt } from '../../../../domain/payments/links/payment-link.ts'
import { refundableCents } from '../../../../domain/payments/links/payment-link-refunds.ts'
import { paymentLinks } from '../../../../projections/payments/links/payment-links.ts'
import { decisions, eventsOf } from '../../../support/decider-spec.ts'
import { specifyProjection } from '../../../support/projection-spec.ts'

// each row reads given, when, then
const ID = 'a'.repeat(24)
const [PAYMENT, R1, R2] = ['1', '2', '3'].map((digit) => digit.repeat(24)) as [string, string, string]
const T0 = Date.UTC(2026, 0, 1)
const DAY = 86_400_000
/** Before the link expires, when it does, and after. */
const [EARLY, OVER, LATE] = [T0 + DAY, T0 + 30 * DAY, T0 + 31 * DAY]
const text = 'sld1.employer/x.AAAA' as Sealed

const event = eventsOf(paymentLink, { payment_link_id: ID })
const created = event('PaymentLinkCreated', {
  tenant_id: ID,
  environment: 'live',
  employer_id: ID,
  carrier_id: ID,
  policy_id: ID,
  premium_cents: 10_000,
  fee_cents: 500,
  fee_breakdown: [],
  payment_type: 'ONE_TIME',
  payment_context: 'full_payment',
  customer: { name: text, email: text, phone: null },
  delivery: { email: true, sms: false },
  installment_plan: null,
  down_payment_months: null,
  created_by: null,
  after_completion_url: null,
  invoice_id: null,
  metadata: {},
  processor: 'simulated',
  processor_payment_link_id: 'plink_1',
  processor_url: 'https://p.example',
  created_at: isoTime(T0),
  expires_at: isoTime(OVER),
})
const sent = event('PaymentLinkSent', { channel: 'email', sent_at: isoTime(EARLY) })
const notSent = event('PaymentLinkDeliveryFailed', { channel: 'sms', failed_at: isoTime(EARLY) })
const paidBy = (processor_payment_id: string | null, at: number, late = false) =>
  event('PaymentLinkPaid', {
    payment_id: PAYMENT,
    amount_cents: 10_500,
    processor_payment_id,
    payment_method_id: 'pm_1',
    paid_at: isoTime(at),
    late,
    simulated: processor_payment_id === null,
  })
const paid = paidBy('pi_1', EARLY)
const cancelled = event('PaymentLinkCancelled', { cancelled_at: isoTime(EARLY) })
const expired = event('PaymentLinkExpired', { expired_at: isoTime(OVER) })
const failed = event('PaymentLinkPaymentFailed', {
  failure_id: R1,
  failure_message: 'Declined',
  failed_at: isoTime(EARLY),
})
const paidAgain = event('PaymentLinkPaidAgain', {
  amount_cents: 10_500,
  processor_payment_id: 'pi_2',
  paid_at: isoTime(LATE),
})
const requested = (refund_id: string, amount_cents: number) =>
  event('PaymentLinkRefundRequested', { refund_id, amount_cents, reason: null, requested_at: isoTime(EARLY) })
const refunded = (refund_id: string, amount_cents: number, refunded_cents: number) =>
  event('PaymentLinkRefunded', {
    refund_id,
    amount_cents,
    refunded_cents,
    reason: null,
    processor_refund_id: 're_1',
    refunded_at: isoTime(LATE),
  })
const refundFailed = event('PaymentLinkRefundFailed', {
  refund_id: R1,
  processor_refund_id: null,
  failed_at: isoTime(LATE),
})
const refundCameBack = event('PaymentLinkRefundFailed', { ...refundFailed.data, processor_refund_id: 're_1' })

const partRefunded = [requested(R1, 1_000), refunded(R1, 1_000, 1_000)]
const paidLate = (at: number) => paidBy('pi_1', at, true)

const pay = (
  processorPaymentId: string | null,
  at: number,
  { now = at, amountCents = null }: { now?: number; amountCents?: number | null } = {},
) =>
  ({
    ...({ type: 'Pay', paymentId: PAYMENT, paymentMethodId: 'pm_1' } as const),
    processorPaymentId,
    amountCents,
    at,
    now,
  }) as const
const asked = { asked_cents: 10_500, amount_cents: 9_000, processor_payment_id: 'pi_1' }
const differed = event('PaymentLinkAmountDiffered', { ...asked, paid_at: isoTime(EARLY) })
const notStarted = (reason: 'processor_refused' | 'policy_cancelled') =>
  event('PaymentLinkPlanNotStarted', { policy_id: ID, reason, at: isoTime(LATE) })
const notStart = (reason: 'processor_refused' | 'policy_cancelled') =>
  ({ type: 'RecordPlanNotStarted', reason, at: LATE }) as const
const heldUp = event('PaymentLinkHeldUp', { work: 'cancel', since: isoTime(EARLY), at: isoTime(EARLY) })
const fail = { type: 'RecordPaymentFailed', failureId: R1, message: 'Declined', at: EARLY } as const
const cancel = (at: number) => ({ type: 'Cancel', at }) as const
const expire = { type: 'Expire', at: OVER } as const
const refund = (refundId: string, amountCents: number | null) =>
  ({ type: 'RequestRefund', refundId, amountCents, reason: null, at: EARLY }) as const
const settle = (refundId: string) =>
  ({ type: 'RecordRefunded', refundId, processorRefundId: 're_1', at: LATE }) as const
const giveUp = (processorRefundId: string | null) =>
  ({ type: 'RecordRefundFailed', refundId: R1, processorRefundId, at: LATE }) as const

decisions(paymentLink, [
  ['is created', [], { type: 'Create', data: created.data }, created],
  ['is created once', [created], { type: 'Create', data: created.data }, 'payment_link_exists'],
  ['is not there before', [], cancel(EARLY), 'payment_link_not_found'],
  ['is sent', [created], { type: 'RecordSent', channel: 'email', at: EARLY }, sent],
  ['is sent once', [created, sent], { type: 'RecordSent', channel: 'email', at: LATE }, []],
  ['is not sent', [created], { type: 'RecordDeliveryFailed', channel: 'sms', at: EARLY }, notSent],

  ['is paid', [created], pay('pi_1', EARLY), paid],
  ['is paid when it was sent', [created, sent], pay('pi_1', EARLY), paid],
  ['is paid by simulation', [created], pay(null, EARLY), paidBy(null, EARLY)],
  ['is paid late when it was cancelled', [created, cancelled], pay('pi_1', LATE), paidLate(LATE)],
  ['is paid late when it has expired', [created, expired], pay('pi_1', LATE), paidLate(LATE)],
  ['is paid late when nobody noticed that', [created], pay('pi_1', OVER), paidLate(OVER)],
  ['is late when that is heard late', [created], pay('pi_1', EARLY, { now: LATE }), paidLate(EARLY)],
  ['is paid once', [created, paid], pay('pi_1', LATE), []],
  ['is not paid by simulation twice', [created, paid], pay(null, LATE), []],
  ['tells of money that came twice', [created, paid], pay('pi_2', LATE), paidAgain],
  ['tells of that once', [created, paid, paidAgain], pay('pi_2', LATE), []],
  [
    'is not paid by simulation when it was cancelled',
    [created, cancelled],
    pay(null, LATE),
    'payment_link_cancelled',
  ],
  ['is not paid by simulation when its time is over', [created], pay(null, OVER), 'payment_link_expired'],
  [
    'is paid another amount',
    [created],
    pay('pi_1', EARLY, { amountCents: 9_000 }),
    [event('PaymentLinkPaid', { ...paid.data, amount_cents: 9_000 }), differed],
  ],
  ['is paid what it asks for', [created], pay('pi_1', EARLY, { amountCents: 10_500 }), paid],
  [
    'has a plan that is not started',
    [created, paid],
    notStart('policy_cancelled'),
    notStarted('policy_cancelled'),
  ],
  [
    'tells that of its plan once',
    [created, paid, notStarted('policy_cancelled')],
    notStart('processor_refused'),
    [],
  ],

  ['has a declined attempt', [created], fail, failed],
  ['has none once it is paid', [created, paid], fail, []],
  ['has none once it is cancelled', [created, cancelled], fail, []],

  ['is cancelled', [created, sent], cancel(EARLY), cancelled],
  [
    'is cancelled after an earlier release told that it waits',
    [created, sent, heldUp],
    cancel(EARLY),
    cancelled,
  ],
  ['is cancelled once', [created, cancelled], cancel(LATE), []],
  ['is not cancelled when it is paid', [created, paid], cancel(LATE), 'payment_link_paid'],
  ['is not cancelled when its time is over', [created], cancel(OVER), 'payment_link_expired'],

  ['expires', [created, sent], expire, expired],
  ['does not expire when it is paid', [created, paid], expire, []],
  ['does not expire when it is cancelled', [created, cancelled], expire, []],

  ['is refunded in full', [created, paid], refund(R1, null), requested(R1, 10_500)],
  ['is refunded in part', [created, paid], refund(R1, 1_000), requested(R1, 1_000)],
  ['is refunded by the rest', [created, paid, partRefunded], refund(R2, null), requested(R2, 9_500)],
  ['is refunded by the rest, named', [created, paid, partRefunded], refund(R2, 9_500), requested(R2, 9_500)],
  [
    'is not refunded by more',
    [created, paid, partRefunded],
    refund(R2, 9_501),
    { kind: 'invalid', code: 'refund_exceeds_rest' },
  ],
  [
    'is not refunded when nothing is left',
    [created, paid, requested(R1, 10_500), refunded(R1, 10_500, 10_500)],
    refund(R2, null),
    'nothing_to_refund',
  ],
  ['is not refunded before it is paid', [created], refund(R1, null), 'payment_link_not_paid'],
  [
    'is refunded by one refund at a time',
    [created, paid, requested(R1, 1_000)],
    refund(R2, 1_000),
    'refund_pending',
  ],
  ['settles a refund', [created, paid, requested(R1, 1_000)], settle(R1), refunded(R1, 1_000, 1_000)],
  [
    'adds refunds up',
    [created, paid, partRefunded, requested(R2, 500)],
    settle(R2),
    refunded(R2, 500, 1_500),
  ],
  ['settles a refund once', [created, paid, partRefunded], settle(R1), []],
  ['gives up a refund', [created, paid, requested(R1, 1_000)], giveUp(null), refundFailed],
  [
    'settles one that was given up beside, as its money went back',
    [created, paid, requested(R1, 1_000), refundFailed],
    settle(R1),
    refunded(R1, 1_000, 1_000),
  ],
  ['gives up no refund that was settled', [created, paid, partRefunded], giveUp(null), []],
  [
    'counts a refund that came back no more',
    [created, paid, partRefunded, refundCameBack],
    refund(R2, null),
    requested(R2, 10_500),
  ],
  [
    'tells of a refund that came back after it had succeeded',
    [created, paid, partRefunded],
    giveUp('re_1'),
    refundCameBack,
  ],
  ['tells of that once', [created, paid, partRefunded, refundCameBack], giveUp('re_1'), []],
  ['does not settle one that came back', [created, paid, partRefunded, refundCameBack], settle(R1), []],
  [
    'frees what a refund had bound that came to nothing',
    [created, paid, requested(R1, 10_500), refundFailed],
    refund(R2, null),
    requested(R2, 10_500),
  ],
  ['settles no other refund', [created, paid], settle(R1), 'refund_not_found'],
])

describe('the state of a payment link', () => {
  const stateOf = (...events: Parameters<typeof paymentLink.evolve>[1][]) => fold(paymentLink, events)!

  test('is expired as soon as its time is over, unless it was paid or cancelled', () => {
    expect(statusAt(stateOf(created), OVER - 1)).toBe('created')
    expect(statusAt(stateOf(created, sent), OVER - 1)).toBe('sent')
    expect(statusAt(stateOf(created, sent), OVER)).toBe('expired')
    expect(statusAt(stateOf(created, paid), OVER)).toBe('paid')
    expect(statusAt(stateOf(created, cancelled), OVER)).toBe('cancelled')
  })

  test('stays paid when it is sent, expires or is cancelled after that', () => {
    expect(stateOf(created, paid, sent).status).toBe('paid')
    specifyProjection(paymentLinks)
      .given({ stream: `paymentLink-${ID}`, events: [created, paid, sent] })
      .thenRows({ payment_links: [{ status: 'paid', open: false }] })
    expect(stateOf(created, sent, notSent).status).toBe('sent')
  })

  test('counts what was refunded, not what is under way', () => {
    const one = stateOf(created, paid, ...partRefunded, requested(R2, 500))
    expect(refundableCents(one)).toBe(9_500)
  })
})
