import { type CalendarDate, isoTime } from '../kernel/calendar.ts'
import type { Decider } from '../kernel/decider.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import {
  BankDebitCreated,
  type BankDebitData,
  type BankDebitEvent,
  BankDebitHeldUp,
  BankDebitLeftOut,
  BankDebitMatched,
  BankDebitProcessed,
  BankDebitReported,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
  bankDebitEvents,
  type Confidence,
} from './bank-debit-events.ts'
import { bankingDaysAfter, entryDateOf, newYorkDate, nextClose, startOf } from './banking-days.ts'

/**
 * A debit of a bank account, a leg. It waits for a run of the batch worker, is scheduled until the batch closes, is
 * submitted once the bank has the file, and is processed when nothing came back. It can be returned at any later time.
 */
export const DEBIT_STATUSES = ['pending', 'Scheduled', 'submitted', 'processed', 'returned'] as const
export type DebitStatus = (typeof DEBIT_STATUSES)[number]

/** Banking days after its entry date that a debit waits for a return. */
const RETURN_DAYS = 2
/** What chose the credit of a match. */
export const MATCHER_VERSION = 'reference-amount-date/1'

/** The processor's words by which a debit counts as settled. Others say nothing. */
const SETTLING_WORDS: ReadonlySet<string> = new Set([
  ...['SB Remit', 'SBRemit', 'ServiceBureauOutboundFileSent', 'SendProcessComplete'],
  ...['FileTransmitted', 'File Transmitted'],
])
export interface BankDebit extends BankDebitData<'BankDebitCreated'> {
  readonly status: DebitStatus
  readonly batch_closes_at: string | null
  /** When the entry takes effect; null until it is in a batch. */
  readonly effective_date: CalendarDate | null
  readonly is_left_out: boolean
  /** Since when the bank was away, each time that its batch was held up. */
  readonly held_up: readonly string[]
  /** The first report that settled it; null until then. */
  readonly settlement: Omit<BankDebitData<'BankDebitReported'>, 'leg_id'> | null
  /** The credit that its money is; another one takes its place. */
  readonly match: Omit<BankDebitData<'BankDebitMatched'>, 'leg_id'> | null
  /** Transactions of the bank that it was matched with, one after the other: each counts once. */
  readonly matched_with: readonly string[]
  readonly return_code: string | null
  readonly updated_at: string
}

/** Times are epoch milliseconds. */
export type BankDebitCommand =
  | { readonly type: 'Create'; readonly data: BankDebitData<'BankDebitCreated'> }
  | { readonly type: 'Schedule'; readonly at: number }
  | { readonly type: 'LeaveOut'; readonly at: number }
  | { readonly type: 'RecordHeldUp'; readonly since: number; readonly at: number }
  | { readonly type: 'Acknowledge'; readonly at: number }
  | {
      readonly type: 'Report'
      readonly processorStatus: string | null
      readonly transmissionDate: CalendarDate | null
      readonly effectiveDate: CalendarDate | null
      readonly at: number
    }
  | { readonly type: 'Process'; readonly at: number }
  | {
      readonly type: 'Match'
      readonly matchId: string
      readonly bankTransactionId: string
      readonly bankDate: CalendarDate
      readonly confidence: Confidence
      readonly at: number
    }
  | { readonly type: 'Return'; readonly returnCode: string; readonly at: number }

