import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { type Options, parse } from 'csv-parse'
import { parse as parseSync } from 'csv-parse/sync'
import { compare, decimal } from '../../domain/kernel/money.ts'
import { showValue } from '../../domain/payroll/payroll-row.ts'
import { CliError } from './io.ts'
import { fieldOfColumn } from './payroll-columns.ts'

/** Rows that one report takes at the most. */
export const MAX_ROWS = 50_000
/** Bytes of a file at the most, far above what makes a report of 10 MiB. */
const MAX_BYTES = 64 * 1024 * 1024

const NUMBERS = new Set(['gross_wages', 'overtime', 'hours_worked', 'rate'])

/** One employee record of a report. */
export type PayrollRecord = Record<string, string | number>

/** A column of a file, and the field of a report that it was understood as; null: it is passed on as it is called. */
interface Column {
  readonly name: string
  readonly field: string | null
}

/** What a file holds. */
export interface PayrollCsv {
  readonly columns: readonly Column[]
  readonly records: readonly PayrollRecord[]
}

/**
 * Reads payroll rows from CSV in UTF-8, or in UTF-16 with a byte order mark. The header row names the fields, see
 * {@link fieldOfColumn}, and tells the separator: comma, semicolon or tab; a line `sep=;` above it, as Excel reads one, names
 * it. Empty cells are left out.
 * @param file path, or `-` for what `stdin` holds.
 * @param onRow told how many rows are read so far.
 * @throws CliError that names the file, and the line or the columns.
 */
export async function readPayrollCsv(
  file: string,
  stdin: Readable,
  onRow: (count: number) => void = () => undefined,
): Promise<PayrollCsv> {
  try {
    const text = decoded(await bytesOf(file === '-' ? stdin : createReadStream(file)))
    const { delimiter, columns, line } = headerOf(text)
    refuseColumns(columns)
    const records: PayrollRecord[] = []
    const parser = parse({ ...CSV, delimiter, from_line: line, from: 2 })
    parser.end(text)
    for await (const cells of parser as AsyncIterable<readonly string[]>) {
      if (records.length === MAX_ROWS) {
        throw new CliError(
          `it has more than ${MAX_ROWS} rows, which is the most that one report takes; ` +
            'split it into one file per report',
        )
      }
      records.push(recordOf(cells, columns, delimiter))
      onRow(records.length)
    }
    if (records.length === 0) throw new CliError('it has no rows below its header')
    return { columns, records }
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

const CSV = {
  record_delimiter: ['\r\n', '\n', '\r'],
  skip_empty_lines: true,
  skip_records_with_empty_values: true,
  // around quotes; inside them the cells are trimmed one by one
  trim: true,
} satisfies Options

async function bytesOf(source: Readable): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of source as AsyncIterable<Buffer>) {
    parts.push(part)
    size += part.length
    if (size > MAX_BYTES) throw new CliError('it is larger than what one report takes; split it')
  }
  return Buffer.concat(parts)
}

/** Strict: what cannot be read would make two people one. */
function decoded(bytes: Buffer): string {
  const [first, second] = bytes
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
  const text = new TextDecoder(encoding).decode(bytes)
  const unreadable = text.search(/[\0\ufffd]/)
  if (unreadable < 0) return text
  const line = text.slice(0, unreadable).split(/\r\n|\n|\r/).length
  throw new CliError(
    encoding === 'utf-8' && isUtf8(bytes) && text[unreadable] === '\ufffd'
      ? `line ${line} holds U+FFFD: a program that wrote the file has lost characters there`
      : `line ${line} is not in UTF-8, nor in UTF-16 with a byte order mark; save the file as CSV in UTF-8`,
  )
}

const SEPARATOR_LINE = /^"?sep=([,;|\t])"?[ ,;|\t]*(?:\r\n|\n|\r)/i

interface Header {
  readonly delimiter: string
  readonly columns: readonly Column[]
  /** Of the file, counted from 1, at which it is looked for. */
  readonly line: number
}

/** The columns, by the separator that is named, else with which most of them are understood, else with which there are most. */
function headerOf(text: string): Header {
  const named = SEPARATOR_LINE.exec(text)?.[1]
  const line = named === undefined ? 1 : 2
  const [best] = (named === undefined ? [',', ';', '\t'] : [named])
    .map((delimiter) => ({ delimiter, columns: columnsOf(text, delimiter, line), line }))
    .sort((a, b) => understood(b.columns) - understood(a.columns) || b.columns.length - a.columns.length)
  return best!
}

function understood(columns: readonly Column[]): number {
  return columns.filter(({ field }) => field !== null).length
}

function columnsOf(text: string, delimiter: string, line: number): readonly Column[] {
  let names: readonly string[]
  try {
    names = (parseSync(text, { ...CSV, delimiter, from_line: line, to: 1 })[0] as string[] | undefined) ?? []
  } catch {
    // quotes that another separator puts in their place
    return []
  }
  const columns = names.map((name) => ({ name: name.trim(), field: fieldOfColumn(name) }))
  const hasParts = columns.some(({ field }) => field === 'first_name' || field === 'last_name')
  return hasParts
    ? columns.map(({ name, field }) => ({ name, field: field === 'name' ? null : field }))
    : columns
}

