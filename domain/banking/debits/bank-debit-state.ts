import type { CalendarDate } from '../../kernel/calendar.ts'
import {
  type BankDebitData,
  type BankDebitEvent,
  type Confidence,
  confidence,
  type DebitSource,
} from './bank-debit-events.ts'

const SURENESS = confidence.options

/**
 * A debit of a bank account. It waits for a run of the batch worker, is scheduled until the batch closes, is
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
export type Gate = BankDebitData<'BankDebitGated'>['gate']

/** Statuses in which a debit is yet to be handed over, or decided on. */
export const OPEN_STATUSES: readonly DebitStatus[] = ['pending', 'Scheduled', 'quarantined']

/** Sources whose debits pass the gates: a payer authorized those of a session, and with them its installments. */
export const GATED_SOURCES: readonly DebitSource[] = ['api', 'collection', 'payroll_file']

export interface BankDebit extends BankDebitData<'BankDebitCreated'> {
  readonly status: DebitStatus
  /** Why a gate stopped it; null where none did. */
  readonly reason: string | null
  /** Which stopped it; null where none did, or it was released. */
  readonly gate: Gate | null
  /** Gates from whose quarantine an operator let it out: they ask no more. */
  readonly released_from: readonly Gate[]
  readonly batch_closes_at: string | null
  /** The banking day on which its entry takes effect; null until it is in a batch. */
  readonly entry_date: CalendarDate | null
  readonly is_left_out: boolean
  /** The file for the bank that its entry stands in, by which number returns name it, and its numbers; null: in none. */
  readonly in_file: Pick<BankDebitData<'BankDebitInFile'>, 'file_id' | 'trace_number' | 'fingerprint'> | null
  /** How often it was presented again, and the day of its first entry. */
  readonly representments: number
  readonly first_entry_date: CalendarDate | null
  /** The first report that settled it; null until then. */
  readonly settlement: Omit<BankDebitData<'BankDebitReported'>, 'leg_id'> | null
  /** The credit that its money is; another one takes its place. */
  readonly match: Omit<BankDebitData<'BankDebitMatched'>, 'leg_id'> | null
  /** Transactions of the bank that it was matched with, one after the other: each counts once. */
  readonly matched_with: readonly string[]
  /** Those of them that a surer one took the place of: they are the money of something else. */
  readonly displaced: readonly string[]
  readonly return_code: string | null
  readonly updated_at: string
}

/** A debit that was just created. */
const BEGUN = {
  ...({ status: 'pending', reason: null, gate: null, released_from: [] } as const),
  is_left_out: false,
  batch_closes_at: null,
  entry_date: null,
  first_entry_date: null,
  in_file: null,
  representments: 0,
  settlement: null,
  match: null,
  matched_with: [],
  displaced: [],
  return_code: null,
}

