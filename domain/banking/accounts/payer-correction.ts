import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type DebitedAccount, debitedAccount, isSameAccount } from '../debits/debited-account.ts'

/** What a bank says is right of an account that a payer gave for a session: later debits of it carry that. */
export const PayerAccountCorrected = eventType('PayerAccountCorrected', {
  correction_id: id(),
  tenant_id: id(),
  environment: environment(),
  /** Of the account as the payer gave it. */
  fingerprint: debitedAccount.shape.fingerprint,
  /** Of the notification, for example `C01`. */
  change_code: z.string(),
  account: debitedAccount,
  /** The debit to which the bank answered. */
  leg_id: id(),
  at: time(),
})

type Data = EventOf<typeof PayerAccountCorrected>['data']

export interface CorrectPayerAccount {
  readonly type: 'Correct'
  readonly data: Omit<Data, 'at'>
  /** What is corrected; any other is left as it is. */
  readonly of: DebitedAccount
  /** Epoch milliseconds. */
  readonly at: number
}

export const payerCorrection: Decider<
  Data | null,
  CorrectPayerAccount,
  EventOf<typeof PayerAccountCorrected>
> = {
  category: 'payerCorrection',
  events: [PayerAccountCorrected],
  initialState: null,
  evolve: (_state, { data }) => data,
  decide({ data, of, at }, state) {
    if (state && (isSameAccount(state.account, data.account) || !isSameAccount(state.account, of))) return []
    return [PayerAccountCorrected.of({ ...data, at: isoTime(at) })]
  },
}
