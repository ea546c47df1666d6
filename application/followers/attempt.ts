import { derivedId } from '../commands/event-registry.ts'
import { triesOf, type WorkItem, type WorkOutcome } from './process-manager.ts'
import type { KindSlots } from './slots.ts'
import type { ClaimedWork } from './work-store.ts'

/** An attempt took longer than its kind of work allows. */
export class TimeLimitExceeded extends Error {
  override readonly name = 'TimeLimitExceeded'
}

/** Another process may work on the piece by now. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** What names a claim in reports. */
export function namedIn({ processManager, kind, key, attempt, correlationId }: ClaimedWork) {
  return { process_manager: processManager, kind, key, attempt, correlation_id: correlationId }
}

/** What the handler of a claimed piece is given. */
export function itemOf(
  claim: ClaimedWork,
  { declared }: KindSlots,
  given: Pick<WorkItem, 'payload' | 'signal' | 'freeKey'>,
): WorkItem {
  const { processManager, kind, key, attempt, dueAt, awaySince } = claim
  const { correlationId, causationId, tenantId, environment } = claim
  const commandId = derivedId(`${processManager}/${kind}/${key}/${causationId}`, 'work')
  return {
    processManager,
    kind,
    key,
    commandId,
    attempt,
    dueAt,
    awaySince,
    ...given,
    isLastTry: attempt >= triesOf(declared.retry),
    correlationId,
    causationId,
    tenantId,
    environment,
  }
}

/** Does not wait for work that goes on although its time is up, or its lease was lost. */
export async function orGivenUp(
  work: Promise<WorkOutcome<unknown>>,
  signal: AbortSignal,
): Promise<WorkOutcome<unknown>> {
  let end: () => void = () => undefined
  const givenUp = new Promise<never>((_, reject) => {
    end = () => {
      const { reason } = signal
      if (reason instanceof TimeLimitExceeded || reason instanceof LeaseLost) reject(reason)
    }
    signal.addEventListener('abort', end)
  })
  try {
    return await Promise.race([work, givenUp])
  } finally {
    signal.removeEventListener('abort', end)
  }
}
