import { z } from 'zod'
import type { Application } from '../commands/application.ts'
import { ProcessorNotConfigured, ProviderRefused, ProviderUnavailable } from '../ports/provider.ts'
import { ReadModelsLate } from '../ports/read-models.ts'
import { backoff, type WorkItem, type WorkOutcome } from './process-manager.ts'

/** How long a provider that was away for all tries is left alone, in service-clock milliseconds. */
export const OUTAGE_MS = 15 * 60_000
/** The same of a card processor that is not configured any more. */
const NOT_CONFIGURED_MS = 6 * 3_600_000
/** How long a provider may be away before the operator is told of what waits for it, in the same. */
export const LONG_OUTAGE_MS = 4 * 3_600_000
/** Tries of what a provider does, in a row: about 8 seconds in all. */
const TRIES = 6

/** How long work waits for read models that are late, in real milliseconds. */
const LATE_MS = 1_000

/**
 * Payload of work that goes through outages: since when a provider is away, epoch milliseconds of the service clock. The
 * store of work knows by it what waits for somebody outside.
 */
export const waiting = z.object({ away_since: z.number().optional() })

/** How such work is tried. */
export const ofProvider = { retry: backoff(TRIES), timeLimitMs: 60_000 } as const

/**
 * Does what a provider has to do; one that is away for all tries is asked again later, once at a time, for as long as it
 * takes.
 * @param tell has the operator told of what waits, once that takes long or where nobody can be asked; it may be called
 *   again with the same time.
 */
export async function throughOutages<Payload extends z.output<typeof waiting>>(
  { clock }: Pick<Application, 'clock'>,
  item: WorkItem<Payload>,
  run: () => Promise<unknown>,
  tell: (since: number) => Promise<void> = async () => undefined,
): Promise<WorkOutcome<Payload>> {
  try {
    await run()
    return { outcome: 'done' }
  } catch (error) {
    if (error instanceof ProviderRefused) return { outcome: 'stop', why: error.message }
    const now = clock.now()
    const since = item.payload.away_since ?? now
    if (error instanceof ProcessorNotConfigured) {
      // once for as long as it waits, which may be for ever
      await tell(since)
      return {
        outcome: 'again',
        at: now + NOT_CONFIGURED_MS,
        payload: { ...item.payload, away_since: since },
      }
    }
    // one look is enough at what was away before
    const isAway = item.isLastTry || item.payload.away_since !== undefined
    if (!(error instanceof ProviderUnavailable) || !isAway) throw error
    if (now - since >= LONG_OUTAGE_MS) await tell(since)
    return { outcome: 'again', at: now + OUTAGE_MS, payload: { ...item.payload, away_since: since } }
  }
}

/** Does what read models are asked for; again a little later where they are late. */
export async function unlessLate<Payload>(
  run: () => Promise<WorkOutcome<Payload>>,
): Promise<WorkOutcome<Payload>> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ReadModelsLate) return { outcome: 'again', afterMs: LATE_MS }
    throw error
  }
}
