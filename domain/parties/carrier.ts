import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/** How collected premium reaches the carrier: matched credits (`fbo`), processor reports (`direct`), or neither. */
const settlementType = z.enum(['fbo', 'direct']).nullable()

export const CarrierRegistered = eventType('CarrierRegistered', {
  carrier_id: id(),
  tenant_id: id(),
  name: z.string(),
  settlement_type: settlementType,
})

export type CarrierEvent = EventOf<typeof CarrierRegistered>
export type Carrier = z.output<typeof CarrierRegistered.schema>
export type CarrierCommand = { readonly type: 'Register'; readonly data: Carrier }

export const carrier: Decider<Carrier | null, CarrierCommand, CarrierEvent> = {
  category: 'carrier',
  events: [CarrierRegistered],
  initialState: null,
  evolve: (_state, event) => event.data,
  decide(command, state): readonly CarrierEvent[] | Rejection {
    if (state) return reject('conflict', 'carrier_exists', 'The carrier exists already')
    return [CarrierRegistered.of(command.data)]
  },
}
