import { z } from 'zod'
import { type DataOf, date, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { debitedAccount } from './debited-account.ts'

/** What happens to a bank debit. Amounts are cents, times ISO 8601, dates those of New York. */
const cents = () => z.int().min(1)
/** The run of the batch worker that decided it, the same in each attempt at the run. */
const run_id = id().optional()
const ofDebit = { leg_id: id() }

export const settlementType = z.enum(['fbo', 'direct'])
/** How sure it is that a credit is the debit's: by its reference, by its amount alone, or as the oldest of several. */
/** The surest first. */
export const confidence = z.enum(['high', 'medium', 'low'])
export type Confidence = z.output<typeof confidence>

/** Where a debit comes from: a session, a later installment of its plan, a call, a batch collection, a payroll file. */
// `instalment`, as it is stored
export const debitSource = z.enum(['session', 'instalment', 'api', 'collection', 'payroll_file'])
export type DebitSource = z.output<typeof debitSource>
export const PAYMENT_PURPOSES = [
  'paygo',
  'down_payment',
  'installment',
  'late_payment',
  'extra_payment',
  'overdue_payment',
] as const

export const BankDebitCreated = eventType(
  'BankDebitCreated',
  {
    ...ofDebit,
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    source: debitSource,
    payment_session_id: id().nullable(),
    /** Of an installment, from 1. */
    installment_number: z.int().min(1).nullable(),
    /** The batch collection that it is an entry of. */
    collection_id: id().nullable(),
    /** The payroll file whose premium it is, with its check date and the period that it pays for. */
    file_id: id().nullable(),
    check_date: date().nullable(),
    period: z.object({ start: date(), end: date() }).nullable(),
    amount_cents: cents(),
    payment_purpose: z.enum(PAYMENT_PURPOSES),
    description: z.string().nullable(),
    /** The ACH account that is debited; null: the payer gave the account of a session. */
    bank_account_id: id().nullable(),
    account: debitedAccount,
    /** The day that the caller asked for; null: as soon as it can be. */
    effective_date: date().nullable(),
    metadata: z.record(z.string(), z.string()),
    /** How the carrier settles, as of now; null: no news of the money is expected. */
    settlement_type: settlementType.nullable(),
    /**
     * The service raised it by itself and partners are told so: the close of the batch that it goes with; until then it can
     * be cancelled.
     */
    cancellation_deadline: time().nullable(),
    /** When its source was first accepted: the call itself, or the payroll file. */
    ingested_at: time(),
    created_at: time(),
  },
  // the first version knew sessions and their installments only
  (raw) => ({
    collection_id: null,
    file_id: null,
    check_date: null,
    period: null,
    bank_account_id: null,
    effective_date: null,
    metadata: {},
    ...(raw as object),
    ingested_at: (raw as { created_at: string }).created_at,
  }),
)
/** A gate stopped it: it is not collected, or an operator has to decide. */
export const BankDebitGated = eventType('BankDebitGated', {
  ...ofDebit,
  gate: z.enum(['billing', 'legacy', 'cutoff', 'account', 'anomaly']),
  status: z.enum(['failed', 'legacy_collected', 'cancelled', 'quarantined']),
  reason: z.string(),
  run_id,
  at: time(),
})
/**
 * An operator let it out of quarantine: the rail that put it there asks no more. Or raised anew what the legacy service was
 * thought to have collected.
 */
export const BankDebitReleased = eventType('BankDebitReleased', {
  ...ofDebit,
  note: z.string().nullable(),
  at: time(),
})
/** An operator ended it in quarantine. */
export const BankDebitRejected = eventType('BankDebitRejected', {
  ...ofDebit,
  note: z.string().nullable(),
  at: time(),
})
/** The debit was called off before its batch closed. */
export const BankDebitCancelled = eventType('BankDebitCancelled', { ...ofDebit, at: time() })
/** The debit ended and no money moved: its account is disabled, cannot be read, or the bank would not take the entry. */
export const BankDebitFailed = eventType('BankDebitFailed', { ...ofDebit, note: z.string(), at: time() })
/** A run of the batch worker put it into a batch. */
export const BankDebitScheduled = eventType('BankDebitScheduled', {
  ...ofDebit,
  /** When the batch closes. */
  batch_closes_at: time(),
  /** When the entry takes effect: a banking day after the close. */
  effective_date: date(),
  run_id,
  at: time(),
})
/** Its batch went without it, since its account cannot be read: it has failed. */
export const BankDebitLeftOut = eventType('BankDebitLeftOut', {
  ...ofDebit,
  batch_closes_at: time(),
  at: time(),
})
/** Its batch waits for a bank that has been away for long; recorded of the oldest debit of the batch. */
export const BankDebitHeldUp = eventType('BankDebitHeldUp', {
  ...ofDebit,
  batch_closes_at: time(),
  /** Since when the bank is away. */
  since: time(),
  at: time(),
})
/** Its entry stands in a file for the bank, by whose trace number returns name it. */
export const BankDebitInFile = eventType('BankDebitInFile', {
  ...ofDebit,
  file_id: id(),
  trace_number: z.string().regex(/^\d{15}$/),
  /** When the entry takes effect, as the file says; later than was planned where the file was late. */
  entry_date: date(),
  /** Of the numbers that the entry carries; absent in events from before it was kept. */
  fingerprint: debitedAccount.shape.fingerprint.optional(),
  at: time(),
})
/** The bank has the file with the entry. */
export const BankDebitSubmitted = eventType('BankDebitSubmitted', {
  ...ofDebit,
  effective_date: date(),
  at: time(),
})
/** The processor told how the debit stands. */
export const BankDebitReported = eventType('BankDebitReported', {
  ...ofDebit,
  /** The processor's word, as it came; null: it gave none. */
  processor_status: z.string().nullable(),
  transmission_date: date().nullable(),
  effective_date: date().nullable(),
  /** The day from which the money counts as moved; null: the word settles nothing. */
  settled_on: date().nullable(),
  at: time(),
})
/** Nothing came back in the days that a return takes. */
export const BankDebitProcessed = eventType('BankDebitProcessed', { ...ofDebit, at: time() })
/** A credit in the bank account that receives is this debit's money. */
export const BankDebitMatched = eventType('BankDebitMatched', {
  ...ofDebit,
  match_id: id(),
  bank_transaction_id: z.string(),
  bank_date: date(),
  confidence,
  matcher_version: z.string(),
  at: time(),
})
/** The money went back, or never came. */
export const BankDebitReturned = eventType('BankDebitReturned', {
  ...ofDebit,
  return_code: z.string(),
  /** Its bank had corrected the numbers of its entry by then; absent: its code disables no account, or it was not known. */
  of_former_numbers: z.boolean().optional(),
  at: time(),
})
/** An operator presents it again: it goes with the batch that closes next. */
export const BankDebitRepresented = eventType('BankDebitRepresented', {
  ...ofDebit,
  /** Which time it is, from 1. */
  representment: z.int().min(1),
  batch_closes_at: time(),
  /** When the entry takes effect: a banking day after the close. */
  effective_date: date(),
  /** How the carrier settles, as when the debit was created. */
  settlement_type: settlementType.nullable(),
  note: z.string().nullable(),
  at: time(),
})

export const bankDebitEvents = [
  BankDebitCreated,
  BankDebitGated,
  BankDebitReleased,
  BankDebitRejected,
  BankDebitCancelled,
  BankDebitFailed,
  BankDebitScheduled,
  BankDebitLeftOut,
  BankDebitHeldUp,
  BankDebitInFile,
  BankDebitSubmitted,
  BankDebitReported,
  BankDebitProcessed,
  BankDebitMatched,
  BankDebitReturned,
  BankDebitRepresented,
] as const
export type BankDebitEvent = EventOf<(typeof bankDebitEvents)[number]>
export type BankDebitData<Type extends BankDebitEvent['type']> = DataOf<BankDebitEvent, Type>
