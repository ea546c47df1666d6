import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/** The virtual clock of a test or acceptance installation: time is what the log says it is. */
export const VirtualClockMoved = eventType('VirtualClockMoved', {
  /** Milliseconds since the epoch. */
  to: z.number().int(),
})
export type VirtualClockEvent = EventOf<typeof VirtualClockMoved>
/** Stream id of the one virtual clock. */
export const VIRTUAL_CLOCK_ID = 'service'

export const virtualClock: Decider<
  { readonly now: number | null },
  { readonly type: 'MoveTo'; readonly to: number },
  VirtualClockEvent
> = {
  category: 'virtualClock',
  events: [VirtualClockMoved],
  initialState: { now: null },
  evolve: (_state, event) => ({ now: event.data.to }),
  decide(command, state): readonly VirtualClockEvent[] | Rejection {
    if (state.now !== null && command.to < state.now) {
      return reject('conflict', 'clock_moves_forward', 'The clock only moves forward', 'to')
    }
    return command.to === state.now ? [] : [VirtualClockMoved.of({ to: command.to })]
  },
}
