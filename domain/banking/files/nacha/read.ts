import { BLOCK, HASH_MODULUS, isDebitCode, NO_TOTALS, plus, RECORD_LENGTH, type Totals } from './records.ts'

/** What is wrong with a file, and where. It quotes nothing of it: that may be a bank number. */
export class NachaFault extends Error {
  override readonly name = 'NachaFault'
  /** From 1; 0 is the file as a whole. */
  readonly line: number

  constructor(line: number, problem: string) {
    super(line === 0 ? problem : `line ${line}: ${problem}`)
    this.line = line
  }
}

export interface ReadHeader {
  readonly part: 'file'
  readonly line: number
  readonly destination: string
  readonly origin: string
  /** `YYMMDD`. */
  readonly date: string
  readonly modifier: string
}

export interface ReadBatch {
  readonly part: 'batch'
  readonly line: number
  readonly serviceClass: string
  readonly companyName: string
  readonly companyId: string
  readonly entryClass: string
  readonly description: string
  /** `YYMMDD`, blank or zeros. */
  readonly entryDate: string
  readonly odfi: string
  readonly number: string
}

export interface ReadEntry {
  readonly part: 'entry'
  readonly line: number
  readonly transactionCode: number
  /** As it stands there; its first 8 characters are a number. */
  readonly routing: string
  readonly account: string
  readonly amountCents: number
  readonly identification: string
  readonly name: string
  /** As it stands there, in 15 characters. */
  readonly trace: string
  /** Whether it says that addenda follow: `1` or `0`. */
  readonly addendaIndicator: string
  readonly addenda: readonly ReadAddenda[]
  /** Why it cannot be read, although it can be counted. */
  readonly fault: NachaFault | null
}

export interface ReadAddenda {
  readonly line: number
  /** 98: notification of change, 99: return. */
  readonly type: string
  /** The record as a whole. */
  readonly text: string
}

/** The end of a batch, with what it repeats of the header. */
export interface ReadControl
  extends Pick<ReadBatch, 'line' | 'serviceClass' | 'companyId' | 'odfi' | 'number'> {
  readonly part: 'control'
}

export type ReadPart = ReadHeader | ReadBatch | ReadEntry | ReadControl

/** ^Z, by which systems that come from DOS mark the end of a file. */
const END_OF_FILE = '\x1a'

/** The lines of a text, whatever ends them. Blank ones at its end are none, and marks of that end stand in none. */
export function linesOf(text: string): readonly string[] {
  // files that were joined have marks of their encoding within
  const lines = text.replaceAll('\ufeff', '').split(/\r\n|[\r\n\f]/)
  while (lines.at(-1)?.replaceAll(END_OF_FILE, '').trim() === '') lines.pop()
  const last = lines.pop()
  return last === undefined ? [] : [...lines, without(last, END_OF_FILE)]
}

/** A text without what stands at its end of some characters. */
function without(text: string, characters: string): string {
  let { length } = text
  while (length > 0 && characters.includes(text[length - 1]!)) length -= 1
  return text.slice(0, length)
}

/** What records are filled up with. */
const PADDING = ' \t\0'
/** A file header that goes on with the next record: the line has all of them. */
const JOINED = /^1.{93}[\s\0]*(?=[59])/

/**
 * The records of a text: one a line, or one after the other without line breaks. Blanks at the end of a record may be
 * missing, or go on beyond its last column. A blank line is a record without characters.
 * @throws NachaFault
 */
export function recordsOf(text: string): readonly string[] {
  const lines = linesOf(text)
  if (lines.length === 0) throw new NachaFault(0, 'the file is empty')
  return lines.flatMap(apart).map((line) => {
    const bare = without(line, PADDING + END_OF_FILE)
    // a file may end there
    const record = bare === '' || bare.startsWith('9') ? bare : without(line, PADDING)
    return record === '' ? '' : record.padEnd(RECORD_LENGTH)
  })
}

