import { type CalendarDate, isoTime } from '../kernel/calendar.ts'
import type { Decider } from '../kernel/decider.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  type BankDebitData,
  type BankDebitEvent,
  BankDebitFailed,
  BankDebitGated,
  BankDebitHeldUp,
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
  type DebitSource,
} from './bank-debit-events.ts'
import { bankingDaysAfter, newYorkDate, slotFor, startOf } from './banking-days.ts'
import { MOST_REPRESENTMENTS, mayBeRepresented, REPRESENTMENT_DAYS } from './nacha/return-codes.ts'

/**
 * A debit of a bank account, a leg. It waits for a run of the batch worker, is scheduled until the batch closes, is
 * submitted once the bank has the file, and is processed when nothing came back. It can be returned at any later time.
 * A gate may stop it before, for good or until an operator decides; until its batch closes it can be cancelled.
 */
export const DEBIT_STATUSES = [
  'pending',
  'Scheduled',
  'submitted',
  'processed',
  'returned',
  'failed',
  'cancelled',
  'quarantined',
  'legacy_collected',
] as const
export type DebitStatus = (typeof DEBIT_STATUSES)[number]

/** Banking days after its entry date that a debit waits for a return. */
const RETURN_DAYS = 2
const DAY_MS = 86_400_000
/** What chose the credit of a match. */
export const MATCHER_VERSION = 'reference-amount-date/1'

/** The processor's words by which a debit counts as settled. Others say nothing. */
const SETTLING_WORDS: ReadonlySet<string> = new Set([
  ...['SB Remit', 'SBRemit', 'ServiceBureauOutboundFileSent', 'SendProcessComplete'],
  ...['FileTransmitted', 'File Transmitted'],
])
/** Sources whose debits pass the gates: a payer authorised those of a session, and with them its instalments. */
export const GATED_SOURCES: readonly DebitSource[] = ['api', 'collection', 'payroll_file']

export interface BankDebit extends BankDebitData<'BankDebitCreated'> {
  readonly status: DebitStatus
  /** Why a gate stopped it; null where none did. */
  readonly reason: string | null
  /** An operator let it out of quarantine. */
  readonly is_released: boolean
  readonly batch_closes_at: string | null
  /** The banking day on which its entry takes effect; null until it is in a batch. */
  readonly entry_date: CalendarDate | null
  readonly is_left_out: boolean
  /** The file for the bank that its entry stands in, and by which number returns name it; null: in none. */
  readonly in_file: Pick<BankDebitData<'BankDebitInFile'>, 'file_id' | 'trace_number'> | null
  /** How often it was presented again, and the day of its first entry. */
  readonly representments: number
  readonly first_entry_date: CalendarDate | null
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

/** Why a debit ends in the moment of its creation: a gate stops it, or it cannot be carried out, with a note for its history. */
export type EndedAtOnce =
  | { readonly stop: Omit<BankDebitData<'BankDebitGated'>, 'leg_id' | 'at'> }
  | { readonly note: string }

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
      readonly stop: Omit<BankDebitData<'BankDebitGated'>, 'leg_id' | 'at'>
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
      readonly at: number
    }
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
  | {
      readonly type: 'PutInFile'
      readonly fileId: string
      readonly traceNumber: string
      readonly entryDate: CalendarDate
      readonly at: number
    }
  | { readonly type: 'Represent'; readonly note: string | null; readonly at: number }

/** A debit that was just created. */
const BEGUN = {
  ...({ status: 'pending', reason: null, is_released: false, is_left_out: false, held_up: [] } as const),
  ...{ batch_closes_at: null, entry_date: null, first_entry_date: null, in_file: null, representments: 0 },
  ...{ settlement: null, match: null, matched_with: [], return_code: null },
}

