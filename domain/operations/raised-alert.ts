import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType, time } from '../kernel/event-type.ts'

/** A person is called for what no event of another aggregate tells. The stream id derives from all of it. */
export const AlertRaised = eventType('AlertRaised', {
  kind: z.enum([
    'payment_link_held_up',
    'payment_session_held_up',
    'subscription_held_up',
    'debit_batch_held_up',
  ]),
  /** Ids of what it is about, by their names. */
  about: z.record(z.string(), z.string()),
  /** Since when that waits. */
  since: time(),
})
export type RaisedAlert = z.output<typeof AlertRaised.schema>

export const raisedAlert: Decider<
  { readonly isRaised: boolean },
  { readonly type: 'Raise'; readonly data: RaisedAlert },
  EventOf<typeof AlertRaised>
> = {
  category: 'raisedAlert',
  events: [AlertRaised],
  initialState: { isRaised: false },
  evolve: () => ({ isRaised: true }),
  decide: ({ data }, { isRaised }) => (isRaised ? [] : [AlertRaised.of(data)]),
}