export const bankDebit: Decider<BankDebit | null, BankDebitCommand, BankDebitEvent> = {
  category: 'bankDebit',
  events: bankDebitEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'BankDebitCreated') {
      const nothing = {
        settlement: null,
        match: null,
        matched_with: [],
        return_code: null,
        is_left_out: false,
      }
      const begun = { status: 'pending', batch_closes_at: null, effective_date: null } as const
      return { ...event.data, ...begun, ...nothing, held_up: [], updated_at: event.data.created_at }
    }
    const before = { ...state!, updated_at: event.data.at }
    switch (event.type) {
      case 'BankDebitScheduled': {
        const { batch_closes_at, effective_date } = event.data
        return { ...before, status: 'Scheduled', batch_closes_at, effective_date }
      }
      case 'BankDebitLeftOut':
        return { ...before, is_left_out: true }
      case 'BankDebitHeldUp':
        return { ...before, held_up: [...before.held_up, event.data.since] }
      case 'BankDebitSubmitted':
        return { ...before, status: 'submitted' }
      case 'BankDebitReported': {
        if (event.data.settled_on === null) return before
        const { leg_id: _leg, ...settlement } = event.data
        const status = before.status === 'submitted' ? 'processed' : before.status
        return { ...before, status, settlement: before.settlement ?? settlement }
      }
      case 'BankDebitProcessed':
        return { ...before, status: 'processed' }
      case 'BankDebitMatched': {
        const { leg_id: _leg, ...match } = event.data
        return { ...before, match, matched_with: [...before.matched_with, match.bank_transaction_id] }
      }
      case 'BankDebitReturned':
        return { ...before, status: 'returned', return_code: event.data.return_code }
    }
  },
  decide(command, state): readonly BankDebitEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'debit_exists', 'The debit exists already')
      return [BankDebitCreated.of(command.data)]
    }
    if (!state) return reject('not_found', 'debit_not_found', 'There is no such debit')
    const { leg_id, status } = state
    const at = isoTime(command.at)
    switch (command.type) {
      case 'Schedule': {
        if (status !== 'pending') return []
        const closes = nextClose(command.at)
        const effective_date = entryDateOf(closes)
        return [BankDebitScheduled.of({ leg_id, batch_closes_at: isoTime(closes), effective_date, at })]
      }
      case 'LeaveOut':
        if (status !== 'Scheduled' || state.is_left_out) return []
        return [BankDebitLeftOut.of({ leg_id, batch_closes_at: state.batch_closes_at!, at })]
      case 'RecordHeldUp': {
        const since = isoTime(command.since)
        if (status !== 'Scheduled' || state.held_up.includes(since)) return []
        return [BankDebitHeldUp.of({ leg_id, batch_closes_at: state.batch_closes_at!, since, at })]
      }
      case 'Acknowledge':
        if (status === 'submitted') return []
        if (status !== 'Scheduled') return doesNotFit(state, 'acknowledged')
        return [BankDebitSubmitted.of({ leg_id, effective_date: state.effective_date!, at })]
      case 'Report':
        return report(command, state)
      case 'Process':
        return status === 'submitted' ? [BankDebitProcessed.of({ leg_id, at })] : []
      case 'Match':
        return match(command, state)
      case 'Return': {
        const { returnCode: return_code } = command
        if (status === 'returned')
          return state.return_code === return_code ? [] : doesNotFit(state, 'returned')
        if (status === 'pending') return doesNotFit(state, 'returned')
        return [BankDebitReturned.of({ leg_id, return_code, at })]
      }
    }
  },
}

/** When a submitted debit counts as processed, in epoch milliseconds, unless it was returned. */
export function processedFrom(effectiveDate: CalendarDate): number {
  return startOf(bankingDaysAfter(effectiveDate, RETURN_DAYS))
}

/** Whether its money may be there: the bank has it, and it was not returned. */
export function awaitsCredit({ status }: Pick<BankDebit, 'status'>): boolean {
  return status === 'submitted' || status === 'processed'
}

type CommandOf<Type extends BankDebitCommand['type']> = Extract<BankDebitCommand, { type: Type }>

function report(
  { processorStatus, transmissionDate, effectiveDate, at }: CommandOf<'Report'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  if (!awaitsCredit(state)) return doesNotFit(state, 'settled')
  const settles = processorStatus === null || SETTLING_WORDS.has(processorStatus)
  // that it is settled once more is no news
  if (settles && state.settlement !== null) return []
  const settled_on = settles
    ? (transmissionDate ?? effectiveDate ?? state.effective_date ?? newYorkDate(at))
    : null
  return [
    BankDebitReported.of({
      ...{ leg_id: state.leg_id, processor_status: processorStatus },
      ...{ transmission_date: transmissionDate, effective_date: effectiveDate, settled_on },
      at: isoTime(at),
    }),
  ]
}

function match(
  { matchId, bankTransactionId, bankDate, confidence, at }: CommandOf<'Match'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  if (state.matched_with.includes(bankTransactionId)) return []
  if (!awaitsCredit(state)) return doesNotFit(state, 'matched')
  // only what names the debit may take the place of another credit
  if (state.match !== null && confidence !== 'high') return doesNotFit(state, 'matched')
  return [
    BankDebitMatched.of({
      ...{ leg_id: state.leg_id, match_id: matchId, bank_transaction_id: bankTransactionId },
      ...{ bank_date: bankDate, confidence, matcher_version: MATCHER_VERSION, at: isoTime(at) },
    }),
  ]
}

function doesNotFit({ status }: BankDebit, verb: string): Rejection {
  return reject('conflict', `debit_${status}`, `The debit is ${status}: it cannot be ${verb}`)
}
