import type { CalendarDate } from '../../../kernel/calendar.ts'
import { isWritable } from './characters.ts'

/**
 * The records of a NACHA file, 94 characters each. Source: Nacha Operating Rules, Appendix Three, "ACH Record Format
 * Specifications". Amounts are cents.
 */
export const RECORD_LENGTH = 94
/** Records in a block; a file is filled up to whole blocks. */
export const BLOCK = 10
export const FILLER = '9'.repeat(RECORD_LENGTH)
/** What an entry can hold at the most, and what a total of a batch or a file can. */
export const MAX_ENTRY_CENTS = 9_999_999_999
export const MAX_TOTAL_CENTS = 999_999_999_999
/** Entries that a batch can count. */
export const MAX_BATCH_ENTRIES = 999_999
/** Trace numbers end in so many digits, the first of which is 1. */
export const MAX_SEQUENCE = 9_999_999
export const HASH_MODULUS = 10_000_000_000n

/** Transaction codes, and whether money comes or goes: what is written, and what comes back of it. */
export const TRANSACTION_CODES = {
  checking: { credit: 22, debit: 27 },
  savings: { credit: 32, debit: 37 },
} as const
export type AccountType = keyof typeof TRANSACTION_CODES

/** Debits only, credits only, both. */
export const SERVICE_CLASSES = { mixed: 200, credits: 220, debits: 225 } as const
export type ServiceClass = (typeof SERVICE_CLASSES)[keyof typeof SERVICE_CLASSES]

/** What sums up a batch, or a file. */
export interface Totals {
  /** Entries and addenda. */
  readonly entries: number
  /** Of the routing numbers without their check digits; {@link shownHash} is written. */
  readonly hash: bigint
  readonly debitCents: number
  readonly creditCents: number
}

export interface FileHeader {
  /** 9 digits. */
  readonly destinationRouting: string
  readonly destinationName: string
  /** 9 or 10 characters. */
  readonly originId: string
  readonly originName: string
  readonly date: CalendarDate
  /** `HHMM`. */
  readonly time: string
  /** A to Z, 0 to 9. */
  readonly modifier: string
}

export interface BatchHeader {
  readonly number: number
  readonly serviceClass: ServiceClass
  readonly companyName: string
  readonly companyId: string
  readonly entryClass: string
  readonly description: string
  /** When the entries take effect. */
  readonly entryDate: CalendarDate
  /** The first 8 digits of the originating bank's routing number. */
  readonly odfi: string
}

export interface EntryDetail {
  readonly transactionCode: number
  /** 9 digits. */
  readonly routing: string
  readonly account: string
  readonly amountCents: number
  /** What of ours it is. */
  readonly identification: string
  readonly name: string
}

export function fileHeader(header: FileHeader): string {
  return record(
    '101',
    right(header.destinationRouting, 10),
    right(header.originId, 10),
    shortDate(header.date),
    digits(Number(header.time), 4),
    text(header.modifier, 1),
    '094101',
    text(header.destinationName, 23),
    text(header.originName, 23),
    text('', 8),
  )
}

export function batchHeader(header: BatchHeader): string {
  return record(
    '5',
    digits(header.serviceClass, 3),
    text(header.companyName, 16),
    text('', 20),
    text(header.companyId, 10),
    text(header.entryClass, 3),
    text(header.description, 10),
    text('', 6),
    shortDate(header.entryDate),
    // the operator writes the day of settlement
    '   1',
    text(header.odfi, 8),
    digits(header.number, 7),
  )
}

/** An entry up to its trace number, which {@link traced} adds. */
export function untracedEntry(entry: EntryDetail): string {
  return [
    '6',
    digits(entry.transactionCode, 2),
    text(entry.routing, 9),
    text(entry.account, 17),
    digits(entry.amountCents, 10),
    text(entry.identification, 15),
    text(entry.name, 22),
    '  0',
  ].join('')
}

/** An entry with its trace number. */
export function traced(untraced: string, odfi: string, sequence: number): string {
  return record(untraced, traceNumber(odfi, sequence))
}

/** 15 digits. @throws RangeError beyond {@link MAX_SEQUENCE}. */
export function traceNumber(odfi: string, sequence: number): string {
  return `${text(odfi, 8)}${digits(sequence, 7)}`
}

export function batchControl({ serviceClass, companyId, odfi, number }: BatchHeader, totals: Totals): string {
  return record(
    '8',
    digits(serviceClass, 3),
    digits(totals.entries, 6),
    shownHash(totals),
    digits(totals.debitCents, 12),
    digits(totals.creditCents, 12),
    text(companyId, 10),
    text('', 25),
    text(odfi, 8),
    digits(number, 7),
  )
}

export function fileControl(batches: number, records: number, totals: Totals): string {
  return record(
    '9',
    digits(batches, 6),
    digits(Math.ceil(records / BLOCK), 6),
    digits(totals.entries, 8),
    shownHash(totals),
    digits(totals.debitCents, 12),
    digits(totals.creditCents, 12),
    text('', 39),
  )
}

export const NO_TOTALS: Totals = { entries: 0, hash: 0n, debitCents: 0, creditCents: 0 }

/** Totals together. */
export function plus(a: Totals, b: Totals): Totals {
  return {
    entries: a.entries + b.entries,
    hash: a.hash + b.hash,
    debitCents: a.debitCents + b.debitCents,
    creditCents: a.creditCents + b.creditCents,
  }
}

/** What an entry adds. */
export function totalsOf({ transactionCode, routing, amountCents }: EntryDetail): Totals {
  const isDebit = isDebitCode(transactionCode)
  return {
    entries: 1,
    hash: BigInt(routing.slice(0, 8)),
    debitCents: isDebit ? amountCents : 0,
    creditCents: isDebit ? 0 : amountCents,
  }
}

/** Whether a transaction code takes money: 26 to 29, 36 to 39; 21 to 24 and 31 to 34 bring it. */
export function isDebitCode(code: number): boolean {
  return code % 10 >= 5
}

/** The hash as it is written: its last ten digits. */
export function shownHash({ hash }: Pick<Totals, 'hash'>): string {
  return String(hash % HASH_MODULUS).padStart(10, '0')
}

function record(...fields: readonly string[]): string {
  const line = fields.join('')
  if (line.length !== RECORD_LENGTH) throw new RangeError(`A record has ${line.length} characters`)
  return line
}

/** @throws RangeError for what does not fit: a cut number is another number. */
function digits(value: number, width: number): string {
  const written = String(value)
  if (!Number.isSafeInteger(value) || value < 0 || written.length > width) {
    throw new RangeError(`A field of ${width} digits cannot hold ${value}`)
  }
  return written.padStart(width, '0')
}

/** @throws RangeError for what does not fit; the message does not tell it. */
function text(value: string, width: number): string {
  if (value.length > width || !isWritable(value)) {
    throw new RangeError(`A field of ${width} characters cannot hold a text of ${value.length}`)
  }
  return value.padEnd(width)
}

function right(value: string, width: number): string {
  return text(value, width).trimEnd().padStart(width)
}

/** `YYMMDD`. */
function shortDate(date: CalendarDate): string {
  return date.replaceAll('-', '').slice(2)
}
