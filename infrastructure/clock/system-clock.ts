import type { Clock } from '../../application/ports/clock.ts'

/** The machine's clock. */
export const systemClock: Clock = { kind: 'system', now: () => Date.now() }
