import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'

/** An operator has taken note of an alert. What raised it is an event of another aggregate, from which its id derives. */
export const OperatorAlertAcknowledged = eventType('OperatorAlertAcknowledged', {
  alert_id: id(),
  note: z.string().nullable(),
  /** How often it had happened by then, where one alert stands for all; absent for once. */
  times: z.number().int().min(1).optional(),
})

const events = [OperatorAlertAcknowledged] as const
export type OperatorAlertEvent = EventOf<(typeof events)[number]>
export interface OperatorAlert {
  /** How often it had happened when it was acknowledged. */
  readonly noted: number
}
export type OperatorAlertCommand = {
  readonly type: 'Acknowledge'
  readonly data: z.output<typeof OperatorAlertAcknowledged.schema>
}

export const operatorAlert: Decider<OperatorAlert, OperatorAlertCommand, OperatorAlertEvent> = {
  category: 'operatorAlert',
  events,
  initialState: { noted: 0 },
  evolve: (_, { data }) => ({ noted: data.times ?? 1 }),
  // the first acknowledgement counts
  decide: ({ data }, { noted }) => ((data.times ?? 1) <= noted ? [] : [OperatorAlertAcknowledged.of(data)]),
}
