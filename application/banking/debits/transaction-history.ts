import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebitEvent, DebitSource } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { Gate } from '../../../domain/banking/debits/bank-debit-state.ts'
import { streamOf } from '../../../domain/kernel/decider.ts'
import type { Application } from '../../commands/application.ts'
import { eventsOf } from '../../commands/events-of.ts'
import { legacyHistoryOf } from '../legacy/legacy-collections.ts'
import type { Transaction, TransactionStatus } from './transactions.ts'

/** What happened to a transaction, by what its stream says. */
export interface HistoryEntry {
  /** ISO 8601. */
  readonly at: string
  /** Null of the first entry, the creation. */
  readonly from_status: TransactionStatus | null
  readonly to_status: TransactionStatus
  readonly reason: string | null
  readonly note: string | null
}

/** The history of a transaction, oldest first. */
export async function historyOf(
  { log, registry }: Pick<Application, 'log' | 'registry'>,
  transaction: Transaction,
): Promise<readonly HistoryEntry[]> {
  if (transaction.kind === 'legacy') return legacyHistoryOf(transaction.record)
  const stream = streamOf(bankDebit, transaction.debit.leg_id)
  const entries: HistoryEntry[] = []
  let state = bankDebit.initialState
  for await (const stored of eventsOf(log, stream)) {
    const event = registry.decode(stored) as unknown as BankDebitEvent
    const before = state
    state = bankDebit.evolve(before, event)
    entries.push({
      at: event.type === 'BankDebitCreated' ? event.data.created_at : event.data.at,
      from_status: before?.status ?? null,
      to_status: state!.status,
      reason: event.type === 'BankDebitGated' ? event.data.reason : null,
      note: noteOf(event),
    })
  }
  return entries
}

const CREATED_BY: Readonly<Record<DebitSource, string>> = {
  session: 'Created by a payment session',
  instalment: 'Created for an installment of a payment session',
  api: 'Created by a call',
  collection: 'Created by a batch collection',
  payroll_file: 'Created for a payroll file',
}
const STOPPED_BY: Readonly<Record<Gate, string>> = {
  billing: 'Stopped by the billing eligibility gate',
  legacy: 'Not collected: the legacy service has collected it',
  cutoff: 'Not collected: its source was accepted before the cutoff',
  account: 'Held until an operator decides: its bank does not list its account any more',
  anomaly: 'Held by the anomaly rail until an operator decides',
}

function noteOf(event: BankDebitEvent): string {
  switch (event.type) {
    case 'BankDebitCreated':
      return CREATED_BY[event.data.source]
    case 'BankDebitGated':
      return STOPPED_BY[event.data.gate]
    case 'BankDebitReleased':
      return withNote('Released by an operator', event.data.note)
    case 'BankDebitRejected':
      return withNote('Rejected by an operator', event.data.note)
    case 'BankDebitCancelled':
      return 'Cancelled before its batch closed'
    case 'BankDebitFailed':
      return event.data.note
    case 'BankDebitScheduled':
      return `In the batch that closes at ${event.data.batch_closes_at}, for ${event.data.effective_date}`
    case 'BankDebitLeftOut':
      return 'Its batch went without it: its account cannot be read'
    case 'BankDebitHeldUp':
      return `Its batch waits for a bank that is away since ${event.data.since}`
    case 'BankDebitInFile':
      return `In a file for the bank, as entry ${event.data.trace_number}, for ${event.data.entry_date}`
    case 'BankDebitSubmitted':
      return 'Acknowledged by the bank'
    case 'BankDebitReported':
      return reported(event.data)
    case 'BankDebitProcessed':
      return 'Not returned in the days that a return takes'
    case 'BankDebitMatched':
      return `Its money is in the bank of ${event.data.bank_date} (confidence ${event.data.confidence})`
    case 'BankDebitReturned':
      return `Returned by the bank (${event.data.return_code})`
    case 'BankDebitRepresented':
      return withNote('Presented again by an operator', event.data.note)
  }
}

function withNote(what: string, note: string | null): string {
  return note === null ? what : `${what}: ${note}`
}

function reported({
  processor_status,
  settled_on,
}: Extract<BankDebitEvent, { type: 'BankDebitReported' }>['data']): string {
  const word = processor_status === null ? '' : `: ${processor_status}`
  return settled_on === null ? `Reported by the processor${word}` : `Settled as of ${settled_on}${word}`
}
