import { z } from 'zod'
import { isoTime } from '../kernel/calendar.ts'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { debitedAccount } from './debited-account.ts'

/**
 * A bank returned money of these numbers for a reason that holds for whatever is debited from them: one stream for each
 * tenant, environment and fingerprint, since the same numbers may be any number of accounts. For good.
 */
export const BankNumbersDisabled = eventType({
  name: 'BankNumbersDisabled',
  schema: z.object({
    numbers_id: id(),
    tenant_id: id(),
    environment: environment(),
    fingerprint: debitedAccount.shape.fingerprint,
    return_code: z.string(),
    at: z.iso.datetime({ precision: 3 }),
  }),
})
type Data = EventOf<typeof BankNumbersDisabled>['data']

export interface DisableNumbers {
  readonly type: 'Disable'
  readonly data: Omit<Data, 'at'>
  /** Epoch milliseconds. */
  readonly at: number
}

/** Null: they may be debited. */
export const disabledNumbers: Decider<Data | null, DisableNumbers, EventOf<typeof BankNumbersDisabled>> = {
  category: 'disabledNumbers',
  events: [BankNumbersDisabled],
  initialState: null,
  evolve: (_state, { data }) => data,
  decide: ({ data, at }, state) => (state ? [] : [BankNumbersDisabled.of({ ...data, at: isoTime(at) })]),
}
