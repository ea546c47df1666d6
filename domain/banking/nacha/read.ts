import {
  BLOCK,
  FILLER,
  HASH_MODULUS,
  isDebitCode,
  NO_TOTALS,
  plus,
  RECORD_LENGTH,
  type Totals,
} from './records.ts'

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
  readonly destination: string
  readonly origin: string
  /** `YYMMDD`. */
  readonly date: string
  readonly modifier: string
}

export interface ReadBatch {
  readonly part: 'batch'
  readonly line: number
  readonly serviceClass: number
  readonly companyName: string
  readonly companyId: string
  readonly entryClass: string
  readonly description: string
  /** `YYMMDD`, blank or zeros. */
  readonly entryDate: string
  readonly odfi: string
  readonly number: number
}

export interface ReadEntry {
  readonly part: 'entry'
  readonly line: number
  readonly transactionCode: number
  readonly routing: string
  readonly account: string
  readonly amountCents: number
  readonly identification: string
  readonly name: string
  /** 15 digits. */
  readonly trace: string
  readonly addenda: readonly ReadAddenda[]
}

export interface ReadAddenda {
  readonly line: number
  /** 98: notification of change, 99: return. */
  readonly type: string
  /** The record as a whole. */
  readonly text: string
}

export type ReadPart = ReadHeader | ReadBatch | ReadEntry

/** ^Z, by which systems that come from DOS mark the end of a file. */
const END_OF_FILE = '\x1a'

/** The lines of a text. Blank ones at its end are none, and marks of that end stand in none. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r?\n/)
  while (lines.at(-1)?.replaceAll(END_OF_FILE, '').trim() === '') lines.pop()
  let last = lines.pop()
  if (last === undefined) return []
  while (last.endsWith(END_OF_FILE)) last = last.slice(0, -1)
  return [...lines, last]
}

/**
 * The records of a text: one a line, or one after the other without line breaks. Blanks at the end of a line may be missing.
 * @throws NachaFault
 */
export function recordsOf(text: string): readonly string[] {
  const lines = linesOf(text)
  if (lines.length === 0) throw new NachaFault(0, 'the file is empty')
  const [only] = lines
  if (lines.length === 1 && only!.length > RECORD_LENGTH) {
    if (only!.length % RECORD_LENGTH !== 0) {
      throw new NachaFault(0, `its length is no multiple of ${RECORD_LENGTH}: it was cut short`)
    }
    return only!.match(new RegExp(`.{${RECORD_LENGTH}}`, 'gs')) ?? []
  }
  return lines.map((line) => line.padEnd(RECORD_LENGTH))
}

/**
 * Reads a file record by record, and holds it against its own counts, hashes and totals.
 * @throws NachaFault at the first record that does not fit; what came before may be used only once the end is reached.
 */
