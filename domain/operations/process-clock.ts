import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'

/** How far the clock of a process may be from PostgreSQL's, in milliseconds, before a person is called. */
export const CLOCK_SKEW_LIMIT_MS = 5_000

/** The clock of one process against PostgreSQL's. The stream id is the process's, new at each start. */
export const ProcessClockDiffered = eventType('ProcessClockDiffered', {
  process_id: id(),
  /** How far it is ahead; negative: behind. */
  skew_ms: z.int(),
})
export const ProcessClockAgreed = eventType('ProcessClockAgreed', { process_id: id(), skew_ms: z.int() })
export type ProcessClockEvent = EventOf<typeof ProcessClockDiffered | typeof ProcessClockAgreed>

export const processClock: Decider<
  { readonly differs: boolean },
  { readonly type: 'Compare'; readonly data: ProcessClockEvent['data'] },
  ProcessClockEvent
> = {
  category: 'processClock',
  events: [ProcessClockDiffered, ProcessClockAgreed],
  initialState: { differs: false },
  evolve: (_state, { type }) => ({ differs: type === 'ProcessClockDiffered' }),
  decide({ data }, state) {
    const skew = Math.abs(data.skew_ms)
    if (!state.differs && skew > CLOCK_SKEW_LIMIT_MS) return [ProcessClockDiffered.of(data)]
    // a clock at the limit does not call again and again
    if (state.differs && skew < CLOCK_SKEW_LIMIT_MS / 2) return [ProcessClockAgreed.of(data)]
    return []
  },
}
