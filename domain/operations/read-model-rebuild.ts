import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'

/**
 * A rebuilt read model that does not answer by itself, although it was to: a person looks first. The stream id is the
 * projection's name.
 */
export const ReadModelRebuildHeldBack = eventType('ReadModelRebuildHeldBack', {
  projection: z.string(),
  generation: z.int().min(1),
  /** Rows of the same version differ from those that answer; or streams are dead-lettered that are not there. */
  reason: z.enum(['rows_differ', 'parked_streams']),
  /** Tables that differ. */
  tables: z.array(z.string()),
})
export type ReadModelRebuildEvent = EventOf<typeof ReadModelRebuildHeldBack>
export type HeldBackRebuild = ReadModelRebuildEvent['data']

export const readModelRebuild: Decider<
  { readonly heldBack: number },
  { readonly type: 'HoldBack'; readonly data: HeldBackRebuild },
  ReadModelRebuildEvent
> = {
  category: 'readModelRebuild',
  events: [ReadModelRebuildHeldBack],
  initialState: { heldBack: 0 },
  evolve: (_state, { data }) => ({ heldBack: data.generation }),
  // the next owner of the projection may find the same once more
  decide: ({ data }, { heldBack }) =>
    data.generation === heldBack ? [] : [ReadModelRebuildHeldBack.of(data)],
}
