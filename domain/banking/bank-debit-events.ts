import { z } from 'zod'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { debitedAccount } from './debited-account.ts'

/** What happens to a bank debit, a leg. Amounts are cents, times ISO 8601, dates those of New York. */
const cents = () => z.int().min(1)
const time = () => z.iso.datetime({ precision: 3 })
const date = () => z.string().regex(/^\d{4}-\d{2}-\d{2}$/)
const leg = { leg_id: id() }

export const settlementType = z.enum(['fbo', 'direct'])
/** How sure it is that a credit is the debit's: by its reference, by its amount alone, or as the oldest of several. */
export const confidence = z.enum(['high', 'medium', 'low'])
export type Confidence = z.output<typeof confidence>

export const BankDebitCreated = eventType({
  name: 'BankDebitCreated',
  schema: z.object({
    ...leg,
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    carrier_id: id(),
    policy_id: id(),
    /** What it is for: a session, or a later instalment of its plan. */
    source: z.enum(['session', 'instalment']),
    payment_session_id: id().nullable(),
    /** Of an instalment, from 1. */
    installment_number: z.int().min(1).nullable(),
    amount_cents: cents(),
    payment_purpose: z.enum([
      'paygo',
      'down_payment',
      'installment',
      'late_payment',
      'extra_payment',
      'overdue_payment',
    ]),
    description: z.string().nullable(),
    account: debitedAccount,
    /** How the carrier settles, as of now; null: nobody tells that the money is there. */
    settlement_type: settlementType.nullable(),
    /** The service raised it by itself: the close of the batch that it goes with; until then it can be cancelled. */
    cancellation_deadline: time().nullable(),
    created_at: time(),
  }),
})
/** A run of the batch worker put it into a batch. */
export const BankDebitScheduled = eventType({
  name: 'BankDebitScheduled',
  schema: z.object({
    ...leg,
    /** When the batch closes. */
    batch_closes_at: time(),
    /** When the entry takes effect: the banking day after the close. */
    effective_date: date(),
    at: time(),
  }),
})
/** Its batch went without it, since its account cannot be read. */
export const BankDebitLeftOut = eventType({
  name: 'BankDebitLeftOut',
  schema: z.object({ ...leg, batch_closes_at: time(), at: time() }),
})
/** Its batch waits for a bank that has been away for long; recorded of the oldest debit of the batch. */
export const BankDebitHeldUp = eventType({
  name: 'BankDebitHeldUp',
  schema: z.object({
    ...leg,
    batch_closes_at: time(),
    /** Since when the bank is away. */
    since: time(),
    at: time(),
  }),
})
/** The bank has the file with the entry. */
export const BankDebitSubmitted = eventType({
  name: 'BankDebitSubmitted',
  schema: z.object({ ...leg, effective_date: date(), at: time() }),
})
/** The processor told how the debit stands. */
export const BankDebitReported = eventType({
  name: 'BankDebitReported',
  schema: z.object({
    ...leg,
    /** The processor's word, as it came; null: it gave none. */
    processor_status: z.string().nullable(),
    transmission_date: date().nullable(),
    effective_date: date().nullable(),
    /** The day from which the money counts as moved; null: the word settles nothing. */
    settled_on: date().nullable(),
    at: time(),
  }),
})
/** Nothing came back in the days that a return takes. */
export const BankDebitProcessed = eventType({
  name: 'BankDebitProcessed',
  schema: z.object({ ...leg, at: time() }),
})
/** A credit in the bank account that receives is this debit's money. */
export const BankDebitMatched = eventType({
  name: 'BankDebitMatched',
  schema: z.object({
    ...leg,
    match_id: id(),
    bank_transaction_id: z.string(),
    bank_date: date(),
    confidence,
    matcher_version: z.string(),
    at: time(),
  }),
})
/** The money went back, or never came. */
export const BankDebitReturned = eventType({
  name: 'BankDebitReturned',
  schema: z.object({ ...leg, return_code: z.string(), at: time() }),
})

export const bankDebitEvents = [
  BankDebitCreated,
  BankDebitScheduled,
  BankDebitLeftOut,
  BankDebitHeldUp,
  BankDebitSubmitted,
  BankDebitReported,
  BankDebitProcessed,
  BankDebitMatched,
  BankDebitReturned,
] as const
export type BankDebitEvent = EventOf<(typeof bankDebitEvents)[number]>
export type BankDebitData<Type extends BankDebitEvent['type']> = Extract<
  BankDebitEvent,
  { type: Type }
>['data']
