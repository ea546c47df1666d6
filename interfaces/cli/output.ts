import Table from 'cli-table3'
import { dollars } from '../../domain/kernel/money.ts'
import type { CliError } from './io.ts'

/** Something to print: the machine form, and how people read it. */
export interface Output {
  readonly json: unknown
  readonly text: string
  /** What ends the program after it was printed, where it tells of a failure. */
  readonly failure?: CliError
}

type Json = Readonly<Record<string, unknown>>

/** Without colours, and without lines between rows. */
const PLAIN = {
  style: { head: [], border: [] },
  chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
}

/** Characters of an object that stand on one line of a cell; a longer one has a line for each field. */
const LINE = 100

/** A line of a table: the library takes quadratic time over longer ones. */
const TABLE_LINE = /.{1,500}/gsu

/** One resource: its fields one below another. */
export function resource(data: unknown): Output {
  const table = new Table(PLAIN)
  for (const [name, value] of Object.entries((data ?? {}) as Json))
    table.push(...linesOf([name, cell(value)]))
  return { json: data, text: table.length > 0 ? table.toString() : 'nothing' }
}

/** Rows under headings, each column by a key of the row (`lag.events` for one within another) or a function of it. */
export function rows(
  data: readonly unknown[],
  columns: Readonly<Record<string, string | ((row: Json) => unknown)>>,
): string {
  if (data.length === 0) return 'nothing'
  const table = new Table({ ...PLAIN, head: Object.keys(columns) })
  for (const row of data as readonly Json[]) {
    const cells = Object.values(columns).map((column) =>
      typeof column !== 'string'
        ? cell(column(row))
        : column.endsWith('_cents')
          ? amount(valueAt(row, column))
          : cell(valueAt(row, column)),
    )
    table.push(...linesOf(cells))
  }
  return table.toString()
}

/** A row of a table for each line of its cells: for each line of a cell the library measures the whole cell. */
function linesOf(cells: readonly string[]): string[][] {
  const columns = cells.map((text) => text.split('\n').flatMap((line) => line.match(TABLE_LINE) ?? ['']))
  const count = Math.max(...columns.map(({ length }) => length))
  return Array.from({ length: count }, (_, index) => columns.map((lines) => lines[index] ?? ''))
}

function valueAt(row: Json, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Json | null | undefined)?.[name], row)
}

/** Cents as dollars; a dash where there are none. */
export function amount(cents: unknown): string {
  return typeof cents === 'number' ? dollars(cents) : '–'
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '–'
  if (typeof value === 'string') return printable(value)
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) {
    if (value.length === 0) return '–'
    const flat = value.every((one) => typeof one !== 'object')
    if (flat) return value.map(cell).join(', ')
    // where one ends and the next begins
    return value.map((one) => cell(one).replaceAll('\n', '\n  ')).join('\n')
  }
  const fields = Object.entries(value)
  const line = fields
    .map(
      ([name, member]) =>
        `${name}: ${typeof member === 'object' ? printable(JSON.stringify(member)) : cell(member)}`,
    )
    .join(', ')
  if (line.length <= LINE) return line
  return fields.map(([name, member]) => `${name}: ${indented(cell(member))}`).join('\n')
}

/** Several lines stand below what they belong to. */
function indented(text: string): string {
  return text.includes('\n') ? `\n${text}`.replaceAll('\n', '\n  ') : text
}

/** What came from outside must not steer the terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  return text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '\ufffd')
}
