import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { reject } from '../../kernel/rejection.ts'

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

export const DebitCollectionAccepted = eventType('DebitCollectionAccepted', {
  collection_id: id(),
  tenant_id: id(),
  environment: environment(),
  employer_id: id(),
  /** The ACH account that is debited. */
  bank_account_id: id(),
  entries: z.array(collectionEntry).min(1).max(MOST_ENTRIES),
  accepted_at: time(),
})

/** The collection was refused after it had claimed keys: it is never accepted, and its claims count no more. */
export const DebitCollectionRefused = eventType('DebitCollectionRefused', {
  collection_id: id(),
  at: time(),
})

const events = [DebitCollectionAccepted, DebitCollectionRefused] as const
export type DebitCollectionEvent = EventOf<(typeof events)[number]>
export type DebitCollection = EventOf<typeof DebitCollectionAccepted>['data']
export type DebitCollectionCommand =
  | { readonly type: 'Accept'; readonly data: DebitCollection }
  /** @param at epoch milliseconds. */
  | { readonly type: 'Refuse'; readonly collectionId: string; readonly at: number }

export const debitCollection: Decider<
  DebitCollection | 'refused' | null,
  DebitCollectionCommand,
  DebitCollectionEvent
> = {
  category: 'debitCollection',
  events,
  initialState: null,
  evolve: (_state, { type, data }) => (type === 'DebitCollectionAccepted' ? data : 'refused'),
  // the id derives from the content: the same content sent again is this collection
  decide(command, state) {
    if (command.type === 'Accept') {
      if (state === 'refused')
        return reject('conflict', 'collection_refused', 'The collection was refused meanwhile')
      return state ? [] : [DebitCollectionAccepted.of(command.data)]
    }
    const { collectionId: collection_id, at } = command
    return state ? [] : [DebitCollectionRefused.of({ collection_id, at: isoTime(at) })]
  },
}
