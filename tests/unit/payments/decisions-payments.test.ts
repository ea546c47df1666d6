import { expect, test } from 'vitest'
import { fold } from '../../../domain/kernel/decider.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import {
  ProcessorCustomerCreated,
  processorCustomer,
} from '../../../domain/payments/processor/processor-customer.ts'
import {
  ProcessorNoticeCarriedOut,
  ProcessorNoticeNotUnderstood,
  ProcessorNoticeResolved,
  processorNotice,
} from '../../../domain/payments/processor/processor-notice.ts'
import {
  ProcessorNoticesCaughtUp,
  processorNotices,
} from '../../../domain/payments/processor/processor-notices.ts'
import {
  nextOverdueAt,
  type Subscription,
  type SubscriptionCommand,
  subscription,
} from '../../../domain/payments/subscriptions/subscription.ts'
import { decisions, eventsOf } from '../../support/decider-spec.ts'
import { startedSubscription } from '../../support/started-subscriptions.ts'

// each row reads given, when, then
const ID = 'a'.repeat(24)
const OWNED = { tenant_id: ID, environment: 'live' } as const
const ofIt = { subscription_id: ID }

const customer = (customer_id: string, processor: 'simulated' | 'stripe' = 'stripe') =>
  ProcessorCustomerCreated.of({ employer_id: ID, ...OWNED, processor, customer_id })
const recordCustomer = (...of: Parameters<typeof customer>) =>
  ({ type: 'Record', data: customer(...of).data }) as const
decisions(processorCustomer, [
  ['is recorded', [], recordCustomer('cus_1'), customer('cus_1')],
  ['stays the first one', [customer('cus_1')], recordCustomer('cus_2'), []],
  [
    'of another processor is recorded anew',
    [customer('cus_1', 'simulated')],
    recordCustomer('cus_2'),
    customer('cus_2'),
  ],
  [
    'stays at each processor',
    [customer('cus_1', 'simulated'), customer('cus_2')],
    recordCustomer('cus_3', 'simulated'),
    [],
  ],
])

const caughtUp = (hours: number) =>
  ProcessorNoticesCaughtUp.of({ processor: 'stripe', until: new Date(hours * 3_600_000).toISOString() })
const catchUp = (hours: number) =>
  ({ type: 'CaughtUp', processor: 'stripe', until: hours * 3_600_000 }) as const
decisions(processorNotices, [
  ['are caught up with', [], catchUp(1), caughtUp(1)],
  ['are kept in steps of a day', [caughtUp(1)], catchUp(24.9), []],
  ['go on', [caughtUp(1)], catchUp(25), caughtUp(25)],
])

const parked = ProcessorNoticeNotUnderstood.of({
  ...OWNED,
  notice_id: ID,
  employer_id: ID,
  processor: 'stripe',
  processor_notice_id: 'evt_1',
  type: 'invoice.paid',
  version: null,
  about_id: ID,
  at: new Date(0).toISOString(),
})
const carriedOut = ProcessorNoticeCarriedOut.of({ notice_id: ID, at: new Date(0).toISOString() })
const resolved = ProcessorNoticeResolved.of({ notice_id: ID, note: null, at: new Date(0).toISOString() })
const resolve = { type: 'Resolve', note: null, at: 0 } as const
const { at: _at, ...parkedData } = parked.data
decisions(processorNotice, [
  ['is parked', [], { type: 'Park', data: parkedData, at: 0 }, parked],
  ['is parked once', [parked, resolved], { type: 'Park', data: parkedData, at: 0 }, []],
  ['is carried out later', [parked], { type: 'RecordCarriedOut', at: 0 }, carriedOut],
  ['is resolved', [parked], resolve, resolved],
  ['is not resolved once it was carried out', [parked, carriedOut], resolve, []],
  ['that is unknown is not resolved', [], resolve, 'processor_notice_not_found'],
])

const ANCHOR = '2026-01-31T17:00:00.000Z'
const event = eventsOf(subscription, { subscription_id: ID })
const standalone = startedSubscription(ID, ANCHOR)
const started = event('SubscriptionStarted', { ...standalone.data, first_charge_paid: true })
const plan = event('SubscriptionStarted', { ...standalone.data, source: 'plan', link_id: ID, charges: 2 })

/** Times by the days of January; the 32nd is the 1st of February. */
const day = (of: number) => new Date(Date.UTC(2026, 0, of, 18)).toISOString()
const charge = (number: number, of: number) => ({
  ...ofIt,
  number,
  processor_payment_id: 'ch_1',
  amount_cents: 5000,
  at: day(of),
})
const paid = (number: number, of: number) => event('SubscriptionChargePaid', charge(number, of))
const paidAgain = (number: number, of: number) =>
  event('SubscriptionChargePaidAgain', { ...charge(number, of), processor_payment_id: 'ch_2' })
