import type { Environment } from '../../domain/kernel/ids.ts'
import type { ProcessorKind } from '../../domain/payments/processor-kinds.ts'
import type { Application } from '../application.ts'
import type { CardProcessor } from '../ports/card-processor.ts'
import { ProviderUnavailable } from '../ports/provider.ts'

/** The card processor that something is at is not configured any more. */
export class ProcessorNotConfigured extends ProviderUnavailable {
  constructor(kind: ProcessorKind) {
    super(`It is at a card processor that is not configured any more (${kind})`, { nothingHappened: true })
  }
}

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
