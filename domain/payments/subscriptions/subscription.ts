import type { z } from 'zod'
import { isoTime, monthsAfter } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import {
  type CancellationReason,
  SubscriptionCancellationRequested,
  SubscriptionCancellationWithdrawn,
  SubscriptionChargeFailed,
  SubscriptionChargeOverdue,
  SubscriptionChargePaid,
  SubscriptionChargePaidAgain,
  SubscriptionEnded,
  type SubscriptionEvent,
  SubscriptionPaymentDiffered,
  SubscriptionStarted,
  type SubscriptionStatus,
  SubscriptionStatusReported,
  subscriptionEvents,
} from './subscription-events.ts'

type Ended = z.output<typeof SubscriptionEnded.schema>

/** A charge that was tried. */
export interface Charge {
  readonly number: number
  readonly paid:
    | (Pick<z.output<typeof SubscriptionChargePaid.schema>, 'at' | 'amount_cents'> & {
        /** Null of the first one, where it was paid as the subscription began. */
        readonly processor_payment_id: string | null
      })
    | null
  /** Oldest first. */
  readonly failures: readonly Pick<z.output<typeof SubscriptionChargeFailed.schema>, 'at' | 'failure_code'>[]
}

export interface Subscription extends z.output<typeof SubscriptionStarted.schema> {
  readonly status: SubscriptionStatus
  /** As of when the processor told the status; null: it has told nothing yet. */
  readonly status_at: string | null
  /** Charges that were tried, by number. */
  readonly tried: readonly Charge[]
  /** Payments that were not owed, by the processor's ids. */
  readonly paid_again: readonly string[]
  /** Why the processor is to end it; null: it is not. */
  readonly cancellation: CancellationReason | null
  /** Numbers of charges that were due for long without a word. */
  readonly overdue: readonly number[]
  readonly ended: Pick<Ended, 'reason' | 'at'> | null
  readonly updated_at: string
}

/** What a processor tells of a charge; times in epoch milliseconds. */
interface ReportedCharge {
  readonly processorPaymentId: string
  readonly amountCents: number
  /** When it was first meant to be made. */
  readonly dueAt: number
  readonly at: number
}

/**
 * How a subscription stands as the processor says when it is asked: what it said of one second does not agree. Without it
 * such a command is refused with {@link STATUS_TIED}.
 */
interface Asked {
  readonly asked?: SubscriptionStatus
}

export type SubscriptionCommand =
  | { readonly type: 'Start'; readonly data: z.output<typeof SubscriptionStarted.schema> }
  | ({ readonly type: 'Paid' } & ReportedCharge)
  | ({ readonly type: 'Failed'; readonly failureCode: string | null } & ReportedCharge & Asked)
  | ({ readonly type: 'Report'; readonly status: SubscriptionStatus; readonly at: number } & Asked)
  | { readonly type: 'RequestCancellation'; readonly reason: CancellationReason; readonly at: number }
  /** Of a partner's wish; one that follows from the cancellation of its policy stands. */
  | { readonly type: 'WithdrawCancellation'; readonly at: number }
  | { readonly type: 'Cancel'; readonly at: number }
  /** Ends one whose first payment did not come in time. */
  | { readonly type: 'Expire'; readonly at: number }
  | { readonly type: 'FindOverdue'; readonly at: number }

