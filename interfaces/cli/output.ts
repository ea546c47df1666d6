import Table from 'cli-table3'
import { dollars } from '../../domain/kernel/money.ts'
import type { Columns } from '../endpoints/commands.ts'
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

/** Characters of a line of a table at the most: the library takes quadratic time over longer ones. */
const TABLE_LINE = 500
/** Characters of a column, with a blank on either side, at the least: `2026-0…`. */
const NARROWEST = 9

/** Characters of a line of the terminal; undefined where the output is none, or none that says: programs read all of it. */
const terminalWidth = (): number | undefined => process.stdout.columns || undefined

/** One resource: its fields one below another. Values go on in the next line, whole: some are shown only once. */
export function resource(data: unknown, width = terminalWidth()): Output {
  const fields = Object.entries((data ?? {}) as Json)
  if (fields.length === 0) return { json: data, text: 'nothing' }
  const names = Math.max(...fields.map(([name]) => name.length))
  const line = width === undefined ? TABLE_LINE : Math.max(NARROWEST, width - names - 7)
  const table = new Table(PLAIN)
  for (const [name, value] of fields) {
    const text = cell(value)
    // what has no blanks may be a secret: it is copied from the screen in one piece
    table.push(...linesOf([name, text], /\s/.test(text) ? line : TABLE_LINE))
  }
  return { json: data, text: table.toString() }
}

/**
 * Rows under headings, each column by a key of the row (`lag.events` for one within another) or a function of it. Where
 * the terminal is too narrow for all, the widest columns are cut; `--json` has everything.
 * @param what the rows are of, in the plural.
 */
export function rows(
  data: readonly unknown[],
  columns: Columns,
  what: string,
  width = terminalWidth(),
): string {
  if (data.length === 0) return `No ${what}`
  const head = Object.keys(columns)
  const lines = (data as readonly Json[]).flatMap((row) => {
    const cells = Object.values(columns).map((column) =>
      typeof column !== 'string'
        ? cell(column(row))
        : column.endsWith('_cents')
          ? amount(valueAt(row, column))
          : cell(valueAt(row, column)),
    )
    return linesOf(cells)
  })
  const whole = tableOf(lines, { head })
  const widths = whole.slice(1, whole.indexOf('\n') - 1).split('┬')
  const room = (width ?? Number.POSITIVE_INFINITY) - widths.length - 1
  const colWidths = narrowed(
    widths.map(({ length }) => length),
    room,
  )
  return colWidths === null ? whole : tableOf(lines, { head, colWidths })
}

function tableOf(lines: readonly string[][], options: { head: string[]; colWidths?: number[] }): string {
  const table = new Table({ ...PLAIN, ...options })
  table.push(...lines)
  return table.toString()
}

/** Widths that fit into the room, the widest cut first, as far as they may be; null where all fit as they are. */
function narrowed(widths: readonly number[], room: number): number[] | null {
  const cut = (most: number) => widths.map((width) => Math.min(width, most))
  const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0)
  if (sum(widths) <= room) return null
  let most = Math.max(...widths)
  while (most > NARROWEST && sum(cut(most)) > room) most -= 1
  return cut(most)
}

/** A row of a table for each line of its cells: for each line of a cell the library measures the whole cell. */
function linesOf(cells: readonly string[], length = TABLE_LINE): string[][] {
  const part = new RegExp(`.{1,${length}}`, 'gsu')
  const columns = cells.map((text) => text.split('\n').flatMap((line) => line.match(part) ?? ['']))
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
