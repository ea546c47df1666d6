import { z } from 'zod'
import { type CalendarDate, daysAfter, isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import { type Confidence, confidence } from '../debits/bank-debit-events.ts'

/** Money that came into the account in which a carrier's debits are collected. Amounts are cents, times ISO 8601. */

export const BankCreditReceived = eventType('BankCreditReceived', {
  credit_id: id(),
  tenant_id: id(),
  carrier_id: id(),
  bank_transaction_id: z.string(),
  /** The day on which the bank shows the money. */
  bank_date: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  amount_cents: z.int().min(1),
  reference: z.string().nullable(),
  received_at: time(),
})
/**
 * The credit is taken for a debit's money, when it comes or when that debit is submitted; the debit is told next. Another
 * debit takes the place of one that refused.
 */
export const BankCreditMatched = eventType('BankCreditMatched', {
  credit_id: id(),
  leg_id: id(),
  confidence,
  at: time(),
})
/** The credit is no debit's money; `leg_id` is the one that its reference names all the same, which it does not fit. */
export const BankCreditUnmatched = eventType('BankCreditUnmatched', {
  credit_id: id(),
  leg_id: id().nullable(),
  at: time(),
})

type Received = EventOf<typeof BankCreditReceived>['data']

export type BankCreditEvent = EventOf<
  typeof BankCreditReceived | typeof BankCreditMatched | typeof BankCreditUnmatched
>
/** The debit whose money a credit is, and how sure that is. */
export interface CreditMatch {
  readonly debitId: string
  readonly confidence: Confidence
}
export interface BankCredit extends Received {
  /** Null while, and where, there is none. */
  readonly match: CreditMatch | null
  readonly isDecided: boolean
}

export type BankCreditCommand =
  | { readonly type: 'Receive'; readonly data: Received }
  | {
      readonly type: 'Decide'
      readonly match: CreditMatch | null
      /** The debit that its reference names; null: it names none. */
      readonly named: string | null
      /** The debit that would not have it; null where none was asked. */
      readonly refusedBy: string | null
      /** Epoch milliseconds. */
      readonly at: number
    }

/** Days after a debit takes effect within which its money is looked for by amount. */
const DAYS_AFTER = 14
/** Days before that: a bank may show the money from when it has the file, which is a long weekend earlier at the most. */
const DAYS_BEFORE = 5

export const bankCredit: Decider<BankCredit | null, BankCreditCommand, BankCreditEvent> = {
  category: 'bankCredit',
  events: [BankCreditReceived, BankCreditMatched, BankCreditUnmatched],
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'BankCreditReceived':
        return { ...event.data, match: null, isDecided: false }
      case 'BankCreditMatched': {
        const { leg_id: debitId, confidence } = event.data
        return { ...state!, match: { debitId, confidence }, isDecided: true }
      }
      case 'BankCreditUnmatched':
        return { ...state!, match: null, isDecided: true }
    }
  },
  decide(command, state): readonly BankCreditEvent[] | Rejection {
    if (command.type === 'Receive') {
      // the same transaction of the bank again changes nothing
      return state ? [] : [BankCreditReceived.of(command.data)]
    }
    if (!state) return reject('not_found', 'bank_credit_not_found', 'There is no such bank credit')
    const { match, named, refusedBy } = command
    // a match stands unless its debit refused it; an unmatched credit may belong to a later debit
    const stands = refusedBy === null ? state.match !== null : state.match?.debitId !== refusedBy
    if (state.isDecided && (stands || (state.match === null && match === null))) return []
    const { credit_id } = state
    const at = isoTime(command.at)
    if (match === null) return [BankCreditUnmatched.of({ credit_id, leg_id: named, at })]
    const { debitId: leg_id, confidence } = match
    return [BankCreditMatched.of({ credit_id, leg_id, confidence, at })]
  },
}

/** Both days are included. */
interface Days {
  readonly from: CalendarDate
  readonly to: CalendarDate
}

/** The days of effect of debits whose money a credit of a day may be. */
export function effectiveDatesOf(bankDate: CalendarDate): Days {
  return { from: daysAfter(bankDate, -DAYS_AFTER), to: daysAfter(bankDate, DAYS_BEFORE) }
}

/** The days of credits that may be the money of a debit that takes effect on a day. */
export function bankDatesOf(effectiveDate: CalendarDate): Days {
  return { from: daysAfter(effectiveDate, -DAYS_BEFORE), to: daysAfter(effectiveDate, DAYS_AFTER) }
}
