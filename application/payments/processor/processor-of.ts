import type { Environment } from '../../../domain/kernel/ids.ts'
import type { ProcessorKind } from '../../../domain/payments/processor/processor-kinds.ts'
import type { Application } from '../../commands/application.ts'
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
