import { isRejection } from '../../domain/kernel/rejection.ts'
import { type PaymentLink, type PaymentLinkCommand, paymentLink } from '../../domain/payments/payment-link.ts'
import {
  type Subscription,
  type SubscriptionCommand,
  subscription,
} from '../../domain/payments/subscription.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { within } from '../command-handling/verbs.ts'
import type { CardProcessor } from '../ports/card-processor.ts'
import { ProcessorNotConfigured, processorOf } from './processor-of.ts'

/** What waits for a card processor that is away for long, or that is not configured any more: operators are alerted. */

const DAY_MS = 86_400_000

type Parts = Pick<Application, 'commands' | 'clock'>
type WorkOf<Command> =
  Extract<Command, { readonly type: 'RecordHeldUp' }> extends { readonly work: infer Work } ? Work : never
export type LinkWork = WorkOf<PaymentLinkCommand>
export type SubscriptionWork = WorkOf<SubscriptionCommand>

/** Records that something of a link waits, once for a work and a time. @param since epoch milliseconds. */
export async function recordLinkHeldUp(
  app: Parts,
  link: PaymentLink,
  { work, since }: { readonly work: LinkWork; readonly since: number },
  context: CommandContext,
): Promise<void> {
  const command = { type: 'RecordHeldUp', work, since, at: app.clock.now() } as const
  const scoped = { ...within(context, link), commandId: `${context.commandId}/${since}` }
  const outcome = await app.commands.execute(paymentLink, link.payment_link_id, command, scoped)
  if (isRejection(outcome)) throw new Error(outcome.message)
}

/** Records that something of a subscription waits, once for a work and a time. @param since epoch milliseconds. */
export async function recordSubscriptionHeldUp(
  app: Parts,
  state: Subscription,
  { work, since }: { readonly work: SubscriptionWork; readonly since: number },
  context: CommandContext,
): Promise<void> {
  const command = { type: 'RecordHeldUp', work, since, at: app.clock.now() } as const
  const scoped = { ...within(context, state), commandId: `${context.commandId}/${since}` }
  const outcome = await app.commands.execute(subscription, state.subscription_id, command, scoped)
  if (isRejection(outcome)) throw new Error(outcome.message)
}

/**
 * The card processor that made something, before anything else is done about it.
 * @param tell records that it is not configured: once a day, for that is what `since` is cut to.
 * @throws ProcessorNotConfigured
 */
export async function processorToAsk(
  app: Pick<Application, 'processors' | 'formerProcessors' | 'clock'>,
  made: Parameters<typeof processorOf>[1],
  tell: (since: number) => Promise<void>,
): Promise<CardProcessor> {
  try {
    return processorOf(app, made)
  } catch (error) {
    if (error instanceof ProcessorNotConfigured) await tell(dayOf(app.clock.now()))
    throw error
  }
}

/** The beginning of a day (UTC), epoch milliseconds. */
export function dayOf(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS) * DAY_MS
}