/** @throws CliError for a column without a name, two of one field, or columns that do not name a wage. */
function refuseColumns(columns: readonly Column[]): void {
  const names = new Map<string, string>()
  for (const [index, { name, field }] of columns.entries()) {
    if (name === '') throw new CliError(`column ${index + 1} has no name`)
    const twin = names.get(field ?? name)
    if (twin !== undefined) {
      throw new CliError(
        `the columns "${twin}" and "${name}" both mean ${field ?? name}; leave one of them out`,
      )
    }
    names.set(field ?? name, name)
  }
  if (names.has('gross_wages') || (names.has('hours_worked') && names.has('rate'))) return
  const { known, unknown } = describeColumns(columns)
  const wages = 'no column names a wage (gross_wages, or hours_worked with rate)'
  throw new CliError(
    columns.length === 0
      ? 'it has no header row'
      : `${wages}, or the header row is missing; understood: ${known}; not understood: ${unknown}`,
  )
}

/**
 * The columns in words: those that were understood, as what, and those that were not; masked where a file without a
 * header has a person's number or address there.
 */
export function describeColumns(columns: readonly Column[]): {
  readonly known: string
  readonly unknown: string
} {
  const listed = (of: readonly string[]) => (of.length > 0 ? of.join(', ') : 'none')
  const known = columns.filter(({ field }) => field !== null)
  const unknown = columns.filter(({ field }) => field === null)
  return {
    known: listed(known.map(({ name, field }) => `"${name}" as ${field}`)),
    unknown: listed(unknown.map(({ name }) => `"${showValue(name)}"`)),
  }
}

function recordOf(cells: readonly string[], columns: readonly Column[], delimiter: string): PayrollRecord {
  // not assigned one by one: `__proto__` is a name like any other
  return Object.fromEntries(
    columns.flatMap(({ name, field }, index) => {
      const text = cells[index]!.trim()
      if (text === '') return []
      const isNumber = field !== null && NUMBERS.has(field)
      return [[field ?? name, isNumber ? amountOf(text, field, delimiter) : text]]
    }),
  )
}

/** A sign or currency before or after a number, or brackets around one that is negative. */
const SIGNED =
  /^(\(?)\s*([-−+]?)\s*(?:\$|€|£|USD)?\s*([-−+]?)\s*([\d.,'’\s]*\d)\s*(?:\$|€|£|USD)?\s*([-−]?)\s*(\)?)$/u
const GROUPED = /^\d{1,3}(?:([.,'’\s])\d{3})(?:\1\d{3})*$/u
const FRACTION = /^(.*)([.,])(\d+)$/su

/**
 * The number that a cell writes: with a currency, with groups of three digits, and negative in brackets or with a sign
 * at either end. A comma is a decimal separator where commas do not separate the cells. What is no number, none that
 * JSON carries exactly, or a wage that may be thousands as well as have three decimals stays text, for the service to
 * judge.
 */
export function amountOf(text: string, field: string, delimiter: string): number | string {
  const match = SIGNED.exec(text)
  if (!match) return text
  const [, open, before, inner, digits, after, close] = match
  const signs = [before, inner, after].filter((sign) => sign !== '')
  if ((open === '') !== (close === '') || signs.length > (open === '' ? 1 : 0)) return text
  const plain = plainDigits(digits!, field, delimiter)
  if (plain === null) return text
  const isNegative = open !== '' || (signs.length > 0 && signs[0] !== '+')
  const number = exactNumber(isNegative ? `-${plain}` : plain)
  return typeof number === 'number' ? number : text
}

/** Digits with a point at the most; null where they are in no order that has one meaning. */
function plainDigits(digits: string, field: string, delimiter: string): string | null {
  if (/^\d+$/.test(digits)) return digits
  const [, whole = '', separator, fraction = ''] = FRACTION.exec(digits) ?? []
  const others = whole.replace(/\d/g, '')
  const isPoint = separator === '.' && delimiter !== ';'
  if (fraction.length === 3 && others === '') {
    const isWage = field === 'gross_wages' || field === 'overtime'
    return isPoint && !isWage ? digits : null
  }
  if (GROUPED.test(digits)) return digits.replace(/\D/g, '')
  if (separator === undefined || others.includes(separator)) return null
  if (others === '' ? separator === ',' && delimiter === ',' : !GROUPED.test(whole)) return null
  return `${whole.replace(/\D/g, '')}.${fraction}`
}

const NUMBER = /^-?\d+(?:\.\d+)?$/

/** The number that a text writes, if JSON can carry exactly that; else the text. */
function exactNumber(text: string): number | string {
  if (!NUMBER.test(text)) return text
  const number = Number(text)
  const kept = decimal(number)
  return kept !== null && compare(kept, decimal(text)!) === 0 ? number : text
}
