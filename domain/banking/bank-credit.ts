import { z } from 'zod'
import { type CalendarDate, isoTime } from '../kernel/calendar.ts'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { confidence } from './bank-debit-events.ts'

/** Money that came into the account in which a carrier's debits are collected. Amounts are cents, times ISO 8601. */
const time = () => z.iso.datetime({ precision: 3 })

export const BankCreditReceived = eventType({
  name: 'BankCreditReceived',
  schema: z.object({
    credit_id: id(),
    tenant_id: id(),
    carrier_id: id(),
    bank_transaction_id: z.string(),
    /** The day on which the bank shows the money. */
    bank_date: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
    amount_cents: z.int().min(1),
    reference: z.string().nullable(),
    received_at: time(),
  }),
})
/** The credit is a debit's money. */
export const BankCreditMatched = eventType({
  name: 'BankCreditMatched',
  schema: z.object({ credit_id: id(), leg_id: id(), confidence, at: time() }),
})

type Received = EventOf<typeof BankCreditReceived>['data']
type Matched = EventOf<typeof BankCreditMatched>['data']

export type BankCreditEvent = EventOf<typeof BankCreditReceived | typeof BankCreditMatched>
export interface BankCredit extends Received {
  readonly matched: Omit<Matched, 'credit_id'> | null
}

export type BankCreditCommand =
  | { readonly type: 'Receive'; readonly data: Received }
  | {
      readonly type: 'RecordMatch'
      readonly legId: string
      readonly confidence: z.output<typeof confidence>
      /** Epoch milliseconds. */
      readonly at: number
    }

/** Days after a debit takes effect within which its money is looked for by amount. */
const WINDOW_DAYS = 14
const DAY_MS = 86_400_000

export const bankCredit: Decider<BankCredit | null, BankCreditCommand, BankCreditEvent> = {
  category: 'bankCredit',
  events: [BankCreditReceived, BankCreditMatched],
  initialState: null,
  evolve(state, event) {
    if (event.type === 'BankCreditReceived') return { ...event.data, matched: null }
    const { credit_id: _credit, ...matched } = event.data
    return { ...state!, matched }
  },
  decide(command, state): readonly BankCreditEvent[] | Rejection {
    if (command.type === 'Receive') {
      // the same transaction of the bank again changes nothing
      return state ? [] : [BankCreditReceived.of(command.data)]
    }
    if (!state) return reject('not_found', 'bank_credit_not_found', 'There is no such bank credit')
    if (state.matched) return []
    const { legId: leg_id, confidence, at } = command
    return [BankCreditMatched.of({ credit_id: state.credit_id, leg_id, confidence, at: isoTime(at) })]
  },
}

/** The days of effect of debits whose money a credit of a day may be. */
export function effectiveDatesOf(bankDate: CalendarDate): {
  readonly from: CalendarDate
  readonly to: CalendarDate
} {
  const from = new Date(Date.parse(`${bankDate}T00:00:00Z`) - WINDOW_DAYS * DAY_MS)
  return { from: from.toISOString().slice(0, 10), to: bankDate }
}
