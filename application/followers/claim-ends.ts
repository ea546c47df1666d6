import type { Clock } from '../ports/clock.ts'
import { namedIn } from './attempt.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import { type Retry, triesOf, type WorkOutcome } from './process-manager.ts'
import { fitPayload } from './reactions.ts'
import { type KindSlots, kindName } from './slots.ts'
import type { ClaimedWork, WorkEnd } from './work-store.ts'

/** How a worker let go of a piece of work: `failed`, its tries were used up; the others as in {@link WorkOutcome}. */
export type EndedWork = WorkOutcome['outcome'] | 'failed'

/** How a claim ends, and what that is told as. */
export interface Ended {
  readonly end: WorkEnd
  readonly as: EndedWork | null
}

interface ClaimEndsParts {
  readonly clock: Clock
  readonly report: (
    what: 'work_retried' | 'work_failed',
    fields: Readonly<Record<string, string | number>>,
  ) => void
}

/** Decides how the claim of a piece of work ends by what became of it. */
export class ClaimEnds {
  readonly #parts: ClaimEndsParts
  readonly #kinds: ReadonlyMap<string, KindSlots>
  readonly #backoff: Backoff

  constructor(parts: ClaimEndsParts, kinds: ReadonlyMap<string, KindSlots>, backoff: Backoff) {
    this.#parts = parts
    this.#kinds = kinds
    this.#backoff = backoff
  }

  /** @throws UnfitPayload */
  of(claim: ClaimedWork, retry: Retry, outcome: WorkOutcome<unknown>): Ended {
    const changed =
      'payload' in outcome || 'awaySince' in outcome ? { changed: this.#changed(claim, outcome) } : {}
    switch (outcome.outcome) {
      case 'done':
        return { end: { end: 'done' }, as: 'done' }
      case 'held':
        return { end: { end: 'held', at: outcome.at }, as: 'held' }
      case 'again': {
        const when = 'at' in outcome ? { at: outcome.at } : { afterMs: outcome.afterMs }
        return { end: { end: 'again', ...when, ...changed }, as: 'again' }
      }
      case 'retry':
        return this.retry(claim, retry, outcome.why, changed)
      case 'stop':
        return this.failed(claim, outcome.why, 'stop')
    }
  }

  #changed(claim: ClaimedWork, to: { readonly payload?: unknown; readonly awaySince?: number | null }) {
    const { payload = claim.payload, awaySince = claim.awaySince } = to
    const declared = this.#kinds.get(kindName(claim.processManager, claim.kind))?.declared
    const fit = fitPayload(declared, claim.kind, payload)
    if (awaySince === null) return fit
    return { ...fit, payload: { ...(fit.payload as object), away_since: awaySince } }
  }

  /** What follows a failed try. */
  retry(
    claim: ClaimedWork,
    retry: Retry,
    why: string,
    changed: Pick<Extract<WorkEnd, { end: 'retry' }>, 'changed'> = {},
  ): Ended {
    if (claim.attempt >= triesOf(retry)) return this.failed(claim, why, 'failed')
    this.#parts.report('work_retried', { ...namedIn(claim), reason: why })
    const { attempt } = claim
    const when =
      retry.clock === 'service'
        ? { at: this.#parts.clock.now() + retry.rungsMs[attempt - 1]! }
        : { afterMs: backoffMs(attempt, this.#backoff) }
    return { end: { end: 'retry', why, ...when, ...changed }, as: 'retry' }
  }

  failed(claim: ClaimedWork, why: string, as: 'stop' | 'failed'): Ended {
    this.#parts.report('work_failed', { ...namedIn(claim), reason: why })
    return { end: { end: 'failed', why }, as }
  }
}
