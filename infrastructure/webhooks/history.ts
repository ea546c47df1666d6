import type { Clock } from '../../application/ports/clock.ts'
import type { DeliveryRecords } from '../../application/ports/webhooks.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const HOUR_MS = 60 * 60 * 1000

/** What the history of deliveries is kept by. */
interface Parts {
  readonly records: Pick<DeliveryRecords, 'prune'>
  readonly clock: Clock
  /** Days that it goes back. */
  readonly days: number
  /** Told of an error; the next hour tries again. */
  readonly failed: (error: unknown) => void
}

/** Forgets old deliveries now and every hour. @returns what ends that, when what is under way has ended. */
export function keepHistory({ records, clock, days, failed }: Parts): () => Promise<void> {
  const ended = new AbortController()
  let pruning: Promise<void> = Promise.resolve()
  const prune = async () => {
    try {
      while (!ended.signal.aborted && (await records.prune(clock.now() - days * DAY_MS)));
    } catch (error) {
      failed(error)
    }
  }
  const turn = () => {
    pruning = pruning.then(prune)
  }
  turn()
  const timer = setInterval(turn, HOUR_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    ended.abort()
    await pruning
  }
}