export const subscription: Decider<Subscription | null, SubscriptionCommand, SubscriptionEvent> = {
  category: 'subscription',
  events: subscriptionEvents,
  initialState: null,
  evolve(before, event) {
    if (event.type === 'SubscriptionStarted') return started(event.data)
    if (event.type === 'SubscriptionHeldUp') return before
    if (event.type === 'SubscriptionChargeOverdue') {
      return { ...before!, overdue: [...before!.overdue, event.data.number] }
    }
    const state = {
      ...before!,
      ...statusAfter(before!, event),
      updated_at: later(before!.updated_at, event.data.at),
    }
    switch (event.type) {
      case 'SubscriptionChargePaid': {
        const { number, at, amount_cents, processor_payment_id } = event.data
        const paid = { at, amount_cents, processor_payment_id }
        return withCharge(state, number, (charge) => ({ ...charge, paid }))
      }
      case 'SubscriptionChargePaidAgain':
        return { ...state, paid_again: [...state.paid_again, event.data.processor_payment_id] }
      case 'SubscriptionChargeFailed': {
        const { number, at, failure_code } = event.data
        return withCharge(state, number, (charge) => ({
          ...charge,
          failures: [...charge.failures, { at, failure_code }],
        }))
      }
      case 'SubscriptionStatusReported':
      case 'SubscriptionPaymentDiffered':
        return state
      case 'SubscriptionCancellationRequested':
        return { ...state, cancellation: event.data.reason }
      case 'SubscriptionCancellationWithdrawn':
        return { ...state, cancellation: null }
      case 'SubscriptionEnded': {
        const { reason, at } = event.data
        return { ...state, ended: { reason, at } }
      }
    }
  },
  decide(command, state): readonly SubscriptionEvent[] | Rejection {
    if (command.type === 'Start') {
      if (state) return reject('conflict', 'subscription_exists', 'The subscription exists already')
      return [SubscriptionStarted.of(command.data)]
    }
    if (!state) return reject('not_found', 'subscription_not_found', 'No such subscription')
    const { subscription_id } = state
    const at = isoTime(command.at)
    const ended = (reason: Ended['reason']) => [SubscriptionEnded.of({ subscription_id, reason, at })]
    switch (command.type) {
      case 'Paid':
        return paid(command, state)
      case 'Failed':
        return failed(command, state)
      case 'Report': {
        const { status, asked } = command
        const isTied = at === state.status_at && status !== state.status
        if (!isTied || status === 'canceled' || status === 'incomplete') return reported(state, status, at)
        if (isPaidAt(state, at)) return []
        return asked === undefined ? tied() : reported(state, asked, at)
      }
      case 'RequestCancellation':
        if (state.ended || !isNewWish(command.reason, state.cancellation)) return []
        return [SubscriptionCancellationRequested.of({ subscription_id, reason: command.reason, at })]
      case 'WithdrawCancellation':
        if (state.ended || state.cancellation !== 'requested') return []
        return [SubscriptionCancellationWithdrawn.of({ subscription_id, at })]
      case 'Cancel':
        return state.ended ? [] : ended(state.cancellation ?? 'requested')
      case 'Expire':
        return state.status === 'incomplete' ? ended('never_paid') : []
      case 'FindOverdue':
        return overdueBy(state, command.at).map((number) => {
          const due_at = isoTime(dueAt(state, number))
          return SubscriptionChargeOverdue.of({ subscription_id, number, due_at, at })
        })
    }
  },
}

/** Money counts in every state, and each payment once. What pays for nothing that is owed is told apart. */
function paid(command: ReportedCharge, state: Subscription): readonly SubscriptionEvent[] {
  const number = numberOf(state, command.dueAt)
  const before = chargeOf(state, number)?.paid
  if (before || isBeyondLast(state, number)) {
    const { processorPaymentId: id } = command
    const ofCharge = before?.processor_payment_id
    const isKnown = ofCharge === null || ofCharge === id || state.paid_again.includes(id)
    return isKnown ? [] : [SubscriptionChargePaidAgain.of(chargeFields(command, state, number))]
  }
  const event = SubscriptionChargePaid.of(chargeFields(command, state, number))
  const { at } = event.data
  const after = state.tried.filter((charge) => charge.paid).length + 1
  const isLast = !state.ended && after === state.charges
  const { subscription_id, ended } = state
  // of one that ended as nobody had paid, an earlier payment was not owed either
  const isOwed = ended === null || (ended.reason !== 'never_paid' && at <= ended.at)
  const asked_cents = isOwed ? state.amount_cents : 0
  return [
    event,
    ...(event.data.amount_cents === asked_cents
      ? []
      : [SubscriptionPaymentDiffered.of({ ...event.data, asked_cents })]),
    ...(isLast ? [SubscriptionEnded.of({ subscription_id, reason: 'completed', at })] : []),
  ]
}

/**
 * A failure that is reported late, after the payment or the end that followed it, changes nothing, nor does one of
 * what was not owed.
 */
