import { dollars } from '../../../domain/kernel/money.ts'
import type { Columns } from '../../endpoints/commands.ts'
import { Html, html } from '../../portal/html.ts'
import { pill, type Tone } from '../../portal/pieces.ts'

export type Row = Readonly<Record<string, unknown>>

/** Characters of a value at the most: a page shows where to look, the API has the rest. */
const LONGEST = 300
/** Bytes of a table, and of a value as JSON, at the most: a page stays below 100 KiB. */
const TABLE_BYTES = 40 * 1024
const PART_BYTES = 14 * 1024
const JSON_BYTES = 24 * 1024
const MOST_ROWS = 50

const TONES: Readonly<Record<Exclude<Tone, 'calm'>, ReadonlySet<string>>> = {
  good: new Set(['active', 'settled', 'delivered', 'acknowledged', 'applied', 'accepted', 'true']),
  bad: new Set([
    'error',
    'failed',
    'parked',
    'problem',
    'quarantined',
    'rejected',
    'returned',
    'uncertain',
    'refused',
  ]),
  warn: new Set(['open', 'paused', 'disabled', 'booting', 'retrying', 'expired', 'revoked']),
}
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/
const ID = /^(?:[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** `parked_streams` as people read it. */
export function words(name: string): string {
  const text = name.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** A value as people read it. @param name of its field. */
export function value(name: string, of: unknown): Html {
  if (of === null || of === undefined || of === '') return html`–`
  if (of instanceof Html) return of
  if (typeof of === 'boolean') return html`${of ? 'yes' : 'no'}`
  if (typeof of === 'number') {
    return name.endsWith('_cents') ? html`${dollars(of)}` : html`${of}`
  }
  if (typeof of === 'string') return textOf(name, of)
  if (Array.isArray(of) && of.every((one) => typeof one !== 'object'))
    return html`${cut(of.join(', ')) || '–'}`
  return html`<code>${cut(JSON.stringify(of))}</code>`
}

function textOf(name: string, text: string): Html {
  if (TIME.test(text)) return moment(text)
  if (ID.test(text)) return html`<code>${text}</code>`
  if (!/(?:^|_)(?:status|state|answer)$/.test(name)) return html`${cut(text)}`
  const tone = (Object.keys(TONES) as (keyof typeof TONES)[]).find((one) => TONES[one].has(text))
  return pill(tone ?? 'calm', text)
}

/** `2026-11-29 10:00:00 UTC`. */
export function moment(at: string): Html {
  return html`<time datetime="${at}">${at.slice(0, 19).replace('T', ' ')} UTC</time>`
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text
}

function at(row: Row, path: string): unknown {
  return path.split('.').reduce<unknown>((found, name) => (found as Row | null | undefined)?.[name], row)
}

/**
 * A table that scrolls by itself where the page is narrow.
 * @param actions what can be done with a row.
 * @param mostBytes what does not fit is left out, and the table says so.
 */
export function table(
  title: string,
  rows: readonly Row[],
  columns: Columns,
  actions: (row: Row) => readonly Html[] = () => [],
  mostBytes = TABLE_BYTES,
): Html {
  if (rows.length === 0) return html`<p class="soft">Nothing.</p>`
  const does = rows.map((row) => actions(row))
  const hasActions = does.some((all) => all.length > 0)
  const shown: Html[] = []
  let bytes = 0
  for (const [index, row] of rows.entries()) {
    const cells = Object.entries(columns).map(([heading, column]) => {
      const of = typeof column === 'string' ? at(row, column) : column(row)
      const name = typeof column === 'string' ? column.split('.').at(-1)! : heading
      const isTime = typeof of === 'string' && TIME.test(of)
      const isNumber = typeof of === 'number'
      return html`<td${isTime ? html` class="time"` : isNumber ? html` class="num"` : null}>${value(name, of)}</td>`
    })
    const one = html`<tr>${cells}${hasActions ? html`<td class="do">${does[index]!}</td>` : null}</tr>`
    bytes += Buffer.byteLength(one.text)
    if (bytes > mostBytes) break
    shown.push(one)
  }
  const head = Object.keys(columns).map((name) => html`<th scope="col">${words(name)}</th>`)
  const left = rows.length - shown.length
  const rest =
    left > 0 ? html`<p class="soft">${left} more do not fit here: narrow the list, or ask the API.</p>` : null
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table><caption class="hide">${title}</caption><thead><tr>${head}${hasActions ? html`<th scope="col">Do</th>` : null}</tr></thead><tbody>${shown}</tbody></table></div>${rest}`
}

/** What can be done with the rows of a list within a thing, by the list's field. */
export type PartActions = Readonly<Record<string, (row: Row) => readonly Html[]>>

/** A thing: its plain fields first, then what it consists of. */
export function thing(of: unknown, actions: PartActions = {}): Html {
  if (!isRow(of)) return json(of)
  const entries = Object.entries(of)
  const plain = entries.filter(([, one]) => !isPart(one))
  const rows = plain.map(
    ([name, one]) => html`<div class="row"><dt>${words(name)}</dt><dd>${value(name, one)}</dd></div>`,
  )
  const parts = entries.filter(([, one]) => isPart(one)).map(([name, one]) => part(name, one, actions))
  return html`${rows.length > 0 ? html`<dl>${rows}</dl>` : null}${parts}`
}

function part(name: string, of: unknown, actions: PartActions): Html {
  const heading = html`<h2>${words(name)}</h2>`
  if (!Array.isArray(of)) return html`<section>${heading}${isDeep(of) ? json(of) : thing(of)}</section>`
  const rows = of as readonly Row[]
  const names = [...new Set(rows.slice(0, MOST_ROWS).flatMap((row) => Object.keys(row)))].slice(0, 14)
  const columns = Object.fromEntries(names.map((one) => [one, one]))
  return html`<section>${heading}${table(words(name), rows, columns, actions[name], PART_BYTES)}</section>`
}

/** A value as it is. @param mostBytes what does not fit is left out, and it says so. */
export function json(of: unknown, mostBytes = JSON_BYTES): Html {
  const text = JSON.stringify(of, null, 2) ?? ''
  const lines = text.split('\n')
  let bytes = 0
  const end = lines.findIndex((line) => {
    bytes += Buffer.byteLength(html`${line}`.text) + 1
    return bytes > mostBytes
  })
  if (end < 0) return html`<pre>${text}</pre>`
  return html`<pre>${lines.slice(0, end).join('\n')}</pre><p class="soft">The rest does not fit here: ask the API.</p>`
}

export function isRow(of: unknown): of is Row {
  return typeof of === 'object' && of !== null && !Array.isArray(of)
}

function isPart(of: unknown): boolean {
  return isRow(of) || (Array.isArray(of) && of.length > 0 && of.every(isRow))
}

/** Whether something in it consists of something itself. */
function isDeep(of: unknown): boolean {
  return isRow(of) && Object.values(of).some((one) => isRow(one) && Object.values(one).some(isRow))
}
