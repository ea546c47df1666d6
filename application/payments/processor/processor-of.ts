import type { Environment } from '../../../domain/kernel/ids.ts'
import type { ProcessorKind } from '../../../domain/payments/processor/processor-kinds.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { type Owned, within } from '../../commands/verbs.ts'
import { contextOf, type WorkItem } from '../../followers/process-manager.ts'
import { type HeldUp, raiseHeldUp } from '../../followers/through-outages.ts'
import type { CardProcessor } from '../../ports/card-processor.ts'
import { ProcessorNotConfigured } from '../../ports/provider.ts'

/** What was made at a card processor. */
interface MadeThere {
  readonly processor: ProcessorKind
  readonly environment: Environment
}

/** The card processor that made something: whatever is asked about it is asked there. @throws ProcessorNotConfigured */
export function processorOf(
  { processors, formerProcessors }: Pick<Application, 'processors' | 'formerProcessors'>,
  { processor: kind, environment }: MadeThere,
): CardProcessor {
  const all = environment === 'live' ? [processors.live, ...formerProcessors] : [processors.sandbox]
  const found = all.find((one) => one.kind === kind)
  if (!found) throw new ProcessorNotConfigured(kind)
  return found
}

/**
 * The card processor that made something, before anything else is done about it. That it is not configured any more, the
 * operator is told once a day.
 * @throws ProcessorNotConfigured
 */
export async function processorToAsk(
  app: Pick<Application, 'processors' | 'formerProcessors' | 'commands' | 'clock' | 'log'>,
  made: MadeThere & Owned,
  heldUp: HeldUp,
  context: CommandContext,
): Promise<CardProcessor> {
  try {
    return processorOf(app, made)
  } catch (error) {
    if (error instanceof ProcessorNotConfigured) await raiseHeldUp(app, heldUp, within(context, made))
    throw error
  }
}

type Made = 'payment_link' | 'payment_session' | 'subscription'

/** What is to be done at a card processor about something that was made there. */
export function heldUp(made: Made, id: string, work: string): HeldUp {
  return { kind: `${made}_held_up`, about: { [`${made}_id`]: id, work } }
}

/** Has the operator told that a piece of work waits for its card processor, for {@link throughOutages}. */
export function tellHeldUp(
  app: Pick<Application, 'commands' | 'clock' | 'log'>,
  made: Made,
  item: WorkItem,
  id = item.key,
): (since?: number) => Promise<void> {
  return (since) => raiseHeldUp(app, heldUp(made, id, item.kind), contextOf(item), since)
}
