import { describe, expect, test } from 'vitest'
import { disablesAccount } from '../../../../domain/banking/debits/return-codes.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import type { Sealed } from '../../../../domain/kernel/sealed.ts'
import { paymentSession } from '../../../../domain/payments/sessions/payment-session.ts'
import type {
  PaymentSessionData,
  PaymentSessionEvent,
} from '../../../../domain/payments/sessions/payment-session-events.ts'
import type { PaymentCommand } from '../../../../domain/payments/sessions/payment-session-payments.ts'
import { sessionStatusAt, takesCards } from '../../../../domain/payments/sessions/payment-session-status.ts'
import { decisions, eventsOf } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const [ID, PAYMENT, CHECKOUT, LEG, OTHER] = ['a', '1', '2', '3', '4'].map((digit) => digit.repeat(24)) as [
  ...[string, string, string, string, string],
]
const T0 = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000
/** Before the session expires, when it does, and after. */
const [EARLY, OVER, LATE] = [T0 + HOUR, T0 + 24 * HOUR, T0 + 48 * HOUR]
const text = 'sld1.employer/x.AAAA' as Sealed
const session = { payment_session_id: ID }

const event = eventsOf(paymentSession, { payment_session_id: ID })
const created = event('PaymentSessionCreated', {
  tenant_id: ID,
  environment: 'live',
  employer_id: ID,
  carrier_id: ID,
  policy_id: ID,
  mode: 'link',
  amount_cents: 10_500,
  premium_cents: 10_000,
  fee_cents: 500,
  plan: null,
  line_items: [
    { label: 'Premium', amount_cents: 10_000 },
    { label: 'Fees', amount_cents: 500 },
  ],
  description: null,
  customer: { name: text, email: text, phone: null },
  single_use: true,
  config_version: 1,
  token_hash: 'f'.repeat(64),
  token_prefix: 'abcdefgh',
  host_is_custom: false,
  replaces: null,
  created_by: null,
  created_at: isoTime(T0),
  expires_at: isoTime(OVER),
})
const plan = { total_installments: 2, per_installment_cents: 4_000, last_installment_cents: 4_001 }
const withPlan = event('PaymentSessionCreated', {
  ...created.data,
  amount_cents: 2_499,
  plan: { ...plan, down_payment_cents: 2_499 },
})
const nothingDown = event('PaymentSessionCreated', {
  ...created.data,
  amount_cents: 0,
  plan: { ...plan, down_payment_cents: 0 },
})
const forMany = event('PaymentSessionCreated', { ...created.data, single_use: false })
const invitation = { channel: 'email', to: text, status: 'sent', reason: null, at: isoTime(T0) } as const
const invited = event('PaymentSessionInvited', invitation)
const opened = event('PaymentSessionOpened', { opened_at: isoTime(EARLY) })
const checkout = { checkout_id: CHECKOUT, processor: 'simulated', processor_checkout_id: 'cs_1' } as const
const begun = event('PaymentSessionCheckoutBegun', { ...checkout, at: isoTime(EARLY) })
const begunAt = (at: number) => event('PaymentSessionCheckoutBegun', { ...begun.data, at: isoTime(at) })
const closed = (at: number) =>
  event('PaymentSessionCheckoutClosed', { checkout_id: CHECKOUT, at: isoTime(at) })
const payment = (processor_payment_id: string, at: number, amount_cents = 10_500) => ({
  ...session,
  payment_id: PAYMENT,
  checkout_id: CHECKOUT,
  processor_payment_id,
  amount_cents,
  paid_at: isoTime(at),
})
const paid = event('PaymentSessionPaid', { ...payment('pi_1', EARLY), late: false, debit_leg_id: null })
const paidLate = (at: number) =>
  event('PaymentSessionPaid', { ...payment('pi_1', at), late: true, debit_leg_id: null })
const paidAgain = (is_wanted: boolean) =>
  event('PaymentSessionPaidAgain', { ...payment('pi_2', EARLY), is_wanted })
