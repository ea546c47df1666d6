import { isRejection, orThrow, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { MOST_INSTALLMENTS } from '../../domain/payments/links/direct-billing-plan.ts'
import {
  dueAt,
  nextNumber,
  openCharge,
  type Subscription,
} from '../../domain/payments/subscriptions/subscription.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { derivedId } from '../commands/event-registry.ts'
import { declinesAlways } from './processor/simulated-methods.ts'
import { recordSubscriptionNotice } from './processor-notices.ts'

/** How the simulated card processor charges: what a real one decides by itself, and tells in notices. */

const DAY_MS = 86_400_000
/** When a charge that failed is tried again, counted from the first failure, in days. After the last it gives up. */
const RETRY_DAYS = [1, 3, 5, 7] as const

/**
 * Payments of one subscription that can be simulated: 30 years, as of the longest plan. What is shown of it stays
 * bounded.
 */
const MOST_SIMULATED = MOST_INSTALLMENTS

/** Why a charge is declined that nobody declined on purpose: the next try may succeed. */
const PASSING_FAILURE = 'processing_error'
const DECLINED = 'card_declined'

/** What it does next with a subscription by itself. */
export interface NextStep {
  readonly does: 'charge' | 'give_up'
  /** Which of the charges, from 1. */
  readonly number: number
  /** Tries of it that failed before. */
  readonly failures: number
  /** Epoch milliseconds. */
  readonly at: number
}

/** @returns null when it waits: nothing is left to charge, or the first payment is to be simulated. */
export function nextStep(state: Subscription): NextStep | null {
  if (state.status === 'incomplete' || state.ended) return null
  const open = openCharge(state)
  const number = nextNumber(state)
  const steps: NextStep[] = number === null ? [] : [{ ...chargeStep(number, 0), at: dueAt(state, number) }]
  if (open) {
    const { failures } = open
    const first = Date.parse(failures[0]!.at)
    const days = RETRY_DAYS[failures.length - 1]
    steps.push(
      days === undefined
        ? { does: 'give_up', number: open.number, failures: failures.length, at: first }
        : { ...chargeStep(open.number, failures.length), at: first + days * DAY_MS },
    )
  }
  return steps.reduce<NextStep | null>((first, one) => (first && first.at <= one.at ? first : one), null)
}

function chargeStep(number: number, failures: number) {
  return { does: 'charge' as const, number, failures }
}

/** Takes a step whose time has come. A card that was declined stays so until a payment is simulated. */
export async function takeStep(
  app: Application,
  state: Subscription,
  step: NextStep,
  context: CommandContext,
): Promise<void> {
  if (step.does === 'give_up') {
    await giveUp(app, state, context)
    return
  }
  const last = openCharge(state)?.failures.at(-1)?.failure_code ?? null
  const isDeclined = declinesAlways(state.payment_method_id) || (last !== null && last !== PASSING_FAILURE)
  const fault = isDeclined ? null : await app.faults.take('card-processor', ['decline'])
  const failureCode = isDeclined ? (last ?? DECLINED) : fault === null ? null : PASSING_FAILURE
  orThrow(await charge(app, state, step.number, failureCode, context))
}

/**
 * Simulates the next payment of a subscription, in whatever state: the one that failed, else the next one, also before
 * it is due. The retry that a declined payment waits for counts as made.
 * @param failureCode null: it succeeds.
 */
export async function simulateSubscriptionPayment(
  app: Application,
  state: Subscription,
  failureCode: string | null,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const number = openCharge(state)?.number ?? nextNumber(state)
  if (number === null) {
    // that it is declined once more is no news
    if (failureCode !== null && state.ended?.reason === 'payment_failed') return state
    return reject(
      'conflict',
      'subscription_canceled',
      'The subscription is cancelled: nothing is charged any more',
    )
  }
  if (number > MOST_SIMULATED) {
    const why = `No more than ${MOST_SIMULATED} payments of a subscription are simulated`
    return reject('conflict', 'too_many_played', why)
  }
  return charge(app, state, number, failureCode, context)
}

/** Tells what came of a charge, and that the subscription is over when no retry is left. */
async function charge(
  app: Application,
  state: Subscription,
  number: number,
  failureCode: string | null,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const { subscription_id: subscriptionId, amount_cents: amountCents } = state
  const reported = {
    subscriptionId,
    amountCents,
    dueAt: dueAt(state, number),
    at: app.clock.now(),
    processorPaymentId: `ch_sim_${derivedId(subscriptionId, `processor-charge/${number}`)}`,
  }
  const after = await recordSubscriptionNotice(
    app,
    state,
    failureCode === null
      ? { about: 'subscription_paid', ...reported }
      : { about: 'subscription_failed', ...reported, failureCode },
    context,
  )
  if (isRejection(after) || nextStep(after)?.does !== 'give_up') return after
  return giveUp(app, after, context)
}

function giveUp(
  app: Application,
  state: Subscription,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const { subscription_id: subscriptionId } = state
  const canceled = { about: 'subscription_status', status: 'canceled', subscriptionId } as const
  return recordSubscriptionNotice(app, state, { ...canceled, at: app.clock.now() }, context)
}