/** What a debit is after an event. */
export function evolve(state: BankDebit | null, event: BankDebitEvent): BankDebit {
  if (event.type === 'BankDebitCreated') {
    const { created_at: updated_at } = event.data
    // a literal of as many fields that begins with a spread takes twenty times as long
    return Object.assign({}, event.data, BEGUN, { updated_at })
  }
  const before = { ...state!, updated_at: event.data.at }
  switch (event.type) {
    case 'BankDebitGated':
      return { ...before, status: event.data.status, reason: event.data.reason, gate: event.data.gate }
    case 'BankDebitReleased': {
      const { gate, status } = before
      const out = gate !== null && status === 'quarantined' ? [gate] : []
      const released_from = [...before.released_from, ...out]
      return { ...before, status: 'pending', reason: null, gate: null, released_from }
    }
    case 'BankDebitRejected':
    case 'BankDebitFailed':
      return { ...before, status: 'failed' }
    case 'BankDebitCancelled':
      return { ...before, status: 'cancelled' }
    case 'BankDebitScheduled': {
      const { batch_closes_at, effective_date: entry_date } = event.data
      const first_entry_date = firstEntryOf(before, entry_date)
      return { ...before, status: 'Scheduled', batch_closes_at, entry_date, first_entry_date }
    }
    case 'BankDebitLeftOut':
      return { ...before, is_left_out: true }
    case 'BankDebitHeldUp':
      return before
    case 'BankDebitInFile': {
      const { leg_id: _id, at: _at, entry_date, ...in_file } = event.data
      const first_entry_date = firstEntryOf(before, entry_date)
      return { ...before, in_file, entry_date, first_entry_date }
    }
    case 'BankDebitSubmitted':
      return { ...before, status: 'submitted' }
    case 'BankDebitReported': {
      if (event.data.settled_on === null) return before
      const { leg_id: _id, ...settlement } = event.data
      const status = before.status === 'submitted' ? 'processed' : before.status
      return { ...before, status, settlement: before.settlement ?? settlement }
    }
    case 'BankDebitProcessed':
      return { ...before, status: 'processed' }
    case 'BankDebitMatched': {
      const { leg_id: _id, ...match } = event.data
      const displaced = before.match === null ? [] : [before.match.bank_transaction_id]
      return {
        ...before,
        match,
        matched_with: [...before.matched_with, match.bank_transaction_id],
        displaced: [...before.displaced, ...displaced],
      }
    }
    case 'BankDebitReturned':
      return { ...before, status: 'returned', return_code: event.data.return_code }
    case 'BankDebitRepresented': {
      const { batch_closes_at, effective_date: entry_date, representment } = event.data
      const nothing = { settlement: null, match: null, return_code: null, in_file: null }
      return {
        ...before,
        ...nothing,
        status: 'Scheduled',
        batch_closes_at,
        entry_date,
        is_left_out: false,
        representments: representment,
      }
    }
  }
}

/** The day of its first entry: that of the file it went with, also when it is presented again, or leaves quarantine then. */
function firstEntryOf(before: BankDebit, entryDate: CalendarDate): CalendarDate | null {
  return before.representments === 0 ? entryDate : before.first_entry_date
}

/** Whether the gates are asked about it. */
export function isGated({ source }: Pick<BankDebit, 'source'>): boolean {
  return GATED_SOURCES.includes(source)
}

/** Whether it waits for its batch, or for the close of it. */
export function isWaiting({ status }: Pick<BankDebit, 'status'>): boolean {
  return status === 'pending' || status === 'Scheduled'
}

/** Whether it waits for its batch, and no operator has let its amount out of quarantine. */
export function mayBeQuarantined({
  status,
  released_from,
}: Pick<BankDebit, 'status' | 'released_from'>): boolean {
  return status === 'pending' && !released_from.includes('anomaly')
}

/** The day on which it takes effect: as was asked for, else that of its entry; null until it is in a batch. */
export function effectiveDateOf({ effective_date, entry_date }: BankDebit): CalendarDate | null {
  return effective_date ?? entry_date
}

/** Whether its money may be there: the bank has it, and it was not returned. */
export function awaitsCredit({ status }: Pick<BankDebit, 'status'>): boolean {
  return status === 'submitted' || status === 'processed'
}

/** Whether a credit that is so surely its money may be it: of equally sure ones the first stays, and none comes back. */
export function takesCredit(debit: BankDebit, bankTransactionId: string, sure: Confidence): boolean {
  if (!awaitsCredit(debit) || debit.displaced.includes(bankTransactionId)) return false
  return debit.match === null || SURENESS.indexOf(sure) < SURENESS.indexOf(debit.match.confidence)
}

/**
 * Whether its batch has closed, so that the bank may have it. A debit in a file is, whatever the reader's clock says.
 * @param now epoch milliseconds.
 */
export function hasClosed({ status, batch_closes_at, in_file }: BankDebit, now: number): boolean {
  return status === 'Scheduled' && (in_file !== null || now >= Date.parse(batch_closes_at!))
}