const differed = event('PaymentSessionAmountDiffered', {
  ...payment('pi_1', EARLY, 9_000),
  asked_cents: 10_500,
})
const failed = event('PaymentSessionPaymentFailed', {
  failure_id: PAYMENT,
  failure_message: 'Declined',
  failed_at: isoTime(EARLY),
  checkout_id: CHECKOUT,
  ends_checkout: false,
})
const failedLate = (at: number) =>
  event('PaymentSessionPaymentFailed', { ...failed.data, failed_at: isoTime(at), ends_checkout: true })
const processing = event('PaymentSessionPaymentProcessing', { checkout_id: CHECKOUT, at: isoTime(EARLY) })
const heldUp = event('PaymentSessionHeldUp', { work: 'cancel', since: isoTime(EARLY), at: isoTime(EARLY) })
const account = {
  account_ref: `payer-account/${ID}/1`,
  fingerprint: ID,
  account_last4: '6789',
  account_type: 'checking' as const,
}
const arranged = event('PaymentSessionDebitArranged', {
  leg_id: LEG,
  account,
  instalments: [],
  scheduled_at: isoTime(EARLY),
})
/** The second and last one of the plan takes what division leaves over. */
const arrangedPlan = event('PaymentSessionDebitArranged', {
  ...arranged.data,
  instalments: [
    { number: 1, amount_cents: 4_000, due_at: '2026-02-01T17:00:00.000Z' },
    { number: 2, amount_cents: 4_001, due_at: '2026-03-01T17:00:00.000Z' },
  ],
})
/** When the first one is due. */
const DUE = Date.UTC(2026, 1, 1, 17)
const createdAt = (at: number) =>
  event('PaymentSessionInstalmentMinted', { number: 1, leg_id: OTHER, at: isoTime(at) })
const createInstallmentDebit = (at: number, number = 1) =>
  ({
    ...({ type: 'CreateInstalmentDebit', number, debitId: OTHER, at } as const),
    ...{ isPolicyCancelled: false, isDownPaymentGone: false },
  }) as const
const authorized = event('PaymentSessionDebitArranged', { ...arrangedPlan.data, leg_id: null })
const confirmedBy = (by: 'bank' | 'processor') =>
  event('PaymentSessionDebitConfirmed', { leg_id: LEG, by, sells_plan: false, at: isoTime(LATE) })
const stoppedBy = (reason: PaymentSessionData<'PaymentSessionPlanStopped'>['reason'], disabled_by?: string) =>
  event('PaymentSessionPlanStopped', { reason, ...(disabled_by && { disabled_by }), at: isoTime(LATE) })
const stopped = stoppedBy('down_payment_returned')
const cancelledAt = (at: number) => event('PaymentSessionCancelled', { cancelled_at: isoTime(at) })
const cancelled = cancelledAt(EARLY)
const expired = event('PaymentSessionExpired', { expired_at: isoTime(OVER) })
const replacedAt = (at: number) =>
  event('PaymentSessionReplaced', { replaced_by: OTHER, replaced_at: isoTime(at) })

/** For a bank debit by the card processor; for the installments of a plan. */
const [waiting, planned] = [
  [created, begun, processing],
  [withPlan, arrangedPlan],
]

const create = { type: 'Create', data: created.data, checkout: null } as const
const open = (at: number) => ({ type: 'Open', at }) as const
const begin = (at: number) => ({ type: 'BeginCheckout', checkout, at }) as const
const pay = (
  processorPaymentId: string,
  at: number,
  {
    now = at,
    amountCents = 10_500,
    ...how
  }: Partial<Omit<Extract<PaymentCommand, { type: 'Pay' }>, 'type'>> = {},
) =>
  ({
    ...({ type: 'Pay', paymentId: PAYMENT, checkoutId: CHECKOUT } as const),
    processorPaymentId,
    amountCents,
    at,
    now,
    ...how,
  }) as const
const fail = (at: number) =>
  ({
    ...({ type: 'RecordPaymentFailed', checkoutId: CHECKOUT, failureId: PAYMENT } as const),
    message: 'Declined',
    at,
  }) as const