export function* readParts(records: Iterable<string>): Generator<ReadPart> {
  const reader = new RecordReader(records)
  const head = reader.next('1', 'a file header')
  if (field(head, 2, 3) !== '01' || field(head, 35, 40) !== '094101') {
    throw new NachaFault(reader.line, 'this is no header of a file with records of 94 characters')
  }
  yield {
    part: 'file',
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
  expectEqual(line, 'batches', reader.number(2, 7), batches)
  expectTotals(reader, { entries: [14, 21], hash: [22, 31], debit: [32, 43], credit: [44, 55] }, totals)
  expectEqual(line, 'blocks', reader.number(8, 13), Math.ceil(line / BLOCK))
  if (control === FILLER) throw new NachaFault(line, 'filling stands where the file control should be')
  reader.expectEnd()
}

function* readBatch(reader: RecordReader): Generator<ReadPart, Totals> {
  const record = reader.next('5', 'a batch header')
  const batch: ReadBatch = {
    part: 'batch',
    line: reader.line,
    serviceClass: reader.number(2, 4),
    companyName: field(record, 5, 20).trim(),
    companyId: field(record, 41, 50).trim(),
    entryClass: field(record, 51, 53),
    description: field(record, 54, 63).trim(),
    entryDate: field(record, 70, 75),
    odfi: field(record, 80, 87),
    number: reader.number(88, 94),
  }
  yield batch
  let totals = NO_TOTALS
  while (reader.peek() === '6') {
    const entry = readEntry(reader)
    totals = plus(totals, totalsOfRead(entry))
    yield entry
  }
  if (totals.entries === 0) throw new NachaFault(reader.line, 'the batch has no entry')
  const control = reader.next('8', 'an entry or the batch control')
  const { line } = reader
  expectEqual(line, 'service class', reader.number(2, 4), batch.serviceClass)
  if (field(control, 45, 54).trim() !== batch.companyId) {
    throw new NachaFault(line, 'the company is not that of the batch header')
  }
  if (field(control, 80, 87) !== batch.odfi) {
    throw new NachaFault(line, 'the originating bank is not that of the batch header')
  }
  expectEqual(line, 'batch number', reader.number(88, 94), batch.number)
  expectTotals(reader, { entries: [5, 10], hash: [11, 20], debit: [21, 32], credit: [33, 44] }, totals)
  return totals
}

function readEntry(reader: RecordReader): ReadEntry {
  const record = reader.next('6', 'an entry')
  const { line } = reader
  const routing = field(record, 4, 12)
  const trace = field(record, 80, 94)
  if (!/^\d{9}$/.test(routing)) throw new NachaFault(line, 'the routing number is not 9 digits')
  if (!/^\d{15}$/.test(trace)) throw new NachaFault(line, 'the trace number is not 15 digits')
  const transactionCode = reader.number(2, 3)
  const amountCents = reader.number(30, 39)
  const addenda: ReadAddenda[] = []
  while (reader.peek() === '7') {
    const text = reader.next('7', 'an addenda record')
    addenda.push({ line: reader.line, type: field(text, 2, 3), text })
  }
  const says = field(record, 79, 79)
  if (says !== (addenda.length > 0 ? '1' : '0')) {
    throw new NachaFault(line, 'whether addenda follow is not what the entry says')
  }
  return {
    part: 'entry',
    line,
    transactionCode,
    routing,
    account: field(record, 13, 29).trim(),
    amountCents,
    identification: field(record, 40, 54).trim(),
    name: field(record, 55, 76).trim(),
    trace,
    addenda,
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

/** Goes through records, one look ahead. */
class RecordReader {
  readonly #records: Iterator<string>
  #ahead: IteratorResult<string>
  #current = ''
  /** Of the record that was read last, from 1. */
  line = 0

  constructor(records: Iterable<string>) {
    this.#records = records[Symbol.iterator]()
    this.#ahead = this.#records.next()
  }

  /** The type of the next record; null at the end. */
  peek(): string | null {
    return this.#ahead.done ? null : this.#ahead.value.charAt(0)
  }

  next(type: string, expected: string): string {
    if (this.#ahead.done) throw new NachaFault(this.line, `the file ends where ${expected} should follow`)
    this.#current = this.#ahead.value
    this.line += 1
    if (this.#current.length !== RECORD_LENGTH) {
      throw new NachaFault(this.line, `the record has ${this.#current.length} characters, not 94`)
    }
    if (!this.#current.startsWith(type)) throw new NachaFault(this.line, `this should be ${expected}`)
    this.#ahead = this.#records.next()
    return this.#current
  }

  /** A number in the record that was read last. */
  number(from: number, to: number): number {
    const written = field(this.#current, from, to)
    if (!/^\d+$/.test(written)) {
      throw new NachaFault(this.line, `columns ${from} to ${to} should hold digits`)
    }
    return Number(written)
  }

  /** Only filling may follow. */
  expectEnd(): void {
    while (!this.#ahead.done) {
      this.line += 1
      if (this.#ahead.value !== FILLER) {
        throw new NachaFault(this.line, 'records follow the file control: are these two files?')
      }
      this.#ahead = this.#records.next()
    }
  }
}