function failed(
  command: ReportedCharge & Asked & { readonly failureCode: string | null },
  state: Subscription,
): readonly SubscriptionEvent[] | Rejection {
  const number = numberOf(state, command.dueAt)
  const at = isoTime(command.at)
  const isOver = state.ended !== null && state.ended.at < at
  if (chargeOf(state, number)?.paid || isBeyondLast(state, number) || isOver) return []
  const event = SubscriptionChargeFailed.of({
    ...chargeFields(command, state, number),
    failure_code: command.failureCode,
  })
  const after = statusOf(event, state.status)
  if (state.ended || at !== state.status_at || after === state.status) return [event]
  // an earlier charge was paid before this one was tried; a later one after it
  const paidThen = state.tried.filter(({ paid }) => paid?.at === at)
  if (paidThen.length > 0) {
    const isOlder = paidThen.some((charge) => charge.number > number)
    return isOlder ? [event, ...reported(subscription.evolve(state, event)!, state.status, at)] : [event]
  }
  const { asked } = command
  if (asked === undefined) return tied()
  return [event, ...reported(subscription.evolve(state, event)!, asked, at)]
}

/** What two notices of one second tell does not agree, and none of them is a payment. */
export const STATUS_TIED = 'status_tied'

function tied(): Rejection {
  return reject('conflict', STATUS_TIED, 'What the processor said of one second does not agree')
}

function isPaidAt({ tried }: Subscription, at: string): boolean {
  return tried.some(({ paid }) => paid?.at === at)
}

function reported(state: Subscription, status: SubscriptionStatus, at: string): readonly SubscriptionEvent[] {
  const { subscription_id } = state
  if (state.ended) return []
  if (status === 'canceled')
    return [SubscriptionEnded.of({ subscription_id, reason: whyCanceled(state), at })]
  // it never goes back to that
  if (status === 'incomplete' || isOld(state, at)) return []
  if (status === state.status && at === state.status_at) return []
  return [SubscriptionStatusReported.of({ subscription_id, status, at })]
}

function chargeFields(
  { processorPaymentId, amountCents, at }: ReportedCharge,
  state: Subscription,
  number: number,
) {
  const { subscription_id } = state
  return {
    subscription_id,
    number,
    processor_payment_id: processorPaymentId,
    amount_cents: amountCents,
    at: isoTime(at),
  }
}

/** The cancellation of its policy takes the place of a partner's wish: what was paid is to be settled. */
function isNewWish(reason: CancellationReason, before: CancellationReason | null): boolean {
  return before === null || (before === 'requested' && reason === 'policy_cancelled')
}

function whyCanceled(state: Subscription): Ended['reason'] {
  if (state.cancellation !== null) return state.cancellation
  if (state.status === 'incomplete') return 'never_paid'
  return state.status === 'past_due' ? 'payment_failed' : 'processor'
}

function started(data: z.output<typeof SubscriptionStarted.schema>): Subscription {
  const { first_charge_paid, started_at: at, amount_cents } = data
  return {
    ...data,
    status: statusAtStart(data),
    status_at: null,
    updated_at: at,
    cancellation: null,
    overdue: [],
    ended: null,
    paid_again: [],
    tried: first_charge_paid
      ? [{ number: 1, paid: { at, amount_cents, processor_payment_id: null }, failures: [] }]
      : [],
  }
}

function withCharge(state: Subscription, number: number, change: (charge: Charge) => Charge): Subscription {
  const charge = chargeOf(state, number) ?? { number, paid: null, failures: [] }
  const others = state.tried.filter((one) => one.number !== number)
  const tried = [...others, change(charge)].sort((one, other) => one.number - other.number)
  return { ...state, tried }
}

function later(one: string, other: string): string {
  return one < other ? other : one
}

// ---- its status

type Standing = Pick<Subscription, 'status' | 'status_at'>
type Started = z.output<typeof SubscriptionStarted.schema>

/** The status that a subscription begins with: the down payment of a plan was its initial payment. */
export function statusAtStart({ first_charge_paid, source }: Started): SubscriptionStatus {
  return first_charge_paid || source === 'plan' ? 'active' : 'incomplete'
}