/** The records of a line: all are as long as the first one with its padding. */
function apart(line: string): readonly string[] {
  const width = JOINED.exec(line)?.[0].length
  if (width === undefined) return [line]
  const records = line.match(new RegExp(`.{1,${width}}`, 'gs'))!
  const last = records.at(-1)!
  if (last.length < RECORD_LENGTH && !/^[9\s\0]/.test(last)) {
    throw new NachaFault(0, `its last record has ${last.length} characters, not 94: it was cut short`)
  }
  return records
}

/**
 * Reads a file record by record, and holds it against its own counts, hashes and totals; so each of several files that
 * stand one behind the other.
 * @throws NachaFault at the first record that does not fit; what came before may be used only once the end is reached.
 */
export function* readParts(records: Iterable<string>): Generator<ReadPart> {
  const reader = new RecordReader(records)
  do yield* readFile(reader)
  while (reader.peek() !== null)
}

function* readFile(reader: RecordReader): Generator<ReadPart> {
  const before = reader.count
  const head = reader.next('1', before === 0 ? 'a file header' : 'filling, or the header of another file')
  if (field(head, 2, 3) !== '01' || field(head, 35, 40) !== '094101') {
    throw new NachaFault(reader.line, 'this is no header of a file with records of 94 characters')
  }
  yield {
    part: 'file',
    line: reader.line,
    destination: field(head, 4, 13).trim(),
    origin: field(head, 14, 23).trim(),
    date: field(head, 24, 29),
    modifier: field(head, 34, 34),
  }
  let batches = 0
  let totals = NO_TOTALS
  while (reader.peek() === '5') {
    totals = plus(totals, yield* readBatch(reader))
    batches += 1
  }
  const control = reader.next('9', 'a batch header or the file control')
  const { line } = reader
  if (isFilling(control)) throw new NachaFault(line, 'filling stands where the file control should be')
  expectEqual(line, 'batches', reader.number(2, 7), batches)
  expectTotals(reader, { entries: [14, 21], hash: [22, 31], debit: [32, 43], credit: [44, 55] }, totals)
  const saysBlocks = reader.number(8, 13)
  const blocks = () => Math.ceil((reader.count - before) / BLOCK)
  const blocksOfRecords = blocks()
  while (reader.peek() === '9') {
    if (isFilling(reader.next('9', 'filling'))) continue
    throw new NachaFault(reader.line, 'another file control follows the file control')
  }
  // more may be filled than the last block
  if (saysBlocks !== blocks()) expectEqual(line, 'blocks', saysBlocks, blocksOfRecords)
}

const isFilling = (record: string) => /^9+ *$/.test(record)

function* readBatch(reader: RecordReader): Generator<ReadPart, Totals> {
  const record = reader.next('5', 'a batch header')
  yield {
    part: 'batch',
    line: reader.line,
    serviceClass: field(record, 2, 4),
    companyName: field(record, 5, 20).trim(),
    companyId: field(record, 41, 50).trim(),
    entryClass: field(record, 51, 53),
    description: field(record, 54, 63).trim(),
    entryDate: field(record, 70, 75),
    odfi: field(record, 80, 87),
    number: field(record, 88, 94),
  }
  let totals = NO_TOTALS
  while (reader.peek() === '6') {
    const entry = readEntry(reader)
    totals = plus(totals, totalsOfRead(entry))
    yield entry
  }
  const control = reader.next('8', 'an entry or the batch control')
  expectTotals(reader, { entries: [5, 10], hash: [11, 20], debit: [21, 32], credit: [33, 44] }, totals)
  yield {
    part: 'control',
    line: reader.line,
    serviceClass: field(control, 2, 4),
    companyId: field(control, 45, 54).trim(),
    odfi: field(control, 80, 87),
    number: field(control, 88, 94),
  }
  return totals
}