const failed = (number: number, of: number) =>
  event('SubscriptionChargeFailed', { ...charge(number, of), failure_code: 'card_declined' })
const notOwed = (of: number) => event('SubscriptionPaymentDiffered', { ...charge(1, of), asked_cents: 0 })
const report = (status: 'active' | 'past_due', of: number) =>
  event('SubscriptionStatusReported', { status, at: day(of) })
const wanted = event('SubscriptionCancellationRequested', { reason: 'requested', at: day(5) })
const wantedByPolicy = event('SubscriptionCancellationRequested', { reason: 'policy_cancelled', at: day(5) })
const overdue = (number: number, due_at: string, of: number) =>
  event('SubscriptionChargeOverdue', { number, due_at, at: day(of) })
const heldUp = event('SubscriptionHeldUp', { work: 'cancel', since: day(5), at: day(5) })
const withdrawn = event('SubscriptionCancellationWithdrawn', { at: day(5) })
const ended = (
  reason: 'requested' | 'policy_cancelled' | 'payment_failed' | 'never_paid' | 'completed' | 'processor',
  of: number,
) => event('SubscriptionEnded', { reason, at: day(of) })

const told = (due: string, of: number) => ({
  processorPaymentId: 'ch_1',
  amountCents: 5000,
  dueAt: Date.parse(due),
  at: Date.parse(day(of)),
})
const pay = (due: string, of: number): SubscriptionCommand => ({ type: 'Paid', ...told(due, of) })
const payOther = (due: string, of: number): SubscriptionCommand => ({
  type: 'Paid',
  ...told(due, of),
  processorPaymentId: 'ch_2',
})
const fail = (due: string, of: number) =>
  ({ type: 'Failed', ...told(due, of), failureCode: 'card_declined' }) as const
type Told = 'active' | 'past_due' | 'canceled' | 'incomplete'
const tell = (status: Told, of: number, asked?: Told) =>
  ({ type: 'Report', status, at: Date.parse(day(of)), ...(asked && { asked }) }) as const
const look = (of: number) => ({ type: 'FindOverdue', at: Date.parse(day(of)) }) as const
const at = Date.parse(day(5))
const ask = (reason: 'requested' | 'policy_cancelled') =>
  ({ type: 'RequestCancellation', reason, at }) as const
const withdraw = { type: 'WithdrawCancellation', at } as const
const cancel = { type: 'Cancel', at } as const
const TIED = 'status_tied' as const
const FEBRUARY = '2026-02-28T17:00:00.000Z'
const MARCH = '2026-03-31T17:00:00.000Z'
const APRIL = '2026-04-30T17:00:00.000Z'