export const bankDebit: Decider<BankDebit | null, BankDebitCommand, BankDebitEvent> = {
  category: 'bankDebit',
  events: bankDebitEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'BankDebitCreated') {
      const { created_at: updated_at } = event.data
      // a literal of as many fields that begins with a spread takes twenty times as long
      return Object.assign({}, event.data, BEGUN, { updated_at })
    }
    const before = { ...state!, updated_at: event.data.at }
    switch (event.type) {
      case 'BankDebitGated':
        return { ...before, status: event.data.status, reason: event.data.reason }
      case 'BankDebitReleased':
        return { ...before, status: 'pending', reason: null, is_released: true }
      case 'BankDebitRejected':
      case 'BankDebitFailed':
        return { ...before, status: 'failed' }
      case 'BankDebitCancelled':
        return { ...before, status: 'cancelled' }
      case 'BankDebitScheduled': {
        const { batch_closes_at, effective_date: entry_date } = event.data
        return { ...before, status: 'Scheduled', batch_closes_at, entry_date, first_entry_date: entry_date }
      }
      case 'BankDebitLeftOut':
        return { ...before, is_left_out: true }
      case 'BankDebitHeldUp':
        return { ...before, held_up: [...before.held_up, event.data.since] }
      case 'BankDebitInFile': {
        const { file_id, trace_number, entry_date } = event.data
        // the first entry is that of the file it went with
        const first_entry_date = before.representments === 0 ? entry_date : before.first_entry_date
        return { ...before, in_file: { file_id, trace_number }, entry_date, first_entry_date }
      }
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
      case 'BankDebitRepresented': {
        const { batch_closes_at, effective_date: entry_date, representment } = event.data
        const nothing = { settlement: null, match: null, return_code: null, in_file: null }
        return {
          ...{ ...before, ...nothing, status: 'Scheduled', batch_closes_at, entry_date },
          ...{ is_left_out: false, held_up: [], representments: representment },
        }
      }
    }
  },
  decide(command, state): readonly BankDebitEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'debit_exists', 'The debit exists already')
      return [BankDebitCreated.of(command.data), ...endedAtOnce(command)]
    }
    if (!state) return reject('not_found', 'debit_not_found', 'There is no such debit')
    const { leg_id, status } = state
    const at = isoTime(command.at)
    switch (command.type) {
      case 'Gate':
        // another run may have been faster, or an operator
        if (command.stop.status === 'quarantined' && !mayBeQuarantined(state)) return []
        // the bank may have it
        if (state.in_file !== null) return []
        return isWaiting(state) ? [BankDebitGated.of({ leg_id, ...command.stop, at })] : []
      case 'Release':
        if (status !== 'quarantined') return doesNotFit(state, 'released')
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
        return [BankDebitScheduled.of({ leg_id, batch_closes_at: isoTime(closesAt), effective_date, at })]
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
        return [BankDebitSubmitted.of({ leg_id, effective_date: state.entry_date!, at })]
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
        if (!HANDED_OVER.has(status)) return doesNotFit(state, 'returned')
        return [BankDebitReturned.of({ leg_id, return_code, at })]
      }
      case 'PutInFile': {
        const { fileId: file_id, traceNumber: trace_number, entryDate: entry_date } = command
        if (state.in_file?.file_id === file_id) return []
        return [BankDebitInFile.of({ leg_id, file_id, trace_number, entry_date, at })]
      }
      case 'Represent':
        return represent(command, state)
    }
  },
}

/** Whether the gates are asked about it. */
export function isGated({ source }: Pick<BankDebit, 'source'>): boolean {
  return GATED_SOURCES.includes(source)
}

/** Whether it waits for its batch, or for the close of it. */
export function isWaiting({ status }: Pick<BankDebit, 'status'>): boolean {
  return status === 'pending' || status === 'Scheduled'
}

/** Whether it waits for its batch, and no operator has let it out of quarantine. */
export function mayBeQuarantined({
  status,
  is_released,
}: Pick<BankDebit, 'status' | 'is_released'>): boolean {
  return status === 'pending' && !is_released
}

