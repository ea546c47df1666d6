import { z } from 'zod'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'

/**
 * A comparison of what events say of the money with what the ledger, the balances, the credits and the files for the bank
 * say. Amounts in texts are cents, times ISO 8601.
 */

/** What can differ. */
export const DIFFERENCES = [
  'debit_not_in_ledger',
  'debit_not_in_events',
  'debit_differs',
  'balance_differs',
  'credit_not_received',
  'receipt_without_credit',
  'file_differs',
] as const

/** Differences that a comparison tells one by one; further ones are counted. */
export const DIFFERENCES_REPORTED = 100

export const difference = z.object({
  what: z.enum(DIFFERENCES),
  tenant_id: id().nullable(),
  environment: environment().nullable(),
  carrier_id: id().nullable(),
  /** The debit, where it is about one. */
  leg_id: id().nullable(),
  /** The file for the bank, where it is about one. */
  file_id: id().nullable(),
  /** By the events, and by what was compared with them. */
  expected: z.string(),
  found: z.string(),
})
export type Difference = z.output<typeof difference>

const count = () => z.int().min(0)
export const ReconciliationMade = eventType('ReconciliationMade', {
  reconciliation_id: id(),
  trigger: z.enum(['night', 'operator']),
  /** Up to where in the log debits that have changed were compared one by one, a decimal. */
  through_position: z.string().regex(/^\d+$/),
  compared: z.object({
    debits: count(),
    ledger: count(),
    balances: count(),
    credits: count(),
    files: count(),
  }),
  /** The first {@link DIFFERENCES_REPORTED}. */
  differences: z.array(difference).max(DIFFERENCES_REPORTED),
  difference_count: count(),
  started_at: time(),
  at: time(),
})

export type ReconciliationEvent = EventOf<typeof ReconciliationMade>
export type Reconciliation = ReconciliationEvent['data']
export interface ReconciliationCommand {
  readonly type: 'Record'
  readonly data: Reconciliation
}

export const reconciliation: Decider<Reconciliation | null, ReconciliationCommand, ReconciliationEvent> = {
  category: 'reconciliation',
  events: [ReconciliationMade],
  initialState: null,
  evolve: (_state, { data }) => data,
  decide({ data }, state): readonly ReconciliationEvent[] | Rejection {
    if (state) return reject('conflict', 'reconciliation_exists', 'The comparison is recorded already')
    return [ReconciliationMade.of(data)]
  },
}
