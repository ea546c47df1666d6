import type { Decider } from '../../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../../domain/kernel/event-type.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { PaymentLinkCommand } from '../../../domain/payments/links/payment-link.ts'
import type { PaymentSessionCommand } from '../../../domain/payments/sessions/payment-session.ts'
import type { SubscriptionCommand } from '../../../domain/payments/subscriptions/subscription.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { type Owned, within } from '../../commands/verbs.ts'
import type { CardProcessor } from '../../ports/card-processor.ts'
import { ProcessorNotConfigured } from '../../ports/provider.ts'
import { processorOf } from './processor-of.ts'

/** What waits for a card processor that is away for long, or that is not configured any more: operators are alerted. */

const DAY_MS = 86_400_000

type Parts = Pick<Application, 'commands' | 'clock'>
interface HeldUp {
  readonly type: 'RecordHeldUp'
  readonly work: unknown
  readonly since: number
  readonly at: number
}
type WorkOf<Command> =
  Extract<Command, { readonly type: 'RecordHeldUp' }> extends { readonly work: infer Work } ? Work : never
export type LinkWork = WorkOf<PaymentLinkCommand>
export type SubscriptionWork = WorkOf<SubscriptionCommand>
export type SessionWork = WorkOf<PaymentSessionCommand>

/**
 * Records that what a processor is to do waits, once for a work and a time.
 * @param work a name of work that the aggregate's own command takes.
 * @param since epoch milliseconds.
 */
export async function recordHeldUp<
  State extends Owned,
  Command extends { readonly type: string },
  Event extends DomainEvent,
>(
  { commands, clock }: Parts,
  decider: Decider<State | null, Command, Event>,
  id: string,
  { work, since }: { readonly work: WorkOf<Command>; readonly since: number },
  context: CommandContext,
): Promise<void> {
  const command: HeldUp = { type: 'RecordHeldUp', work, since, at: clock.now() }
  const { state } = await commands.load(decider, id)
  const scoped = { ...within(context, state!), commandId: `${context.commandId}/${since}` }
  // whose work it is, its type says
  orThrow(await commands.execute(decider, id, command as HeldUp & Command, scoped))
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