const process = (at: number) => ({ type: 'RecordPaymentProcessing', checkoutId: CHECKOUT, at }) as const
const arrange = (at: number) => ({ type: 'ArrangeDebit', debitId: LEG, account, at }) as const
const confirm = (by: 'bank' | 'processor', debitId = LEG) =>
  ({ type: 'ConfirmDebit', debitId, by, at: LATE }) as const
const comeBack = (return_code: string, debitId = LEG) =>
  ({
    type: 'RecordDebitReturned',
    debitId,
    return_code,
    disables: disablesAccount(return_code),
    at: LATE,
  }) as const
const notDebited = (debitId: string) => ({ type: 'RecordDebitFailed', debitId, at: LATE }) as const
const close = (at: number) => ({ type: 'RecordCheckoutClosed', checkoutId: CHECKOUT, at }) as const
const cancel = (at: number) => ({ type: 'Cancel', at }) as const
const expire = { type: 'Expire', at: OVER } as const
const replace = (at: number, replacedBy = OTHER) => ({ type: 'Replace', replacedBy, at }) as const

decisions(paymentSession, [
  ['is created', [], create, created],
  ['is created with a checkout', [], { ...create, checkout }, [created, begunAt(T0)]],
  ['is created once', [created], create, 'payment_session_exists'],
  ['is not there before', [], cancel(EARLY), 'payment_session_not_found'],
  ['keeps what became of an invitation', [created], { type: 'RecordInvited', invitation }, invited],
  ['is opened', [created, invited], open(EARLY), opened],
  ['is opened once', [created, opened], open(EARLY), []],
  ['is not opened when its time is over', [created], open(OVER), []],

  ['begins a checkout', [created, opened], begin(EARLY), begun],
  ['begins the same checkout once', [created, begun], begin(EARLY), []],
  ['takes no card when it has expired', [created], begin(OVER), 'session_not_payable'],
  ['takes no card when it was cancelled', [created, cancelled], begin(EARLY), 'session_not_payable'],
  ['takes no card while a debit is on its way', [created, arranged], begin(EARLY), 'session_not_payable'],
  ['takes no card when it is paid', [created, begun, paid], begin(EARLY + 1), []],
  ['takes no card for a plan', [withPlan], begin(EARLY), 'session_not_payable'],
  ['lets a checkout go', [created, begun], close(EARLY), closed(EARLY)],
  ['lets a checkout go once', [created, begun, closed(EARLY)], close(LATE), []],

  ['is paid', [created, opened, begun], pay('pi_1', EARLY), paid],
  ['is paid once by the same payment', [created, begun, paid], pay('pi_1', LATE), []],
  ['is paid late when it was cancelled', [created, begun, cancelled], pay('pi_1', LATE), paidLate(LATE)],
  ['is paid late when it has expired', [created, begun, expired], pay('pi_1', LATE), paidLate(LATE)],
  ['is paid late when nobody noticed that', [created, begun], pay('pi_1', OVER), paidLate(OVER)],
  ['is late when that is heard late', [created, begun], pay('pi_1', EARLY, { now: OVER }), paidLate(EARLY)],
  [
    'is paid late while a debit is on its way',
    [created, arranged],
    pay('pi_1', EARLY),
    event('PaymentSessionPaid', { ...paidLate(EARLY).data, debit_leg_id: LEG }),
  ],
  ['is paid twice against its will', [created, begun, paid], pay('pi_2', EARLY), paidAgain(false)],
  ['may be paid more than once', [forMany, begun, paid], pay('pi_2', EARLY), paidAgain(true)],
  [
    'is not to be paid by card after the debit was confirmed',
    [forMany, arranged, confirmedBy('bank')],
    pay('pi_2', EARLY),
    paidAgain(false),
  ],
  [
    'takes another amount as it comes',
    [created, begun],
    pay('pi_1', EARLY, { amountCents: 9_000 }),
    [
      event('PaymentSessionPaid', { ...payment('pi_1', EARLY, 9_000), late: false, debit_leg_id: null }),
      differed,
    ],
  ],
  ['can be declined', [created, begun], fail(EARLY), failed],
  ['is declined no more when it is closed', [created, begun, cancelled], fail(LATE), []],
  [
    'is paid late when that is found as its checkout is closed',
    [created, begun],
    pay('pi_1', EARLY, { isFoundClosing: true }),
    paidLate(EARLY),
  ],
  [
    'takes no money by a checkout that was closed',
    [created, begun, closed(EARLY)],
    pay('pi_1', EARLY, { isToBeTaken: true }),
    'checkout_closed',
  ],
  ['takes money by an open checkout', [created, begun], pay('pi_1', EARLY, { isToBeTaken: true }), paid],
  [
    'tells that a further payment came late',
    [forMany, begun, paid],
    pay('pi_2', EARLY, { now: OVER }),
    event('PaymentSessionPaidAgain', { ...paidAgain(true).data, late: true }),
  ],

  ['waits for a bank debit by the card processor', [created, begun], process(EARLY), processing],
  ['waits for it once', [waiting], process(LATE), []],
  ['waits for none of a checkout that took money', [created, begun, paid], process(EARLY), []],
  [
    'waits for none that has failed since: notices come in any order',
    [created, begun, failed],
    process(EARLY),
    [],
  ],
  [
    'waits for the one after a decline',
    [created, begun, failed],
    process(EARLY + 1),
    event('PaymentSessionPaymentProcessing', { ...processing.data, at: isoTime(EARLY + 1) }),
  ],
  [
    'takes no card meanwhile',
    [waiting],
    { ...begin(EARLY), checkout: { ...checkout, checkout_id: OTHER } },
    'session_not_payable',
  ],
  ['arranges no debit meanwhile', [waiting], arrange(EARLY), 'session_not_payable'],
  ['is not replaced meanwhile', [waiting], replace(EARLY), 'debit_arranged'],
  [
    'is not replaced meanwhile though it was cancelled',
    [waiting, cancelledAt(LATE)],
    replace(LATE),
    'debit_arranged',
  ],
  ['does not expire meanwhile', [waiting], expire, []],
  ['is cancelled meanwhile', [waiting], cancel(LATE), cancelledAt(LATE)],
  [
    'is paid in time when that succeeds, however late',
    [waiting],
    pay('pi_1', LATE),
    event('PaymentSessionPaid', { ...paidLate(LATE).data, late: false }),
  ],
  [
    'is paid late when that succeeds after it was cancelled',
    [waiting, cancelledAt(LATE)],
    pay('pi_1', LATE),
    paidLate(LATE),
  ],
  ['can be paid again when that fails', [waiting], fail(LATE), failedLate(LATE)],
  ['fails once', [waiting, failedLate(LATE)], fail(LATE), []],
  [
    'is announced when that fails after it was cancelled',
    [waiting, cancelledAt(LATE)],
    fail(LATE),
    failedLate(LATE),
  ],
  ['is replaced once that has failed', [waiting, failedLate(EARLY)], replace(EARLY), replacedAt(EARLY)],

  ['arranges a debit', [created, opened], arrange(EARLY), arranged],
  ['arranges one after an earlier release told that it waits', [created, heldUp], arrange(EARLY), arranged],
  ['arranges the debits of a plan', [withPlan, opened], arrange(EARLY), arrangedPlan],
  ['arranges one debit', [created, arranged], arrange(EARLY), 'session_not_payable'],
  ['arranges no debit when its time is over', [created], arrange(OVER), 'session_not_payable'],
  ['arranges no debit beside an open checkout', [created, begun], arrange(EARLY), 'checkout_open'],
  ['arranges a debit once the checkout is closed', [created, begun, closed(EARLY)], arrange(EARLY), arranged],
  ['needs no debit where nothing is paid at signing', [nothingDown], arrange(EARLY), authorized],
  ['creates the debit of an installment at its time', [planned], createInstallmentDebit(DUE), createdAt(DUE)],
  [
    'creates the debit of an installment late',
    [planned],
    createInstallmentDebit(DUE + HOUR),
    createdAt(DUE + HOUR),
  ],
  [
    'creates the debit of an installment where nothing was paid down',
    [nothingDown, authorized],
    createInstallmentDebit(DUE),
    createdAt(DUE),
  ],
  ['mints no installment before its time', [planned], createInstallmentDebit(DUE - 1), 'instalment_not_due'],
  ['mints no other installment', [planned], createInstallmentDebit(DUE, 3), 'instalment_not_due'],
  [
    'mints nothing that nobody authorized',
    [withPlan, opened],
    createInstallmentDebit(DUE, 1),
    'instalment_not_due',
  ],
  [
    'creates the debit of an installment once',
    [planned, createdAt(DUE)],
    createInstallmentDebit(DUE + HOUR),
    [],
  ],
  ['mints no installment once it was cancelled', [planned, cancelled], createInstallmentDebit(DUE), []],
  ['mints no installment once its plan was stopped', [planned, stopped], createInstallmentDebit(DUE), []],
  [
    'stops its plan where its policy is cancelled when an installment is due',
    [planned],
    { ...createInstallmentDebit(DUE), isPolicyCancelled: true },
    event('PaymentSessionPlanStopped', { reason: 'policy_cancelled', at: isoTime(DUE) }),
  ],
  [
    'mints no installment once its down payment is gone, and leaves it to that to stop its plan',
    [planned],
    { ...createInstallmentDebit(DUE), isPolicyCancelled: true, isDownPaymentGone: true },
    [],
  ],
  [
    'leaves an installment that was created before',
    [planned, createdAt(DUE)],
    { ...createInstallmentDebit(DUE + HOUR), isPolicyCancelled: true },
    [],
  ],
  ['is confirmed by the bank', [created, arranged], confirm('bank'), confirmedBy('bank')],
  ['is confirmed once by each', [created, arranged, confirmedBy('bank')], confirm('bank'), []],
  [
    'is confirmed by both',
    [created, arranged, confirmedBy('processor')],
    confirm('bank'),
    confirmedBy('bank'),
  ],
  ['is confirmed by its own debit only', [created, arranged], confirm('bank', OTHER), []],
  ['stops its plan when the down payment comes back', [withPlan, arranged], comeBack('R01'), stopped],
  [
    'keeps of the down payment that its account is disabled',
    [withPlan, arranged],
    comeBack('R02'),
    stoppedBy('down_payment_returned', 'R02'),
  ],
  ...['R02', 'R07', 'R10', 'R29'].map(
    (code) =>
      [
        `stops its plan when an installment comes back with ${code}`,
        [nothingDown, authorized, createdAt(DUE)],
        comeBack(code, OTHER),
        [stoppedBy('account_disabled', code)],
      ] as const,
  ),
  [
    'goes on with its plan when an installment comes back for want of funds',
    [planned, createdAt(DUE)],
    comeBack('R01', OTHER),
    [],
  ],
  [
    'stops its plan when the down payment cannot be debited',
    [planned],
    notDebited(LEG),
    stoppedBy('down_payment_failed'),
  ],
  ['goes on when an installment cannot be debited', [planned], notDebited(OTHER), []],
  ['has no plan to stop when its debit fails', [created, arranged], notDebited(LEG), []],
  ['stops no plan that is stopped', [withPlan, arranged, stopped], notDebited(LEG), []],
  ['stops its plan once', [withPlan, arranged, stopped], comeBack('R02'), []],
  ['has no plan to stop', [created, arranged, confirmedBy('bank')], comeBack('R02'), []],

  ['is cancelled', [created, opened], cancel(EARLY), cancelled],
  ['is cancelled once', [created, cancelled], cancel(LATE), []],
  ['is cancelled though a debit is on its way', [created, arranged], cancel(LATE), cancelledAt(LATE)],
  ['is not cancelled when it is paid', [created, begun, paid], cancel(EARLY), 'payment_session_paid'],
  ['is not cancelled when it has expired', [created], cancel(OVER), 'payment_session_expired'],
  ['is not cancelled beside an open checkout', [created, begun], cancel(EARLY), 'checkout_open'],
  ['expires', [created], expire, expired],
  ['expires once', [created, expired], expire, []],
  [
    'does not expire beside a checkout that was begun at the last moment',
    [created, begunAt(OVER - 1)],
    expire,
    'checkout_open',
  ],
  ['does not expire while a debit is on its way', [created, arranged], expire, []],
  ['does not expire when it is paid', [created, begun, paid], expire, []],

  ['is replaced', [created, opened], replace(EARLY), replacedAt(EARLY)],
  ['is replaced once', [created, replacedAt(EARLY)], replace(LATE), []],
  [
    'is replaced by one other',
    [created, replacedAt(EARLY)],
    replace(LATE, PAYMENT),
    'payment_session_replaced',
  ],
  ['is replaced when it was cancelled', [created, cancelled], replace(LATE), replacedAt(LATE)],
  ['is replaced when it has expired', [created, expired], replace(LATE), replacedAt(LATE)],
  ['expires before it is replaced', [created], replace(LATE), [expired, replacedAt(LATE)]],
  ['is not replaced when it is paid', [created, begun, paid], replace(LATE), 'payment_session_paid'],
  ['is not replaced with a debit', [created, arranged], replace(EARLY), 'debit_arranged'],
  [
    'is not replaced with a debit though it was cancelled',
    [created, arranged, cancelledAt(LATE)],
    replace(LATE),
    'debit_arranged',
  ],
  ['is not replaced beside an open checkout', [created, begun], replace(EARLY), 'checkout_open'],
])