/** The day on which it takes effect: as was asked for, else that of its entry; null until it is in a batch. */
export function effectiveDateOf({ effective_date, entry_date }: BankDebit): CalendarDate | null {
  return effective_date ?? entry_date
}

/** Statuses in which the bank may have it. */
const HANDED_OVER: ReadonlySet<DebitStatus> = new Set(['Scheduled', 'submitted', 'processed'])

/** When a submitted debit counts as processed, in epoch milliseconds, unless it was returned. */
export function processedFrom(effectiveDate: CalendarDate): number {
  return startOf(bankingDaysAfter(effectiveDate, RETURN_DAYS))
}

/** Whether its money may be there: the bank has it, and it was not returned. */
export function awaitsCredit({ status }: Pick<BankDebit, 'status'>): boolean {
  return status === 'submitted' || status === 'processed'
}

type CommandOf<Type extends BankDebitCommand['type']> = Extract<BankDebitCommand, { type: Type }>

function endedAtOnce({ data, ending }: CommandOf<'Create'>): readonly BankDebitEvent[] {
  if (!ending) return []
  const { leg_id, created_at: at } = data
  return 'stop' in ending
    ? [BankDebitGated.of({ leg_id, ...ending.stop, at })]
    : [BankDebitFailed.of({ leg_id, note: ending.note, at })]
}

function cancel(state: BankDebit, now: number): readonly BankDebitEvent[] | Rejection {
  const { leg_id, status } = state
  if (status === 'cancelled') return []
  if (!isWaiting(state) && status !== 'quarantined') return doesNotFit(state, 'cancelled')
  if (hasClosed(state, now)) return batchClosed('cancelled')
  return [BankDebitCancelled.of({ leg_id, at: isoTime(now) })]
}

/** Whether it is in a batch that is over: the bank may have it. */
function hasClosed({ status, batch_closes_at }: BankDebit, now: number): boolean {
  return status === 'Scheduled' && now >= Date.parse(batch_closes_at!)
}

function batchClosed(verb: string): Rejection {
  return reject('conflict', 'batch_closed', `The batch of the debit has closed: it can no longer be ${verb}`)
}

function represent(
  { note, at }: CommandOf<'Represent'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  const { leg_id, status, return_code, representments, first_entry_date } = state
  const refuse = (code: string, why: string) =>
    reject('conflict', code, `The debit cannot be presented again: ${why}`)
  if (status !== 'returned') return doesNotFit(state, 'presented again')
  if (!mayBeRepresented(return_code!)) {
    return refuse('not_representable', `it was returned with ${return_code}, not with R01 or R09`)
  }
  if (representments >= MOST_REPRESENTMENTS) {
    return refuse('representments_used_up', `it was ${MOST_REPRESENTMENTS} times before`)
  }
  const { closesAt, entryDate } = slotFor(null, at)
  const last = Date.parse(`${first_entry_date}T00:00:00Z`) + REPRESENTMENT_DAYS * DAY_MS
  if (Date.parse(`${entryDate}T00:00:00Z`) > last) {
    return refuse('representment_too_late', `its first entry is more than ${REPRESENTMENT_DAYS} days ago`)
  }
  return [
    BankDebitRepresented.of({
      ...{ leg_id, representment: representments + 1, batch_closes_at: isoTime(closesAt) },
      ...{ effective_date: entryDate, settlement_type: state.settlement_type, note, at: isoTime(at) },
    }),
  ]
}

function report(
  { processorStatus, transmissionDate, effectiveDate, at }: CommandOf<'Report'>,
  state: BankDebit,
): readonly BankDebitEvent[] | Rejection {
  if (!awaitsCredit(state)) return doesNotFit(state, 'settled')
  const settles = processorStatus === null || SETTLING_WORDS.has(processorStatus)
  // that it is settled once more is no news
  if (settles && state.settlement !== null) return []
  const settled_on = settles
    ? (transmissionDate ?? effectiveDate ?? state.entry_date ?? newYorkDate(at))
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
