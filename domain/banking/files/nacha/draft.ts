import type { CalendarDate } from '../../../kernel/calendar.ts'
import {
  type AccountType,
  BLOCK,
  batchControl,
  batchHeader,
  type EntryDetail,
  FILLER,
  type FileHeader,
  fileControl,
  fileHeader,
  MAX_BATCH_ENTRIES,
  MAX_ENTRY_CENTS,
  MAX_SEQUENCE,
  MAX_TOTAL_CENTS,
  NO_TOTALS,
  plus,
  SERVICE_CLASSES,
  type ServiceClass,
  type Totals,
  TRANSACTION_CODES,
  totalsOf,
  traced,
  untracedEntry,
} from './records.ts'

/** The originator of files, as agreed with the bank. */
export interface Originator
  extends Pick<FileHeader, 'destinationRouting' | 'destinationName' | 'originId' | 'originName'> {
  readonly companyId: string
  readonly companyName: string
  /** The originating bank: the first 8 digits of its routing number. */
  readonly odfi: string
  /** Where the offsetting entries of balanced files go; null: files are not balanced. */
  readonly offset: {
    readonly routing: string
    readonly account: string
    readonly accountType: AccountType
  } | null
}

/** Companies are debited and paid: corporate credit or debit. */
export const ENTRY_CLASS = 'CCD'
/** What stands on the receiver's statement, by what an entry is. The words in capitals are Nacha's. */
export const DESCRIPTIONS = { debit: 'PREMIUM', retry: 'RETRY PYMT', 'micro-deposit': 'ACCTVERIFY' } as const
export type EntryKind = keyof typeof DESCRIPTIONS

/** What is taken from an account, or for a micro-deposit brought to it. */
export interface DraftEntry {
  readonly kind: EntryKind
  /** Our id of what it is for. */
  readonly id: string
  readonly amountCents: number
  readonly entryDate: CalendarDate
  readonly routing: string
  readonly account: string
  readonly accountType: AccountType
  /** What routing and account number are known by. */
  readonly fingerprint: string
  /** In the characters of a file, 22 at the most. */
  readonly name: string
}

/** How much goes into one file. Cents; entries with the offsetting ones. */
export interface Limits {
  readonly totalCents: number
  readonly batchEntries: number
  readonly fileEntries: number
}
export const LIMITS: Limits = {
  totalCents: MAX_TOTAL_CENTS,
  batchEntries: MAX_BATCH_ENTRIES,
  // some 10 MB, written well within the time of an attempt; a day has 36 files
  fileEntries: 100_000,
}

/** Characters of the field that says what of ours an entry is. */
const IDENTIFICATION = 15

interface BatchDraft {
  readonly kind: EntryKind
  readonly entryDate: CalendarDate
  readonly lines: string[]
  readonly ids: string[]
  readonly amounts: number[]
  readonly fingerprints: string[]
  totals: Totals
}

/** A file that entries are put into. */
export interface FileDraft {
  readonly originator: Originator
  readonly limits: Limits
  readonly batches: Map<string, BatchDraft>
  totals: Totals
}

export function newDraft(originator: Originator, limits = LIMITS): FileDraft {
  return { originator, limits, batches: new Map(), totals: NO_TOTALS }
}

/** How many entries stand in it. */
export function entriesOf({ batches }: FileDraft): number {
  return [...batches.values()].reduce((sum, { ids }) => sum + ids.length, 0)
}

/**
 * Puts entries of one kind and date into a file, into the batch of their description and date, all of them or none: no other file holds some of them.
 * @returns false where the file is full: the entries belong into the next one.
 * @throws RangeError for what no file can hold.
 */
export function addEntries(draft: FileDraft, entries: readonly [DraftEntry, ...DraftEntry[]]): boolean {
  const [{ kind, entryDate }] = entries
  const details = entries.map(detailOf)
  const lines = details.map(untracedEntry)
  const added = details.map(totalsOf).reduce(plus)
  const key = `${entryDate} ${DESCRIPTIONS[kind]}`
  const batch = draft.batches.get(key) ?? {
    kind,
    entryDate,
    lines: [],
    ids: [],
    amounts: [],
    fingerprints: [],
    totals: NO_TOTALS,
  }
  const inBatch = plus(batch.totals, added)
  const inFile = plus(draft.totals, added)
  if (!fits(draft, inBatch, inFile)) return false
  batch.lines.push(...lines)
  batch.ids.push(...entries.map(({ id }) => id))
  batch.amounts.push(...entries.map(({ amountCents }) => amountCents))
  batch.fingerprints.push(...entries.map(({ fingerprint }) => fingerprint))
  batch.totals = inBatch
  draft.totals = inFile
  draft.batches.set(key, batch)
  return true
}

/** A balanced file has on each side what it has on both. */
function fits({ originator, limits }: FileDraft, batch: Totals, file: Totals): boolean {
  const balanced = originator.offset !== null
  const most = ({ debitCents, creditCents }: Totals) =>
    balanced ? debitCents + creditCents : Math.max(debitCents, creditCents)
  const withOffsets = ({ entries, debitCents, creditCents }: Totals) =>
    balanced ? entries + offsetEntries(debitCents) + offsetEntries(creditCents) : entries
  return (
    most(file) <= limits.totalCents &&
    withOffsets(batch) <= limits.batchEntries &&
    // each batch may end with an entry that is not full
    withOffsets(file) + 2 * Object.keys(DESCRIPTIONS).length <= limits.fileEntries
  )
}