describe('how a payment session stands', () => {
  const stands = (...events: readonly PaymentSessionEvent[]) => fold(paymentSession, events)!

  test('it reads expired as soon as its time is over, unless it waits for a debit', () => {
    expect(sessionStatusAt(stands(created), OVER - 1)).toBe('pending')
    expect(sessionStatusAt(stands(created), OVER)).toBe('expired')
    expect(sessionStatusAt(stands(created, arranged), LATE)).toBe('scheduled')
  })

  test('a debit that is confirmed pays it, but no plan and nothing that was cancelled', () => {
    expect(stands(created, arranged, confirmedBy('bank'))).toMatchObject({
      status: 'paid',
      paid_at: isoTime(LATE),
    })
    expect(stands(withPlan, arranged, confirmedBy('bank')).status).toBe('scheduled')
    expect(stands(created, arranged, cancelled, confirmedBy('bank')).status).toBe('cancelled')
  })

  test('replacing cancels what could be paid, and leaves what could not', () => {
    expect(stands(created, replacedAt(EARLY))).toMatchObject({
      status: 'cancelled',
      cancelled_at: isoTime(EARLY),
    })
    expect(stands(created, expired, replacedAt(LATE))).toMatchObject({
      status: 'expired',
      cancelled_at: null,
    })
  })

  test('a card may be charged again only where that is allowed, until the time is over', () => {
    expect(takesCards(stands(created, begun, paid), EARLY)).toBe(false)
    expect(takesCards(stands(forMany, begun, paid), OVER - 1)).toBe(true)
    expect(takesCards(stands(forMany, begun, paid), OVER)).toBe(false)
    expect(takesCards(stands(forMany, arranged, confirmedBy('bank')), EARLY)).toBe(false)
    expect(takesCards(stands(withPlan), EARLY)).toBe(false)
    expect(takesCards(stands(forMany, begun, cancelled, paidLate(EARLY)), EARLY)).toBe(false)
    expect(takesCards(stands(forMany, arranged, confirmedBy('bank'), paidAgain(false)), EARLY)).toBe(false)
  })

  test('a bank debit by the card processor schedules it, and frees it when it fails', () => {
    expect(stands(created, begun, processing).status).toBe('scheduled')
    expect(sessionStatusAt(stands(created, begun, processing), LATE)).toBe('scheduled')
    const free = stands(created, begun, processing, failedLate(LATE))
    expect([free.status, sessionStatusAt(free, EARLY), sessionStatusAt(free, LATE)]).toEqual([
      ...['opened', 'opened', 'expired'],
    ])
    expect(stands(created, begun, processing, cancelledAt(LATE), failedLate(LATE)).status).toBe('cancelled')
    expect(stands(forMany, begun, paid, begun, processing).status).toBe('paid')
    const settled = stands(
      created,
      begun,
      processing,
      event('PaymentSessionPaid', { ...paid.data, late: false }),
    )
    expect(settled).toMatchObject({ status: 'paid', checkouts: [{ isOpen: false, isProcessing: false }] })
  })
})
