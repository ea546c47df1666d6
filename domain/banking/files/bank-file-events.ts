import { z } from 'zod'
import { type DataOf, date, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { id } from '../../kernel/ids.ts'
import { debitedAccount } from '../debits/debited-account.ts'

/** What happens to a file for a bank. Amounts are cents, times ISO 8601, dates those of New York. */
const cents = () => z.int().min(0)
const trace = () => z.string().regex(/^\d{15}$/)
const sha256 = () => z.string().regex(/^[0-9a-f]{64}$/)
const sequence = () => z.int().min(1).max(9_999_999)
const file = { file_id: id() }

/** Trace numbers and a file-ID modifier were taken for a file; no other one gets them. */
export const BankFileNumbersTaken = eventType('BankFileNumbersTaken', {
  ...file,
  file_date: date(),
  modifier: z.string().regex(/^[A-Z0-9]$/),
  first_sequence: sequence(),
  count: z.int().min(1),
  at: time(),
})

/** A file is to be written, with these numbers. */
export const BankFileBegun = eventType('BankFileBegun', {
  ...file,
  /** The close of the batch that it carries, and which part of it. */
  batch_closes_at: time(),
  part: z.int().min(0),
  file_date: date(),
  /** `HHMM`. */
  file_time: z.string().regex(/^\d{4}$/),
  modifier: z.string().regex(/^[A-Z0-9]$/),
  first_sequence: sequence(),
  count: z.int().min(1),
  at: time(),
})
const batch = z.object({
  batch_number: z.int().min(1),
  description: z.string(),
  entry_date: date(),
  service_class: z.int(),
  /** Offsetting entries included. */
  entries: z.int().min(1),
  debit_cents: cents(),
  credit_cents: cents(),
})
/** Its content stands, and from here on it may be seen outside. */
export const BankFileRecorded = eventType('BankFileRecorded', {
  ...file,
  /** In the outbox. */
  name: z.string(),
  sha256: sha256(),
  bytes: z.int().min(1),
  first_trace: trace(),
  last_trace: trace(),
  batches: z.array(batch),
  debit_cents: cents(),
  credit_cents: cents(),
  /** The stream of what its entries are for. */
  entries_id: id(),
  /** The originator and the bank that it was written for, which reports name. Absent in early events. */
  originator: z
    .object({ destination_routing: z.string(), origin_id: z.string(), company_id: z.string() })
    .optional(),
  at: time(),
})
/** The file stands in the outbox under its name. */
export const BankFileExposed = eventType('BankFileExposed', { ...file, at: time() })
/** The file transfer has renamed it. */
export const BankFileFetched = eventType('BankFileFetched', { ...file, at: time() })
/** The file is not where it should be: whether the bank has it is unknown. */
export const BankFileUncertain = eventType('BankFileUncertain', { ...file, at: time() })
/** An operator decided that the bank does not have it: it is exposed again. */
export const BankFileExposureRepeated = eventType('BankFileExposureRepeated', {
  ...file,
  note: z.string().nullable(),
  at: time(),
})
/** The file stands in the outbox again, not yet under its name. */
export const BankFileRestaged = eventType('BankFileRestaged', { ...file, at: time() })
/** An operator decided that the bank has it. */
export const BankFileTreatedAsSent = eventType('BankFileTreatedAsSent', {
  ...file,
  note: z.string().nullable(),
  at: time(),
})
/** The bank took, or would not take, the file or some batches of it. */
export const BankFileAnswered = eventType('BankFileAnswered', {
  ...file,
  batch_numbers: z.array(z.int().min(1)),
  outcome: z.enum(['accepted', 'rejected']),
  reason: z.string().nullable(),
  /** The report that told it; null: an operator did. */
  report_id: id().nullable(),
  at: time(),
})
/** At the close of the first day on which its entries take effect it was not fetched, or not answered altogether. */
export const BankFileOverdue = eventType('BankFileOverdue', { ...file, at: time() })
/** The file is fetched and answered after all. */
export const BankFileCaughtUp = eventType('BankFileCaughtUp', { ...file, at: time() })

export const bankFileEvents = [
  BankFileBegun,
  BankFileRecorded,
  BankFileExposed,
  BankFileFetched,
  BankFileUncertain,
  BankFileExposureRepeated,
  BankFileRestaged,
  BankFileTreatedAsSent,
  BankFileAnswered,
  BankFileOverdue,
  BankFileCaughtUp,
] as const
export type BankFileEvent = EventOf<(typeof bankFileEvents)[number]>
export type BankFileData<Type extends BankFileEvent['type']> = DataOf<BankFileEvent, Type>

/** What some entries of a file are for, in their order; trace numbers ascend by one from the first. */
export const BankFileEntriesRecorded = eventType('BankFileEntriesRecorded', {
  entries_id: id(),
  ...file,
  sha256: sha256(),
  batch_number: z.int().min(1),
  kind: z.enum(['debit', 'retry', 'micro-deposit']),
  entry_date: date(),
  first_trace: trace(),
  /** Debits, or orders of micro-deposits; with the amount of each. */
  ids: z.array(id()),
  amounts_cents: z.array(z.int().min(1)),
  /** Of the numbers of each; absent in events from before they were kept. */
  fingerprints: z.array(debitedAccount.shape.fingerprint).optional(),
})