decisions(subscription, [
  ['is started', [], { type: 'Start', data: standalone.data }, standalone],
  ['is started once', [standalone], { type: 'Start', data: standalone.data }, 'subscription_exists'],
  ['that is unknown is not charged', [], pay(ANCHOR, 31), 'subscription_not_found'],

  ['is paid for the first time', [standalone], pay(ANCHOR, 31), paid(1, 31)],
  ['knows a payment by when it was due', [started], pay(FEBRUARY, 60), paid(2, 60)],
  ['knows it by the nearest day', [started], pay('2026-03-30T12:00:00.000Z', 90), paid(3, 90)],
  ['of a plan is charged a month after its anchor', [plan], pay(FEBRUARY, 60), paid(1, 60)],
  ['is paid once for each charge', [standalone, paid(1, 31)], pay(ANCHOR, 32), []],
  ['that was paid as it began is not paid for that again', [started], pay(ANCHOR, 31), []],
  [
    'takes further money for a charge that is paid',
    [standalone, paid(1, 31)],
    payOther('2026-02-05T12:00:00.000Z', 36),
    paidAgain(1, 36),
  ],
  ['tells of that once', [standalone, paid(1, 31), paidAgain(1, 36)], payOther(ANCHOR, 36), []],
  [
    'of a plan takes money beyond its last charge, and does not end with it',
    [plan, paid(1, 59)],
    payOther(APRIL, 120),
    paidAgain(3, 120),
  ],
  ['of a plan does not fail beyond its last charge', [plan, paid(1, 59)], fail(APRIL, 120), []],
  ['is paid after a failure', [started, failed(2, 59)], pay(FEBRUARY, 60), paid(2, 60)],
  [
    'of a plan ends with its last payment',
    [plan, paid(1, 59)],
    pay(MARCH, 90),
    [paid(2, 90), ended('completed', 90)],
  ],
  ['of a plan goes on while one is open', [plan, failed(1, 59)], pay(MARCH, 90), paid(2, 90)],
  [
    'of a plan ends with the one that was open',
    [plan, paid(2, 90)],
    pay(FEBRUARY, 91),
    [paid(1, 91), ended('completed', 91)],
  ],
  [
    'that has ended still takes what was paid, and tells that it was not owed',
    [standalone, ended('never_paid', 32)],
    pay(ANCHOR, 33),
    [paid(1, 33), notOwed(33)],
  ],

  [
    'that has ended as nobody paid was not owed what was paid before, and is told late',
    [standalone, ended('never_paid', 32)],
    pay(ANCHOR, 31),
    [paid(1, 31), notOwed(31)],
  ],

  ['fails', [standalone], fail(ANCHOR, 31), failed(1, 31)],
  ['fails at every try', [started, failed(2, 59)], fail(FEBRUARY, 60), failed(2, 60)],
  ['does not fail after it was paid', [started, paid(2, 60)], fail(FEBRUARY, 59), []],
  ['does not fail after its end', [started, ended('requested', 58)], fail(FEBRUARY, 59), []],
  [
    'fails before its end, told late',
    [started, ended('payment_failed', 60)],
    fail(FEBRUARY, 59),
    failed(2, 59),
  ],

  ['takes the status that is told', [started], tell('past_due', 59), report('past_due', 59)],
  ['keeps that it was told again', [started, report('active', 58)], tell('active', 59), report('active', 59)],
  ['is not told twice', [started, report('active', 59)], tell('active', 59), []],
  ['takes no status that is older', [started, report('active', 59)], tell('past_due', 58), []],
  ['takes none older than a payment', [started, paid(2, 59)], tell('past_due', 58), []],
  ['paid in a second is not past due in it', [started, paid(2, 59)], tell('past_due', 59), []],
  ['past due in a second is paid in it', [started, report('past_due', 59)], pay(FEBRUARY, 59), paid(2, 59)],
  [
    'whose later charge fails in the second of a payment is past due',
    [standalone, paid(1, 59)],
    fail(FEBRUARY, 59),
    failed(2, 59),
  ],
  [
    'whose earlier charge fails in the second of a payment is paid',
    [started, paid(3, 90)],
    fail(FEBRUARY, 90),
    [failed(2, 90), report('active', 90)],
  ],
  ['of two statuses of one second asks', [started, report('active', 59)], tell('past_due', 59), TIED],
  ['of a failure and a status of one second asks', [started, failed(2, 59)], tell('active', 59), TIED],
  ['of a status and a failure of one second asks', [started, report('active', 59)], fail(FEBRUARY, 59), TIED],
  [
    'takes what it was answered',
    [started, report('past_due', 59)],
    tell('active', 59, 'active'),
    report('active', 59),
  ],
  ['keeps what it was answered', [started, report('past_due', 59)], tell('active', 59, 'past_due'), []],
  [
    'fails, and goes on as it was answered',
    [started, report('active', 59)],
    { ...fail(FEBRUARY, 59), asked: 'active' },
    [failed(2, 59), report('active', 59)],
  ],
  [
    'ends as it was answered',
    [started, report('active', 59)],
    tell('past_due', 59, 'canceled'),
    ended('processor', 59),
  ],
  ['does not become incomplete again', [started], tell('incomplete', 59), []],

  ['ends as its payments fail', [started, failed(2, 59)], tell('canceled', 66), ended('payment_failed', 66)],
  ['ends as nobody paid', [standalone], tell('canceled', 32), ended('never_paid', 32)],
  ['ends at the processor', [started], tell('canceled', 40), ended('processor', 40)],
  ['ends as was wished, by notice', [started, wanted], tell('canceled', 5), ended('requested', 5)],
  [
    'ends by an old notice, too',
    [started, report('active', 59)],
    tell('canceled', 58),
    ended('processor', 58),
  ],
  ['ends once', [started, ended('requested', 5)], tell('canceled', 6), []],
  ['has no status after its end', [started, ended('requested', 5)], tell('active', 59), []],

  ['is to be cancelled', [started], ask('requested'), wanted],
  ['is asked once', [started, wanted], ask('requested'), []],
  ['goes on when that was not done', [started, wanted], withdraw, withdrawn],
  ['may be cancelled again then', [started, wanted, withdrawn], ask('requested'), wanted],
  [
    'ends for another reason then',
    [started, failed(2, 59), wanted, withdrawn],
    tell('canceled', 66),
    ended('payment_failed', 66),
  ],
  ['has nothing to withdraw', [started], withdraw, []],
  ['has nothing to withdraw after its end', [started, wanted, ended('requested', 5)], withdraw, []],
  ['is cancelled', [started, wanted], cancel, ended('requested', 5)],
  ['is cancelled once', [started, ended('requested', 5)], cancel, []],
  ['need not be asked after its end', [started, ended('completed', 5)], ask('requested'), []],

  [
    'ends with its policy, by notice, too',
    [plan, wantedByPolicy],
    tell('canceled', 5),
    ended('policy_cancelled', 5),
  ],
  ['is to end with its policy', [plan], ask('policy_cancelled'), wantedByPolicy],
  ['is to end with its policy once', [plan, wantedByPolicy], ask('policy_cancelled'), []],
  [
    'is to end with its policy, whatever a partner wished before',
    [plan, wanted],
    ask('policy_cancelled'),
    wantedByPolicy,
  ],
  [
    'is to end with its policy, whatever a partner wishes later',
    [plan, wantedByPolicy],
    ask('requested'),
    [],
  ],
  [
    'ends with its policy where a partner wished it before',
    [plan, wanted, wantedByPolicy],
    cancel,
    ended('policy_cancelled', 5),
  ],
  ['is still to end with its policy when that was not done', [plan, wanted, wantedByPolicy], withdraw, []],
  ['ends with its policy', [plan, wantedByPolicy], cancel, ended('policy_cancelled', 5)],

  [
    'takes another amount than agreed, which is told',
    [started],
    { type: 'Paid', ...told(FEBRUARY, 60), amountCents: 4_000 },
    [
      event('SubscriptionChargePaid', { ...charge(2, 60), amount_cents: 4_000 }),
      event('SubscriptionPaymentDiffered', { ...charge(2, 60), amount_cents: 4_000, asked_cents: 5_000 }),
    ],
  ],
  ['takes money of before its end', [started, ended('requested', 61)], pay(FEBRUARY, 60), paid(2, 60)],

  ['expires unpaid', [standalone, failed(1, 31)], { type: 'Expire', at }, ended('never_paid', 5)],
  ['is overdue when no word of a charge came', [started], look(62), overdue(2, FEBRUARY, 62)],
  ['is not overdue before that', [started], look(61), []],
  ['is overdue once for each charge', [started, overdue(2, FEBRUARY, 62)], look(62), []],
  ['of which a failure was told is not overdue', [started, failed(2, 59)], look(62), []],
  ['that is paid is not overdue', [started, paid(2, 59)], look(62), []],
  ['that waits for its first payment is not overdue', [standalone], look(62), []],
  ['that has ended is not overdue', [started, ended('requested', 5)], look(62), []],
  [
    'of a plan is overdue with the charges that it has',
    [plan],
    look(200),
    [overdue(1, FEBRUARY, 200), overdue(2, MARCH, 200)],
  ],
  ['does not expire when paid', [standalone, paid(1, 31)], { type: 'Expire', at }, []],
])

