import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { paymentLink } from '../../domain/payments/links/payment-link.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import {
  STATUS_TIED,
  type Subscription,
  type SubscriptionCommand,
  subscription,
} from '../../domain/payments/subscriptions/subscription.ts'
import { stateOf } from '../access/owned-by.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { derivedId } from '../commands/event-registry.ts'
import { changed, readable, within } from '../commands/verbs.ts'
import type {
  CardProcessor,
  ProcessorNotice,
  SubscriptionNotice,
  UnreadNotice,
} from '../ports/card-processor.ts'
import { completeLink, expireLink, failLink } from './links/completions.ts'
import { recordRefundNotice } from './links/refunds.ts'
import { parkNotice } from './parked-notices.ts'
import { asked, isAt, type NoticeSource, subscriptionAt } from './processor/notice-source.ts'
import { completeSession, failSession } from './sessions/completions.ts'
import { unknown } from './subscriptions/subscriptions.ts'

/** Takes a notice of a card processor: {@link applyNotice}, or {@link parkNotice} where it is not understood. */
export async function takeNotice(
  app: Application,
  source: NoticeSource,
  notice: ProcessorNotice | UnreadNotice,
  context: CommandContext,
): Promise<void> {
  if (notice.about === 'unread') await parkNotice(app, source, notice, context)
  else await applyNotice(app, source, notice, context)
}

/**
 * Does what a notice of a card processor tells, once: the commands of the same notice have the same ids, and find
 * themselves in the stream that they change. A notice of something unknown is ignored.
 * @param source where the notice comes from: it tells of nothing that is elsewhere.
 * @returns whether it is about something that is known.
 * @throws ProviderUnavailable: the processor has to say what it means.
 */
export async function applyNotice(
  app: Application,
  source: NoticeSource,
  notice: ProcessorNotice,
  context: CommandContext,
): Promise<boolean> {
  const commandId = derivedId(notice.noticeId, 'processor-notice')
  const outcome = await apply(app, source, notice, { ...context, commandId, mayRepeat: true })
  if (!isRejection(outcome)) return true
  if (outcome.kind !== 'not_found') throw new Error(outcome.message)
  return false
}

async function apply(
  app: Application,
  source: NoticeSource,
  notice: ProcessorNotice,
  context: CommandContext,
): Promise<unknown> {
  if ('subscriptionId' in notice || 'processorSubscriptionId' in notice) {
    const subscriptionId =
      'subscriptionId' in notice
        ? notice.subscriptionId
        : await subscriptionAt(app, source, notice.processorSubscriptionId)
    const state = await stateOf(app, subscription, subscriptionId)
    if (!state || !isAt(source, state)) return unknown()
    return recordSubscriptionNotice(app, state, notice, context)
  }
  if ('sessionId' in notice) return applyToSession(app, source, notice, context)
  const { at, linkId } = notice
  const state = await stateOf(app, paymentLink, linkId)
  if (!state || !isAt(source, state)) return unknown()
  switch (notice.about) {
    case 'link_paid': {
      const { processorPaymentId, paymentMethodId, amountCents } = notice
      return completeLink(app, { linkId, processorPaymentId, paymentMethodId, amountCents, at }, context)
    }
    case 'link_failed':
      return failLink(app, { linkId, failureMessage: notice.failureMessage, at }, context)
    case 'link_expired':
      return expireLink(app, { linkId, at }, context)
    case 'link_refund':
      return recordRefundNotice(app, state, notice, context)
  }
}

const PAYMENT_CANCELLED = 'The payment was cancelled at the card processor'

/** The same of a checkout: a session may have had several, at more than one processor. */
async function applyToSession(
  app: Application,
  source: NoticeSource,
  notice: Extract<ProcessorNotice, { readonly sessionId: string }>,
  context: CommandContext,
): Promise<unknown> {
  const { sessionId, checkoutId, at } = notice
  const state = await stateOf(app, paymentSession, sessionId)
  const checkout = state?.checkouts.find(({ checkout_id }) => checkout_id === checkoutId)
  if (!state || !checkout || !isAt(source, { ...state, processor: checkout.processor })) return unknown()
  switch (notice.about) {
    case 'checkout_paid':
      return completeSession(app, notice, context)
    case 'checkout_failed':
      return failSession(app, notice, context)
    case 'checkout_payment_cancelled':
      // a checkout that expires takes its payment with it
      // nothing is lost of one that is told before its debit: `catchUp` lists both again, the older one first
      return checkout.isProcessing
        ? failSession(app, { ...notice, failureMessage: PAYMENT_CANCELLED }, context)
        : unknown()
    case 'checkout_processing': {
      const command = { type: 'RecordPaymentProcessing', checkoutId, at } as const
      return changed(app, paymentSession, sessionId, command, context)
    }
    case 'checkout_expired': {
      const command = { type: 'RecordCheckoutClosed', checkoutId, at } as const
      return changed(app, paymentSession, sessionId, command, context)
    }
  }
}

/** The processors of live keys that send notices, whether or not they are in use for what is new. */
export function noticeSenders({
  processors,
  formerProcessors,
}: Pick<Application, 'processors' | 'formerProcessors'>): readonly CardProcessor[] {
  return [processors.live, ...formerProcessors].filter(({ noticesSince }) => noticesSince)
}

/**
 * Records what the processor tells of a subscription. Where that does not agree with what it said of the same second, it is
 * asked first.
 * @param at when it happened there, epoch milliseconds.
 * @throws ProviderUnavailable
 */
export async function recordSubscriptionNotice(
  app: Application,
  state: Subscription,
  notice: DatedNotice,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const command = commandOf(notice)
  const record = (reported: SubscriptionCommand) =>
    app.commands.execute(subscription, state.subscription_id, reported, within(context, state))
  let outcome = await record(command)
  if (isRejection(outcome) && outcome.code === STATUS_TIED) {
    const now = await asked(app, state, state.processor_subscription_id)
    outcome = await record({ ...command, asked: now?.status ?? state.status } as SubscriptionCommand)
  }
  return readable(app, subscription, outcome)
}

type DatedNotice = SubscriptionNotice & { readonly at: number }

function commandOf(notice: DatedNotice): SubscriptionCommand {
  const { at } = notice
  switch (notice.about) {
    case 'subscription_paid':
      return { type: 'Paid', ...chargeOf(notice), at }
    case 'subscription_failed':
      return { type: 'Failed', ...chargeOf(notice), failureCode: notice.failureCode, at }
    case 'subscription_status':
      return { type: 'Report', status: notice.status, at }
  }
}

function chargeOf({
  processorPaymentId,
  amountCents,
  dueAt,
}: Extract<SubscriptionNotice, { readonly dueAt: number }>) {
  return { processorPaymentId, amountCents, dueAt }
}