function readEntry(reader: RecordReader): ReadEntry {
  const record = reader.next('6', 'an entry')
  const { line } = reader
  let { fault } = reader
  // it is counted by its number
  reader.number(4, 11)
  const transactionCode = reader.number(2, 3)
  const amountCents = reader.number(30, 39)
  const addenda: ReadAddenda[] = []
  while (reader.peek() === '7') {
    const text = reader.next('7', 'an addenda record')
    fault ??= reader.fault
    addenda.push({ line: reader.line, type: field(text, 2, 3), text })
  }
  return {
    part: 'entry',
    line,
    transactionCode,
    routing: field(record, 4, 12),
    account: field(record, 13, 29).trim(),
    amountCents,
    identification: field(record, 40, 54).trim(),
    name: field(record, 55, 76).trim(),
    trace: field(record, 80, 94),
    addendaIndicator: field(record, 79, 79),
    addenda,
    fault,
  }
}

function totalsOfRead({ transactionCode, routing, amountCents, addenda }: ReadEntry): Totals {
  const isDebit = isDebitCode(transactionCode)
  return {
    entries: 1 + addenda.length,
    hash: BigInt(routing.slice(0, 8)),
    debitCents: isDebit ? amountCents : 0,
    creditCents: isDebit ? 0 : amountCents,
  }
}

type Columns = readonly [from: number, to: number]

function expectTotals(
  reader: RecordReader,
  columns: Readonly<Record<'entries' | 'hash' | 'debit' | 'credit', Columns>>,
  totals: Totals,
): void {
  const { line } = reader
  expectEqual(line, 'entries and addenda', reader.number(...columns.entries), totals.entries)
  // of a single entry it is the routing number
  if (reader.number(...columns.hash) !== Number(totals.hash % HASH_MODULUS)) {
    throw new NachaFault(line, 'entry hash: the control record says another one than the entries come to')
  }
  expectEqual(line, 'total of debits', reader.number(...columns.debit), totals.debitCents)
  expectEqual(line, 'total of credits', reader.number(...columns.credit), totals.creditCents)
}

function expectEqual(line: number, what: string, says: number, is: number): void {
  if (says !== is) throw new NachaFault(line, `${what}: the control record says ${says}, it is ${is}`)
}

/** The characters of a record from one column to another, counted from 1. */
export function field(record: string, from: number, to: number): string {
  return record.slice(from - 1, to)
}

/** Records that are counted by what stands in their first columns: one that is too long is only unreadable. */
const COUNTABLE: ReadonlySet<string> = new Set(['6', '7'])

/** Goes through records but blank ones, one look ahead. */
class RecordReader {
  readonly #records: Iterator<string>
  #ahead: IteratorResult<string>
  #aheadLine = 0
  #current = ''
  /** Of the record that was read last, from 1. */
  line = 0
  /** Records that were read. */
  count = 0
  /** Why the record that was read last can be counted, and no more. */
  fault: NachaFault | null = null

  constructor(records: Iterable<string>) {
    this.#records = records[Symbol.iterator]()
    this.#ahead = this.#advance()
  }

  /** The type of the next record; null at the end. */
  peek(): string | null {
    return this.#ahead.done ? null : this.#ahead.value.charAt(0)
  }

  next(type: string, expected: string): string {
    if (this.#ahead.done) throw new NachaFault(this.line, `the file ends where ${expected} should follow`)
    this.#current = this.#ahead.value
    this.line = this.#aheadLine
    this.count += 1
    const { length } = this.#current
    this.fault =
      length === RECORD_LENGTH
        ? null
        : new NachaFault(this.line, `the record has ${length} characters, not ${RECORD_LENGTH}`)
    if (this.fault && (length < RECORD_LENGTH || !COUNTABLE.has(type))) throw this.fault
    if (!this.#current.startsWith(type)) throw new NachaFault(this.line, `this should be ${expected}`)
    this.#ahead = this.#advance()
    return this.#current
  }

  /** A number in the record that was read last; blanks may stand for zeros before it. */
  number(from: number, to: number): number {
    const written = field(this.#current, from, to)
    if (!/^ *\d*$/.test(written)) {
      throw new NachaFault(this.line, `columns ${from} to ${to} should hold digits`)
    }
    return Number(written)
  }

  #advance(): IteratorResult<string> {
    for (;;) {
      this.#aheadLine += 1
      const next = this.#records.next()
      if (next.done || next.value !== '') return next
    }
  }
}
