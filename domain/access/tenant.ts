import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/** A tenant: one partner account. Everything else hangs on one; nothing is visible across two. */
export const TenantRegistered = eventType('TenantRegistered', { tenant_id: id(), name: z.string() })

export type TenantEvent = EventOf<typeof TenantRegistered>
export interface Tenant {
  readonly tenant_id: string
  readonly name: string
}
export type TenantCommand = { readonly type: 'Register'; readonly data: Tenant }

export const tenant: Decider<Tenant | null, TenantCommand, TenantEvent> = {
  category: 'tenant',
  events: [TenantRegistered],
  initialState: null,
  evolve: (_state, event) => event.data,
  decide(command, state): readonly TenantEvent[] | Rejection {
    if (state) return reject('conflict', 'tenant_exists', 'The tenant exists already')
    return [TenantRegistered.of(command.data)]
  },
}
