import type { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { secret } from '../kernel/sealed.ts'

/** A connection over which a partner pushes payroll by signed webhook. Its secret lies in the vault. */
export const InboundConnectionOpened = eventType('InboundConnectionOpened', {
  connection_id: id(),
  tenant_id: id(),
  environment: environment(),
  /** Where the vault keeps the HMAC secret. */
  secret_ref: secret(),
})
export const InboundConnectionDeactivated = eventType('InboundConnectionDeactivated', { connection_id: id() })

const events = [InboundConnectionOpened, InboundConnectionDeactivated] as const
export type InboundConnectionEvent = EventOf<(typeof events)[number]>
export interface InboundConnection extends z.output<typeof InboundConnectionOpened.schema> {
  readonly status: 'active' | 'deactivated'
}
export type InboundConnectionCommand =
  | { readonly type: 'Open'; readonly data: z.output<typeof InboundConnectionOpened.schema> }
  | { readonly type: 'Deactivate' }

export const inboundConnection: Decider<
  InboundConnection | null,
  InboundConnectionCommand,
  InboundConnectionEvent
> = {
  category: 'inboundConnection',
  events,
  initialState: null,
  evolve(state, event) {
    return event.type === 'InboundConnectionOpened'
      ? { ...event.data, status: 'active' }
      : { ...state!, status: 'deactivated' }
  },
  decide(command, state): readonly InboundConnectionEvent[] | Rejection {
    if (command.type === 'Open') {
      if (state) return reject('conflict', 'connection_exists', 'The connection exists already')
      return [InboundConnectionOpened.of(command.data)]
    }
    if (!state) return reject('not_found', 'connection_not_found', 'No such connection')
    if (state.status === 'deactivated') return []
    return [InboundConnectionDeactivated.of({ connection_id: state.connection_id })]
  },
}
