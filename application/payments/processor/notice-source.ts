import type { Environment } from '../../../domain/kernel/ids.ts'
import { isId } from '../../../domain/kernel/ids.ts'
import type { ProcessorKind } from '../../../domain/payments/processor/processor-kinds.ts'
import type { Application } from '../../commands/application.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { processorOf } from './processor-of.ts'

/** Where notices come from: the environment that a processor serves, and which it is. */
export interface NoticeSource {
  readonly environment: Environment
  readonly processor: ProcessorKind
}

/** Whether something was made where a notice comes from: it tells of nothing that is elsewhere. */
export function isAt({ environment, processor }: NoticeSource, made: NoticeSource): boolean {
  return made.environment === environment && made.processor === processor
}

type Processors = Pick<Application, 'processors' | 'formerProcessors'>

/** What the processor says of a subscription now; null where it knows none, or nothing that is not recorded here. */
export async function asked(app: Processors, source: NoticeSource, processorSubscriptionId: string) {
  try {
    return (await processorOf(app, source).readSubscription?.(processorSubscriptionId)) ?? null
  } catch (error) {
    if (error instanceof ProviderRefused) return null
    throw error
  }
}

/** Our id of a subscription that a notice names by the processor's; null where it is none of ours. */
export async function subscriptionAt(
  app: Processors,
  source: NoticeSource,
  processorSubscriptionId: string,
): Promise<string | null> {
  const { subscriptionId = null } = (await asked(app, source, processorSubscriptionId)) ?? {}
  return isId(subscriptionId) ? subscriptionId : null
}
