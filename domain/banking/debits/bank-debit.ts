import { type CalendarDate, daysAfter, isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { newYorkDate, startOf } from '../../kernel/new-york.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import type { RejectionCode } from '../../kernel/rejection-codes.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  type BankDebitData,
  type BankDebitEvent,
  BankDebitFailed,
  BankDebitGated,
  BankDebitInFile,
  BankDebitLeftOut,
  BankDebitMatched,
  BankDebitProcessed,
  BankDebitRejected,
  BankDebitReleased,
  BankDebitReported,
  BankDebitRepresented,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
  bankDebitEvents,
  type Confidence,
} from './bank-debit-events.ts'
import {
  awaitsCredit,
  type BankDebit,
  type DebitStatus,
  evolve,
  hasClosed,
  isWaiting,
  mayBeQuarantined,
  takesCredit,
} from './bank-debit-state.ts'
import { bankingDaysAfter, slotFor } from './banking-days.ts'
import { MOST_REPRESENTMENTS, mayBeRepresented, REPRESENTMENT_DAYS } from './return-codes.ts'

/** Banking days after its entry date that a debit waits for a return. */
const RETURN_DAYS = 2
/** What chose the credit of a match. */
export const MATCHER_VERSION = 'reference-amount-date/1'

/** The processor's words by which a debit counts as settled. Others say nothing. */
const SETTLING_WORDS: ReadonlySet<string> = new Set([
  ...['SB Remit', 'SBRemit', 'ServiceBureauOutboundFileSent', 'SendProcessComplete'],
  ...['FileTransmitted', 'File Transmitted'],
])
/** Why a debit ends in the moment of its creation: a gate stops it, or it cannot be carried out, with a note for its history. */
export type EndedAtOnce =
  | { readonly stop: Omit<BankDebitData<'BankDebitGated'>, 'leg_id' | 'at'> }
  | { readonly note: string }

/** The close of the batch that a file carries, ISO 8601: a debit that was presented again since is not in that file. */
type OfBatch = string

