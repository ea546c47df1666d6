import pLimit from 'p-limit'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'

/** Of many streams that are asked for together: the server must get to what others ask meanwhile. */
const READ_AT_ONCE = 16
/** How long no read may succeed while others wait for their turn, in milliseconds; less than a silent server is waited for. */
const TURN_LIMIT_MS = 8_000

/** Has a read made when it is its turn among those that belong together. */
export type InTurn = <T>(read: () => Promise<T>) => Promise<T>

export const rightAway: InTurn = (read) => read()

/**
 * Has reads that belong together made a few at a time. However long those take, the others wait as long as some succeed:
 * when none has for {@link TURN_LIMIT_MS}, who has waited for as long fails as the last one did.
 */
export function readsInTurn(): InTurn {
  const limit = pLimit(READ_AT_ONCE)
  let succeededAt = 0
  let failed: { readonly error: unknown } | undefined
  return (read) => {
    const askedAt = performance.now()
    return limit(async () => {
      const silentSince = Math.max(askedAt, succeededAt)
      if (failed && performance.now() - silentSince > technicalDeadline(TURN_LIMIT_MS)) throw failed.error
      try {
        const found = await read()
        succeededAt = performance.now()
        return found
      } catch (error) {
        failed = { error }
        throw error
      }
    })
  }
}
