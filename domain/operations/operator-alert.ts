import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'

/** An operator has taken note of an alert. What raised it is an event of another aggregate, from which its id derives. */
export const OperatorAlertAcknowledged = eventType({
  name: 'OperatorAlertAcknowledged',
  schema: z.object({ alert_id: id(), note: z.string().nullable() }),
})

const events = [OperatorAlertAcknowledged] as const
export type OperatorAlertEvent = EventOf<(typeof events)[number]>
export interface OperatorAlert {
  readonly isAcknowledged: boolean
}
export type OperatorAlertCommand = {
  readonly type: 'Acknowledge'
  readonly data: z.output<typeof OperatorAlertAcknowledged.schema>
}

export const operatorAlert: Decider<OperatorAlert, OperatorAlertCommand, OperatorAlertEvent> = {
  category: 'operatorAlert',
  events,
  initialState: { isAcknowledged: false },
  evolve: () => ({ isAcknowledged: true }),
  // the first one who takes note counts
  decide: ({ data }, { isAcknowledged }) => (isAcknowledged ? [] : [OperatorAlertAcknowledged.of(data)]),
}