/** Times are epoch milliseconds. */
export type BankDebitCommand =
  | {
      readonly type: 'Create'
      readonly data: BankDebitData<'BankDebitCreated'>
      /** Absent: it waits for its batch. */
      readonly ending?: EndedAtOnce
    }
  | {
      readonly type: 'Gate'
      readonly stop: Omit<BankDebitData<'BankDebitGated'>, 'leg_id' | 'run_id' | 'at'>
      readonly runId?: string
      readonly at: number
    }
  | { readonly type: 'Release'; readonly note: string | null; readonly at: number }
  | { readonly type: 'Reject'; readonly note: string | null; readonly at: number }
  | { readonly type: 'Cancel'; readonly at: number }
  | {
      readonly type: 'Fail'
      /** For the history of the debit. */
      readonly note: string
      /** The bank would not take it: that also ends one whose batch has closed. */
      readonly byBank?: boolean
      readonly ofBatch?: OfBatch
      readonly at: number
    }
  | { readonly type: 'Schedule'; readonly runId?: string; readonly at: number }
  | {
      /** Ends it, and has operators told: its account cannot be read. */
      readonly type: 'LeaveOut'
      readonly note: string
      readonly at: number
    }
  | { readonly type: 'Acknowledge'; readonly ofBatch?: OfBatch; readonly at: number }
  | {
      readonly type: 'Report'
      readonly processor_status: string | null
      readonly transmission_date: CalendarDate | null
      readonly effective_date: CalendarDate | null
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
  | {
      readonly type: 'Return'
      readonly return_code: string
      /** Whether its bank had corrected the numbers of its entry; absent: not asked. */
      readonly ofFormerNumbers?: boolean
      readonly ofBatch?: OfBatch
      readonly at: number
    }
  | {
      readonly type: 'PutInFile'
      readonly ofBatch: OfBatch
      readonly fileId: string
      readonly traceNumber: string
      readonly entryDate: CalendarDate
      /** Fingerprint of the entry's numbers; absent: not kept. */
      readonly fingerprint?: string | undefined
      readonly at: number
    }
  | { readonly type: 'Represent'; readonly note: string | null; readonly at: number }

export const bankDebit: Decider<BankDebit | null, BankDebitCommand, BankDebitEvent> = {
  category: 'bankDebit',
  events: bankDebitEvents,
  initialState: null,
  evolve,
  decide(command, state): readonly BankDebitEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'debit_exists', 'The debit exists already')
      return [BankDebitCreated.of(command.data), ...endedAtOnce(command)]
    }
    if (!state) return reject('not_found', 'debit_not_found', 'There is no such bank debit')
    const { leg_id, status } = state
    const at = isoTime(command.at)
    if ('ofBatch' in command && command.ofBatch !== state.batch_closes_at) {
      return command.type === 'Return' ? presentedAgain() : []
    }
    switch (command.type) {
      case 'Gate':
        // another run may have been faster, or an operator
        if (command.stop.gate === 'anomaly' && !mayBeQuarantined(state)) return []
        if (command.stop.gate === 'account' && state.released_from.includes('account')) return []
        // the bank may have it
        if (state.in_file !== null) return []
        return isWaiting(state) ? [BankDebitGated.of({ leg_id, ...command.stop, ...ofRun(command), at })] : []
      case 'Release':
        // what the legacy service was thought to have collected is raised anew: every gate looks at it again
        if (status !== 'quarantined' && status !== 'legacy_collected') return doesNotFit(state, 'released')
        return [BankDebitReleased.of({ leg_id, note: command.note, at })]
      case 'Reject':
        if (status !== 'quarantined') return doesNotFit(state, 'rejected')
        return [BankDebitRejected.of({ leg_id, note: command.note, at })]
      case 'Cancel':
        return cancel(state, command.at)
      case 'Fail':
        if (status === 'failed') return []
        if (!isWaiting(state) && status !== 'quarantined') return doesNotFit(state, 'failed')
        if (!command.byBank && hasClosed(state, command.at)) return batchClosed('failed')
        return [BankDebitFailed.of({ leg_id, note: command.note, at })]
      case 'Schedule': {
        if (status !== 'pending') return []
        const { closesAt, entryDate: effective_date } = slotFor(state.effective_date, command.at)
        const slot = { batch_closes_at: isoTime(closesAt), effective_date }
        return [BankDebitScheduled.of({ leg_id, ...slot, ...ofRun(command), at })]
      }
      case 'LeaveOut':
        return status === 'Scheduled' ? leaveOut(command, state) : []
      case 'Acknowledge':
        if (status === 'submitted') return []
        if (status !== 'Scheduled') return doesNotFit(state, 'acknowledged')
        return [BankDebitSubmitted.of({ leg_id, effective_date: state.entry_date!, at })]
      case 'Report':
        return report(command, state)
      case 'Process':
        // a time of an earlier presentation, or of a file that took it along later
        if (status !== 'submitted' || command.at < processedFrom(state.entry_date!)) return []
        // the bank may have told late that it has it
        return [BankDebitProcessed.of({ leg_id, at: at > state.updated_at ? at : state.updated_at })]
      case 'Match':
        return match(command, state)
      case 'Return': {
        const { return_code, ofFormerNumbers: of_former_numbers } = command
        if (status === 'returned')
          return state.return_code === return_code ? [] : doesNotFit(state, 'returned')
        if (!HANDED_OVER.has(status)) return doesNotFit(state, 'returned')
        const former = of_former_numbers === undefined ? {} : { of_former_numbers }
        return [BankDebitReturned.of({ leg_id, return_code, ...former, at })]
      }
      case 'PutInFile': {
        const { fileId: file_id, traceNumber: trace_number, entryDate: entry_date, fingerprint } = command
        if (state.in_file?.file_id === file_id) return []
        const known = fingerprint === undefined ? {} : { fingerprint }
        return [BankDebitInFile.of({ leg_id, file_id, trace_number, entry_date, ...known, at })]
      }
      case 'Represent':
        return represent(command, state)
    }
  },
}

/** Statuses in which the bank may have it. */
const HANDED_OVER: ReadonlySet<DebitStatus> = new Set(['Scheduled', 'submitted', 'processed'])

/** When a submitted debit counts as processed, in epoch milliseconds, unless it was returned. */
export function processedFrom(effectiveDate: CalendarDate): number {
  return startOf(bankingDaysAfter(effectiveDate, RETURN_DAYS))
}

type CommandOf<Type extends BankDebitCommand['type']> = Extract<BankDebitCommand, { type: Type }>

function endedAtOnce({ data, ending }: CommandOf<'Create'>): readonly BankDebitEvent[] {
  if (!ending) return []
  const { leg_id, created_at: at } = data
  return 'stop' in ending
    ? [BankDebitGated.of({ leg_id, ...ending.stop, at })]
    : [BankDebitFailed.of({ leg_id, note: ending.note, at })]
}

