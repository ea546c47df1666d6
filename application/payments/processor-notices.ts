import type { Environment } from '../../domain/kernel/ids.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { paymentLink } from '../../domain/payments/payment-link.ts'
import type { ProcessorKind } from '../../domain/payments/processor-kinds.ts'
import {
  type Subscription,
  type SubscriptionCommand,
  subscription,
} from '../../domain/payments/subscription.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable, within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import type { CardProcessor, ProcessorNotice, SubscriptionNotice } from '../ports/card-processor.ts'
import { completeLink, expireLink, failLink } from './completions.ts'
import { tellRefund } from './refunds.ts'
import { unknown } from './subscriptions.ts'

/** The environment that a processor serves, and which it is. */
export interface Teller {
  readonly environment: Environment
  readonly processor: ProcessorKind
}

/**
 * Does what a notice of a card processor tells, once: the commands of the same notice have the same ids, and find
 * themselves in the stream that they change. What is told of something unknown is nobody's here.
 * @param teller where the notice comes from: it tells of nothing that is elsewhere.
 */
export async function applyNotice(
  app: Application,
  teller: Teller,
  notice: ProcessorNotice,
  context: CommandContext,
): Promise<void> {
  const commandId = derivedId(notice.noticeId, 'processor-notice')
  const outcome = await apply(app, teller, notice, { ...context, commandId, mayRepeat: true })
  if (isRejection(outcome) && outcome.kind !== 'not_found') throw new Error(outcome.message)
}

async function apply(
  app: Application,
  teller: Teller,
  notice: ProcessorNotice,
  context: CommandContext,
): Promise<unknown> {
  if ('subscriptionId' in notice) {
    const { subscriptionId } = notice
    const { state } = isId(subscriptionId)
      ? await app.commands.load(subscription, subscriptionId)
      : { state: null }
    if (!state || !isAt(teller, state)) return unknown()
    return tellSubscription(app, state, notice, context)
  }
  const { at, linkId } = notice
  const { state } = isId(linkId) ? await app.commands.load(paymentLink, linkId) : { state: null }
  if (!state || !isAt(teller, state)) return unknown()
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
      return tellRefund(app, state, notice, context)
  }
}

/** The processors of live keys that tell by notices, whether or not they are in use for what is new. */
export function tellers({
  processors,
  formerProcessors,
}: Pick<Application, 'processors' | 'formerProcessors'>): readonly CardProcessor[] {
  return [processors.live, ...formerProcessors].filter(({ noticesSince }) => noticesSince)
}

function isAt({ environment, processor }: Teller, made: Teller): boolean {
  return made.environment === environment && made.processor === processor
}

/** Records what the processor tells of a subscription. @param at when it happened there, epoch milliseconds. */
export async function tellSubscription(
  app: Application,
  state: Subscription,
  notice: Told,
  context: CommandContext,
): Promise<Subscription | Rejection> {
  const outcome = await app.commands.execute(
    subscription,
    state.subscription_id,
    commandOf(notice),
    within(context, state),
  )
  return readable(app, subscription, outcome)
}

type Told = SubscriptionNotice & { readonly at: number }

function commandOf(notice: Told): SubscriptionCommand {
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
