import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

/** How the pauses between attempts grow, in real milliseconds: from the first one on they double. */
export interface Backoff {
  readonly firstMs: number
  readonly mostMs: number
}

/** The pause after so many failures in a row: between half and all of what doubles, so that not all come back at once. */
export function backoffMs(failures: number, { firstMs, mostMs }: Backoff): number {
  const longest = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 20))
  return Math.ceil(longest / 2) + randomInt(Math.ceil(longest / 2) + 1)
}

/** Waits as {@link backoffMs} says, no longer when `signal` aborts. */
export async function backOff(failures: number, backoff: Backoff, signal?: AbortSignal): Promise<void> {
  await delay(backoffMs(failures, backoff), undefined, { ...(signal && { signal }) }).catch(() => undefined)
}
