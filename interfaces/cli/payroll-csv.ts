import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { parse } from 'csv-parse'
import { compare, decimal } from '../../domain/kernel/money.ts'
import { CliError } from './io.ts'

/** Rows that one report takes at the most. */
export const MAX_ROWS = 50_000

/** Columns under other names than the report's own. */
const ALIASES: Readonly<Record<string, string>> = {
  employee_first_name: 'first_name',
  employee_last_name: 'last_name',
  firstname: 'first_name',
  lastname: 'last_name',
  hours: 'hours_worked',
  wages: 'gross_wages',
  gross: 'gross_wages',
  overtime_wages: 'overtime',
  hourly_rate: 'rate',
  classcode: 'class_code',
  class: 'class_code',
  employee_number: 'employee_id',
  pay_date: 'check_date',
  period_start: 'pay_period_start',
  period_end: 'pay_period_end',
}

const KNOWN = new Set([
  'first_name',
  'last_name',
  'employee_id',
  'ssn',
  'class_code',
  'state',
  'gross_wages',
  'overtime',
  'hours_worked',
  'rate',
  'check_date',
  'pay_period_start',
  'pay_period_end',
])
const NUMBERS = new Set(['gross_wages', 'overtime', 'hours_worked', 'rate'])

/** One employee record of a report. */
export type PayrollRecord = Record<string, string | number>

/**
 * Reads payroll rows from CSV. The header row names the fields (`Gross Wages` is `gross_wages`, and
 * common other names are understood); columns of other names are passed on as they are called.
 * Empty cells are left out. @param file path, or `-` for what `stdin` holds.
 * @param onRow told how many rows are read so far.
 * @throws CliError that names the file and the line.
 */
export async function readPayrollCsv(
  file: string,
  stdin: Readable,
  onRow: (count: number) => void = () => undefined,
): Promise<readonly PayrollRecord[]> {
  const source = file === '-' ? stdin : createReadStream(file)
  const records: PayrollRecord[] = []
  const parser = parse({
    bom: true,
    columns: fieldNames,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
    // around quotes; inside them the cells are trimmed one by one
    trim: true,
  })
  // pipe does not pass errors of the source on
  source.once('error', (error: Error) => parser.destroy(error))
  try {
    for await (const cells of source.pipe(parser) as AsyncIterable<Record<string, string>>) {
      if (records.length === MAX_ROWS) {
        throw new CliError(
          `it has more than ${MAX_ROWS} rows, which is the most that one report takes; ` +
            'split it into one file per report',
        )
      }
      records.push(recordOf(cells))
      onRow(records.length)
    }
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`)
  } finally {
    source.destroy()
  }
  if (records.length === 0) throw new CliError(`${file} has no rows below its header`)
  return records
}

/** The fields that a header row names. @throws CliError for a column without a name, or two of one field. */
function fieldNames(header: readonly string[]): string[] {
  const columns = new Map<string, string>()
  for (const [index, name] of header.entries()) {
    const plain = plainName(name)
    if (plain === '') throw new CliError(`column ${index + 1} has no name`)
    const field = ALIASES[plain] ?? (KNOWN.has(plain) ? plain : name.trim())
    const twin = columns.get(field)
    if (twin !== undefined) throw new CliError(`the columns "${twin}" and "${name}" both mean ${field}`)
    columns.set(field, name)
  }
  return [...columns.keys()]
}

function plainName(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
}

function recordOf(cells: Readonly<Record<string, string>>): PayrollRecord {
  const record: PayrollRecord = {}
  for (const [field, cell] of Object.entries(cells)) {
    const text = cell.trim()
    if (text === '') continue
    record[field] = NUMBERS.has(field) ? exactNumber(text) : text
  }
  return record
}

const NUMBER = /^-?\d+(?:\.\d+)?$/

/** The number that a cell writes, if JSON can carry exactly that; else the text, for the service to judge. */
export function exactNumber(text: string): number | string {
  if (!NUMBER.test(text)) return text
  const number = Number(text)
  const kept = decimal(number)
  return kept !== null && compare(kept, decimal(text)!) === 0 ? number : text
}