/** The status after an event. What happened before the last that is known, and is told late, changes nothing. */
export function statusAfter(
  before: Standing,
  event: Exclude<SubscriptionEvent, { readonly type: 'SubscriptionStarted' }>,
): Standing {
  const { at: status_at } = event.data
  const status = statusOf(event, before.status)
  if (before.status === 'canceled' || status === null) return before
  return status !== 'canceled' && isOld(before, status_at) ? before : { status, status_at }
}

function statusOf(event: SubscriptionEvent, before: SubscriptionStatus): SubscriptionStatus | null {
  switch (event.type) {
    case 'SubscriptionChargePaid':
      return 'active'
    case 'SubscriptionChargeFailed':
      // a later charge is made only after the first one was paid, though that may be told later
      return before === 'incomplete' && event.data.number === 1 ? 'incomplete' : 'past_due'
    case 'SubscriptionStatusReported':
      return event.data.status
    case 'SubscriptionEnded':
      return 'canceled'
    default:
      return null
  }
}

function isOld({ status_at }: Pick<Standing, 'status_at'>, at: string): boolean {
  return status_at !== null && at < status_at
}

// ---- the calendar of its charges

/** A charge, if it was tried. @param number from 1. */
export function chargeOf({ tried }: Pick<Subscription, 'tried'>, number: number): Charge | undefined {
  return tried.find((charge) => charge.number === number)
}

type Calendar = Pick<Subscription, 'anchor_at' | 'source'>

/** When a charge is due, epoch milliseconds: monthly, clamped to the month, on the day of the anchor. @param number from 1. */
export function dueAt({ anchor_at, source }: Calendar, number: number): number {
  return monthsAfter(Date.parse(anchor_at), source === 'plan' ? number : number - 1)
}

/**
 * Which charge is due nearest to a time: the processor's own times may differ from ours by seconds. It may lie beyond the
 * last one.
 */
export function numberOf(calendar: Calendar, epochMs: number): number {
  const from = new Date(calendar.anchor_at)
  const to = new Date(epochMs)
  const months = (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth()
  const about = calendar.source === 'plan' ? months : months + 1
  const distance = (number: number) => Math.abs(dueAt(calendar, number) - epochMs)
  return [about - 1, about, about + 1]
    .map((number) => Math.max(number, 1))
    .reduce((nearest, number) => (distance(number) < distance(nearest) ? number : nearest))
}

function isBeyondLast({ charges }: Pick<Subscription, 'charges'>, number: number): boolean {
  return charges !== null && number > charges
}

/** The number of the charge that comes next: the first that was not tried; null when none is left. */
export function nextNumber({ tried, charges, ended }: Subscription): number | null {
  if (ended) return null
  const next = (tried.at(-1)?.number ?? 0) + 1
  return charges !== null && next > charges ? null : next
}

/** The oldest charge that failed and is not paid yet. */
export function openCharge({ tried, ended }: Subscription): Charge | null {
  return ended ? null : (tried.find(({ paid }) => !paid) ?? null)
}

/** After this time without a word of a charge, operators are told: processors send notices for as long. */
const LONG_DUE_MS = 3 * 86_400_000

/** Charges that were due for long by a time, of which no word came, and no webhook went out yet. */
function overdueBy(state: Subscription, now: number): readonly number[] {
  // until its first payment it waits for that, and ends without it
  if (state.ended || state.status === 'incomplete') return []
  const found: number[] = []
  for (let number = 1; dueAt(state, number) + LONG_DUE_MS <= now; number += 1) {
    const isReported = chargeOf(state, number) !== undefined || state.overdue.includes(number)
    if (!isReported && !isBeyondLast(state, number)) found.push(number)
  }
  return found
}

/**
 * When the next charge will have been due for long, epoch milliseconds; null when none is left.
 * @param after epoch milliseconds.
 */
export function nextOverdueAt(
  calendar: Calendar & Pick<Subscription, 'charges'>,
  after: number,
): number | null {
  let number = 1
  while (dueAt(calendar, number) + LONG_DUE_MS <= after) number += 1
  return isBeyondLast(calendar, number) ? null : dueAt(calendar, number) + LONG_DUE_MS
}
