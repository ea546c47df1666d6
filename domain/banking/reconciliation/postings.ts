import type { BankCreditEvent } from '../credits/bank-credit.ts'
import type { BankDebitData, BankDebitEvent } from '../debits/bank-debit-events.ts'
import type { BankDebit } from '../debits/bank-debit-state.ts'

/**
 * Where the money of debits and credits stands, kept in accounts by double entry: what an event takes from one account it
 * puts into another, so that all accounts together are always 0. Amounts are cents.
 */

/** Accounts of a carrier, in one environment, that operators see. */
export const CARRIER_ACCOUNTS = ['due', 'in_file', 'at_bank', 'received', 'returned', 'unmatched'] as const
export type CarrierAccount = (typeof CARRIER_ACCOUNTS)[number]
/** Their counterparts: what employers were called for, and what came into collecting accounts of its own. */
export const CONTRA_ACCOUNTS = ['employers', 'bank'] as const
export type Account = CarrierAccount | (typeof CONTRA_ACCOUNTS)[number]

/** A part of what an event does to the accounts; the parts of one sum to 0. */
export interface Posting {
  readonly account: Account
  readonly cents: number
}

/**
 * Where the money of a debit stands: to be collected, in a file that the bank has not acknowledged, with the bank, received
 * by the carrier, sent back, or in none of these, since the debit ended before any moved.
 */
export const PLACES = ['due', 'in_file', 'at_bank', 'received', 'returned', 'ended'] as const
export type Place = (typeof PLACES)[number]

/** What postings need to know of a debit. */
export interface BookedDebit {
  readonly amount_cents: number
  readonly settlement_type: 'fbo' | 'direct' | null
  readonly place: Place
}

/** The place of a debit after an event, by what it was before. */
type Moves = {
  readonly [Type in BankDebitEvent['type']]: (data: BankDebitData<Type>, before: BookedDebit) => Place
}

const stays = (_data: unknown, { place }: BookedDebit): Place => place
const ends = (): Place => 'ended'

/** The one table of what each event of a debit does to its money. */
const MOVES: Moves = {
  BankDebitCreated: () => 'due',
  // what is in quarantine is due still: an operator decides
  BankDebitGated: ({ status }) => (status === 'quarantined' ? 'due' : 'ended'),
  // what the legacy service was thought to have collected had ended
  BankDebitReleased: () => 'due',
  BankDebitRejected: ends,
  BankDebitCancelled: ends,
  BankDebitFailed: ends,
  BankDebitScheduled: stays,
  BankDebitLeftOut: stays,
  BankDebitHeldUp: stays,
  BankDebitInFile: (_data, { place }) => (place === 'due' ? 'in_file' : place),
  BankDebitSubmitted: () => 'at_bank',
  // the processor's word is a receipt, but for a carrier whose bank shows the money
  BankDebitReported: ({ settled_on }, { place, settlement_type }) =>
    settled_on !== null && settlement_type !== 'fbo' && place === 'at_bank' ? 'received' : place,
  BankDebitProcessed: stays,
  // another credit that takes the place of the first is no second receipt
  BankDebitMatched: (_data, { place }) => (place === 'at_bank' ? 'received' : place),
  BankDebitReturned: () => 'returned',
  BankDebitRepresented: () => 'due',
}

/** What an event of a debit does: where its money stands then, and the postings that bring it there. */
export interface Booking {
  readonly place: Place
  readonly postings: readonly Posting[]
}

/** @param before null: the event creates it. */
export function bookDebit(event: BankDebitEvent, before: BookedDebit | null): Booking {
  if (event.type === 'BankDebitCreated') {
    return { place: 'due', postings: moved(event.data.amount_cents, 'employers', 'due') }
  }
  const known = before!
  const place = MOVES[event.type](event.data as never, known)
  return { place, postings: moved(known.amount_cents, accountOf(known.place), accountOf(place)) }
}

/** Where the money of a debit stands by how the debit does: what its postings must have come to. */
export function placeOf({ status, in_file, match, settlement, settlement_type }: BankDebit): Place {
  switch (status) {
    case 'Scheduled':
      return in_file === null ? 'due' : 'in_file'
    case 'pending':
    case 'quarantined':
      return 'due'
    case 'submitted':
    case 'processed':
      return match !== null || (settlement_type !== 'fbo' && settlement !== null) ? 'received' : 'at_bank'
    case 'returned':
      return 'returned'
    case 'failed':
    case 'cancelled':
    case 'legacy_collected':
      return 'ended'
  }
}

/** What postings need to know of a credit. */
export interface BookedCredit {
  readonly amount_cents: number
  /** The debit whose money it is; null: none was found. */
  readonly leg_id: string | null
}

/**
 * The postings of an event of a credit: what is no debit's money is unmatched. What is, the debit has posted as received.
 * @param before null: the event is its receipt.
 */
export function bookCredit(event: BankCreditEvent, before: BookedCredit | null): readonly Posting[] {
  switch (event.type) {
    case 'BankCreditReceived':
      return moved(event.data.amount_cents, 'bank', 'unmatched')
    case 'BankCreditMatched':
      return before!.leg_id === null ? moved(before!.amount_cents, 'unmatched', 'bank') : []
    case 'BankCreditUnmatched':
      return before!.leg_id === null ? [] : moved(before!.amount_cents, 'bank', 'unmatched')
  }
}

/** Balances by account; what is not there is 0. */
export type Balances = { readonly [Name in Account]?: number }

export function posted(balances: Balances, postings: readonly Posting[]): Balances {
  const after: { [Name in Account]?: number } = { ...balances }
  for (const { account, cents } of postings) after[account] = (after[account] ?? 0) + cents
  return after
}

function accountOf(place: Place): Account {
  return place === 'ended' ? 'employers' : place
}

function moved(cents: number, from: Account, to: Account): readonly Posting[] {
  if (from === to) return []
  return [
    { account: from, cents: -cents },
    { account: to, cents },
  ]
}