test('a subscription that waits for its processor looks as before to partners', () => {
  const later = event('SubscriptionHeldUp', { ...heldUp.data, at: day(40) })
  expect(fold(subscription, [plan, later])!.updated_at).toBe(ANCHOR)
})

test('what a processor tells of one second leads to one status in every order', () => {
  const notices = [fail(FEBRUARY, 59), tell('past_due', 59), pay(FEBRUARY, 59), tell('active', 59)]
  const orders = (all: readonly SubscriptionCommand[]): readonly SubscriptionCommand[][] =>
    all.length === 0
      ? [[]]
      : all.flatMap((one) => orders(all.filter((other) => other !== one)).map((rest) => [one, ...rest]))
  const following = (state: Subscription, command: SubscriptionCommand): Subscription => {
    const decided = subscription.decide(command, state)
    // the processor says that it is paid
    if (isRejection(decided)) return following(state, { ...command, asked: 'active' } as SubscriptionCommand)
    return decided.reduce<Subscription>((before, event) => subscription.evolve(before, event)!, state)
  }
  const statuses = orders(notices).map(
    (order) => order.reduce(following, fold(subscription, [started])!).status,
  )
  expect(statuses).toEqual(Array(24).fill('active'))
})

test('the next look for an overdue charge is three days after the next one that is due', () => {
  const three = (due: string) => Date.parse(due) + 3 * 86_400_000
  expect(nextOverdueAt(started.data, 0)).toBe(three(ANCHOR))
  expect(nextOverdueAt(started.data, three(ANCHOR))).toBe(three(FEBRUARY))
  expect(nextOverdueAt(plan.data, three(FEBRUARY))).toBe(three(MARCH))
  expect(nextOverdueAt(plan.data, three(MARCH))).toBeNull()
})
