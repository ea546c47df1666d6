import { z } from 'zod'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type ProcessorKind, processorKind, withProcessor } from './processor-kinds.ts'

/**
 * What an employer is at the card processor: the customer whose payment methods are charged. The stream id is that of
 * the employer, which is in one environment.
 */
export const ProcessorCustomerCreated = eventType(
  'ProcessorCustomerCreated',
  {
    employer_id: id(),
    tenant_id: id(),
    environment: environment(),
    /** Where the customer is. */
    processor: processorKind,
    /** The processor's id. */
    customer_id: z.string(),
  },
  withProcessor('customer_id'),
)

const events = [ProcessorCustomerCreated] as const
export type ProcessorCustomerEvent = EventOf<(typeof events)[number]>
export type ProcessorCustomer = z.output<typeof ProcessorCustomerCreated.schema>
/** The customers of an employer, one at each processor. */
export type ProcessorCustomers = Readonly<Partial<Record<ProcessorKind, ProcessorCustomer>>>
export interface ProcessorCustomerCommand {
  readonly type: 'Record'
  readonly data: ProcessorCustomer
}

export const processorCustomer: Decider<
  ProcessorCustomers,
  ProcessorCustomerCommand,
  ProcessorCustomerEvent
> = {
  category: 'processorCustomer',
  events,
  initialState: {},
  evolve: (state, { data }) => ({ ...state, [data.processor]: data }),
  // of several requests to the processor, the first one that is recorded counts
  decide: ({ data }, state) => (state[data.processor] ? [] : [ProcessorCustomerCreated.of(data)]),
}
