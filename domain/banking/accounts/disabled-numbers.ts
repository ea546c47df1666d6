import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { debitedAccount } from '../debits/debited-account.ts'
import { outweighs } from '../debits/return-codes.ts'

/**
 * A bank returned money of these numbers for a reason that holds for whatever is debited from them: one stream for each
 * tenant, environment and fingerprint, since the same numbers may be any number of accounts. Until an operator enables them.
 */
export const BankNumbersDisabled = eventType('BankNumbersDisabled', {
  numbers_id: id(),
  tenant_id: id(),
  environment: environment(),
  fingerprint: debitedAccount.shape.fingerprint,
  return_code: z.string(),
  at: time(),
})
/** An operator says that they may be debited again. */
export const BankNumbersEnabled = eventType('BankNumbersEnabled', {
  numbers_id: id(),
  reason: z.string(),
  at: time(),
})
type Data = EventOf<typeof BankNumbersDisabled>['data']

/** Times are epoch milliseconds. */
export type DisabledNumbersCommand =
  | { readonly type: 'Disable'; readonly data: Omit<Data, 'at'>; readonly at: number }
  | { readonly type: 'Enable'; readonly reason: string; readonly at: number }

/** Null: they may be debited. */
export const disabledNumbers: Decider<
  Data | null,
  DisabledNumbersCommand,
  EventOf<typeof BankNumbersDisabled | typeof BankNumbersEnabled>
> = {
  category: 'disabledNumbers',
  events: [BankNumbersDisabled, BankNumbersEnabled],
  initialState: null,
  evolve: (_state, event) => (event.type === 'BankNumbersDisabled' ? event.data : null),
  decide(command, state) {
    const at = isoTime(command.at)
    if (command.type === 'Disable') {
      const { data } = command
      if (state && !outweighs(data.return_code, state.return_code)) return []
      return [BankNumbersDisabled.of({ ...data, at })]
    }
    return state ? [BankNumbersEnabled.of({ numbers_id: state.numbers_id, reason: command.reason, at })] : []
  },
}