const offsetEntries = (cents: number) => Math.ceil(cents / MAX_ENTRY_CENTS)

function detailOf({ kind, id, amountCents, routing, account, accountType, name }: DraftEntry): EntryDetail {
  const codes = TRANSACTION_CODES[accountType]
  return {
    transactionCode: kind === 'micro-deposit' ? codes.credit : codes.debit,
    routing,
    account,
    amountCents,
    name,
    identification: id.slice(0, IDENTIFICATION),
  }
}

/** A batch of a finished file. */
export interface FinishedBatch {
  readonly number: number
  readonly kind: EntryKind
  readonly description: string
  readonly entryDate: CalendarDate
  readonly serviceClass: ServiceClass
  readonly totals: Totals
  /** The sequence of its first entry; the others follow without gaps. */
  readonly firstSequence: number
  /** What its entries are for, in their order, with their amounts and what their numbers are known by; without the offsetting ones, which come last. */
  readonly ids: readonly string[]
  readonly amounts: readonly number[]
  readonly fingerprints: readonly string[]
}

export interface FinishedFile {
  readonly batches: readonly FinishedBatch[]
  readonly totals: Totals
  readonly firstSequence: number
  readonly lastSequence: number
  /** Its records in order, without line breaks. */
  readonly lines: () => Generator<string>
}

/** How many trace numbers a file takes. */
export function sequencesOf(draft: FileDraft): number {
  return [...draft.batches.values()].reduce(
    (sum, batch) => sum + batch.lines.length + offsetsOf(draft.originator, batch.totals).length,
    0,
  )
}

/**
 * Finishes a file: batches by date and description, trace numbers that ascend through all of it.
 * @param firstSequence of {@link sequencesOf} trace numbers that no other file has.
 */
export function finishFile(
  { originator, batches }: FileDraft,
  { date, time, modifier }: Pick<FileHeader, 'date' | 'time' | 'modifier'>,
  firstSequence: number,
): FinishedFile {
  const { companyName, companyId, odfi } = originator
  let sequence = firstSequence
  let totals = NO_TOTALS
  let records = 2
  const finished = [...batches]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, draft], index) => {
      const offsets = offsetsOf(originator, draft.totals)
      const ofBatch = offsets.map(totalsOf).reduce(plus, draft.totals)
      const { kind, entryDate, ids, amounts, fingerprints } = draft
      const batch: FinishedBatch = {
        number: index + 1,
        kind,
        description: DESCRIPTIONS[kind],
        entryDate,
        ids,
        amounts,
        fingerprints,
        serviceClass: serviceClassOf(ofBatch),
        totals: ofBatch,
        firstSequence: sequence,
      }
      sequence += ofBatch.entries
      totals = plus(totals, ofBatch)
      records += 2 + ofBatch.entries
      const lines = function* () {
        const header = {
          ...batch,
          companyName,
          companyId,
          odfi,
          entryClass: ENTRY_CLASS,
        }
        yield batchHeader(header)
        let next = batch.firstSequence
        for (const line of draft.lines) yield traced(line, odfi, next++)
        for (const offset of offsets) yield traced(untracedEntry(offset), odfi, next++)
        yield batchControl(header, ofBatch)
      }
      return { batch, lines }
    })
  if (sequence - 1 > MAX_SEQUENCE) throw new RangeError('The trace numbers of the file are too high')
  return {
    batches: finished.map(({ batch }) => batch),
    totals,
    firstSequence,
    lastSequence: sequence - 1,
    *lines() {
      yield fileHeader({ ...originator, date, time, modifier })
      for (const { lines } of finished) yield* lines()
      yield fileControl(finished.length, records, totals)
      for (let filled = records; filled % BLOCK !== 0; filled += 1) yield FILLER
    },
  }
}

function serviceClassOf({ debitCents, creditCents }: Totals): ServiceClass {
  if (debitCents > 0 && creditCents > 0) return SERVICE_CLASSES.mixed
  return debitCents > 0 ? SERVICE_CLASSES.debits : SERVICE_CLASSES.credits
}

/** What balances a batch: as much to the originator's own account as is taken from others, and the other way round. */
function offsetsOf(
  { offset, companyName }: Originator,
  { debitCents, creditCents }: Totals,
): readonly EntryDetail[] {
  if (offset === null) return []
  const codes = TRANSACTION_CODES[offset.accountType]
  const { routing, account } = offset
  const of = (transactionCode: number, cents: number): EntryDetail[] => {
    const entries: EntryDetail[] = []
    for (let left = cents; left > 0; left -= MAX_ENTRY_CENTS) {
      entries.push({
        transactionCode,
        routing,
        account,
        amountCents: Math.min(left, MAX_ENTRY_CENTS),
        identification: 'OFFSET',
        name: companyName,
      })
    }
    return entries
  }
  return [...of(codes.credit, debitCents), ...of(codes.debit, creditCents)]
}