function ofRun({ runId }: { readonly runId?: string }): { readonly run_id?: string } {
  return runId === undefined ? {} : { run_id: runId }
}

function leaveOut({ note, at: now }: CommandOf<'LeaveOut'>, state: BankDebit): readonly BankDebitEvent[] {
  const { leg_id, batch_closes_at, is_left_out } = state
  const at = isoTime(now)
  const leftOut = BankDebitLeftOut.of({ leg_id, batch_closes_at: batch_closes_at!, at })
  // it waits still where it was left out before that ended it
  return [...(is_left_out ? [] : [leftOut]), BankDebitFailed.of({ leg_id, note, at })]
}

function cancel(state: BankDebit, now: number): readonly BankDebitEvent[] | Rejection {
  const { leg_id, status } = state
  if (state.source === 'session') {
    return reject(
      'conflict',
      'debit_of_session',
      'The debit is that of a payment session: it cannot be cancelled',
    )
  }
  if (status === 'cancelled') return []
  if (!isWaiting(state) && status !== 'quarantined') return doesNotFit(state, 'cancelled')
  if (hasClosed(state, now)) return batchClosed('cancelled')
  return [BankDebitCancelled.of({ leg_id, at: isoTime(now) })]
}

function batchClosed(verb: string): Rejection {
  return reject('conflict', 'batch_closed', `The batch of the debit has closed: it can no longer be ${verb}`)
}

function represent(
  { note, at }: CommandOf<'Represent'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  const { leg_id, status, return_code, representments, first_entry_date } = state
  const refuse = (code: RejectionCode, why: string) =>
    reject('conflict', code, `The debit cannot be presented again: ${why}`)
  if (status !== 'returned') return doesNotFit(state, 'presented again')
  if (!mayBeRepresented(return_code!)) {
    return refuse('not_representable', `it was returned with ${return_code}, not with R01 or R09`)
  }
  if (representments >= MOST_REPRESENTMENTS) {
    return refuse('representments_used_up', `it was ${MOST_REPRESENTMENTS} times before`)
  }
  const { closesAt, entryDate } = slotFor(null, at)
  if (entryDate > daysAfter(first_entry_date!, REPRESENTMENT_DAYS)) {
    return refuse('representment_too_late', `its first entry is more than ${REPRESENTMENT_DAYS} days ago`)
  }
  return [
    BankDebitRepresented.of({
      leg_id,
      representment: representments + 1,
      batch_closes_at: isoTime(closesAt),
      effective_date: entryDate,
      settlement_type: state.settlement_type,
      note,
      at: isoTime(at),
    }),
  ]
}

function report(
  { type: _type, at, ...reported }: CommandOf<'Report'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  if (!awaitsCredit(state)) return doesNotFit(state, 'settled')
  const { processor_status, transmission_date, effective_date } = reported
  const settles = processor_status === null || SETTLING_WORDS.has(processor_status)
  // that it is settled once more is no news
  if (settles && state.settlement !== null) return []
  const settled_on = settles ? (transmission_date ?? effective_date ?? newYorkDate(at)) : null
  return [BankDebitReported.of({ leg_id: state.leg_id, ...reported, settled_on, at: isoTime(at) })]
}

function match(
  { matchId, bankTransactionId, bankDate, confidence, at }: CommandOf<'Match'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  const isKnown = state.matched_with.includes(bankTransactionId)
  if (isKnown && !state.displaced.includes(bankTransactionId)) return []
  if (!takesCredit(state, bankTransactionId, confidence)) return doesNotFit(state, 'matched')
  return [
    BankDebitMatched.of({
      leg_id: state.leg_id,
      match_id: matchId,
      bank_transaction_id: bankTransactionId,
      bank_date: bankDate,
      confidence,
      matcher_version: MATCHER_VERSION,
      at: isoTime(at),
    }),
  ]
}

function presentedAgain(): Rejection {
  const why = 'The entry came back before, and the debit was presented again since'
  return reject('conflict', 'debit_presented_again', why)
}

function doesNotFit({ status }: BankDebit, verb: string): Rejection {
  return reject(
    'conflict',
    `debit_${status === 'Scheduled' ? 'scheduled' : status}`,
    `The debit is ${status}: it cannot be ${verb}`,
  )
}
