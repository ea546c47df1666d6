import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'

/**
 * A batch collection: debits of several policies of one employer that were asked for in one call. All its entries are
 * accepted by one append, or none is; the debits follow, under the ids that stand here.
 */

/** Entries of one collection at the most: with the longest descriptions they fit into one event. */
export const MOST_ENTRIES = 100

const collectionEntry = z.object({
  /** Of the debit, by its key: an earlier request may have created it. */
  transaction_id: id(),
  policy_id: id(),
  carrier_id: id(),
  amount_cents: z.int().min(1),
  description: z.string(),
})

export const DebitCollectionAccepted = eventType({
  name: 'DebitCollectionAccepted',
  schema: z.object({
    collection_id: id(),
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    /** The ACH account that is debited. */
    bank_account_id: id(),
    entries: z.array(collectionEntry).min(1).max(MOST_ENTRIES),
    accepted_at: z.iso.datetime({ precision: 3 }),
  }),
})

const events = [DebitCollectionAccepted] as const
export type DebitCollectionEvent = EventOf<(typeof events)[number]>
export type DebitCollection = DebitCollectionEvent['data']
export interface AcceptCollection {
  readonly type: 'Accept'
  readonly data: DebitCollection
}

export const debitCollection: Decider<DebitCollection | null, AcceptCollection, DebitCollectionEvent> = {
  category: 'debitCollection',
  events,
  initialState: null,
  evolve: (_state, { data }) => data,
  // its id says what is in it: whoever sends it again means this one
  decide: ({ data }, state) => (state ? [] : [DebitCollectionAccepted.of(data)]),
}
