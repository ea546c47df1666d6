import { z } from 'zod'
import type { Decider } from './decider.ts'
import { type EventOf, eventType } from './event-type.ts'
import { type Rejection, reject } from './rejection.ts'

/**
 * Uniqueness by reservation: one stream per value (a FEIN, an active policy number, an agent's key, a web host), so
 * that of two parallel claims the log itself lets one win. The stream id is a fingerprint of the value.
 */
const reservationKind = z.enum(['fein', 'policy_number', 'agent_key', 'web_host'])
export type ReservationKind = z.output<typeof reservationKind>

export const ValueReserved = eventType('ValueReserved', {
  kind: reservationKind,
  fingerprint: z.string(),
  owner_id: z.string(),
})
export const ReservationReleased = eventType('ReservationReleased', {
  kind: reservationKind,
  fingerprint: z.string(),
  owner_id: z.string(),
})

const events = [ValueReserved, ReservationReleased] as const
export type ReservationEvent = EventOf<(typeof events)[number]>
export interface Reservation {
  /** The owner of the value; null while it is free. */
  readonly owner_id: string | null
}
export type ReservationCommand =
  | {
      readonly type: 'Reserve'
      readonly data: z.output<typeof ValueReserved.schema>
      /** An owner that has lost its claim (an expired policy) and may be replaced. */
      readonly replaces?: string
    }
  | { readonly type: 'Release'; readonly data: z.output<typeof ReservationReleased.schema> }

export const reservation: Decider<Reservation, ReservationCommand, ReservationEvent> = {
  category: 'reservation',
  events,
  initialState: { owner_id: null },
  evolve: (_state, event) => ({ owner_id: event.type === 'ValueReserved' ? event.data.owner_id : null }),
  decide(command, state): readonly ReservationEvent[] | Rejection {
    const { owner_id } = command.data
    if (command.type === 'Release') {
      return state.owner_id === owner_id ? [ReservationReleased.of(command.data)] : []
    }
    if (state.owner_id === owner_id) return []
    if (state.owner_id !== null && state.owner_id !== command.replaces) {
      return reject('conflict', `${command.data.kind}_taken`, `The ${command.data.kind} is taken`)
    }
    return [ValueReserved.of(command.data)]
  },
}
