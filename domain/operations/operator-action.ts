import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'

/**
 * What operators do to the machinery rather than to the business: rebuilds, redrives, reveals of
 * masked fields, injected faults, erasures. Recorded so that auditors see it beside everything else.
 */
export const OperatorActed = eventType('OperatorActed', {
  action: z.string(),
  target: z.string(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
})
export type OperatorActionEvent = EventOf<typeof OperatorActed>
export interface OperatorActionCommand {
  readonly type: 'Record'
  readonly data: z.output<typeof OperatorActed.schema>
}

export const operatorAction: Decider<null, OperatorActionCommand, OperatorActionEvent> = {
  category: 'operatorAction',
  events: [OperatorActed],
  initialState: null,
  evolve: () => null,
  decide: (command) => [OperatorActed.of(command.data)],
}
