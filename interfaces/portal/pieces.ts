import type { DebitProgress } from '../../application/payments/sessions/payer-page.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { shortDay } from './dates.ts'
import { Html, html } from './html.ts'

/** Pieces that hosted pages are made of. Amounts are cents. */

const PATHS = {
  check: '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
  clock: '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3 2"/>',
  cross: '<path d="m7 7 10 10M17 7 7 17"/>',
  back: '<path d="M9 7 4 12l5 5"/><path d="M4 12h11a5 5 0 0 1 0 10"/>',
  again: '<path d="M20 11a8 8 0 0 0-14.5-3.5M4 4v4h4M4 13a8 8 0 0 0 14.5 3.5M20 20v-4h-4"/>',
  card: '<rect x="2.5" y="5" width="19" height="14" rx="2.5"/><path d="M2.5 10h19M6 15h4"/>',
  bank: '<path d="M3 10 12 4l9 6zM5 10v8M10 10v8M14 10v8M19 10v8M3 20h18"/>',
  lock: '<rect x="5" y="11" width="14" height="9" rx="2"/><path d="M8 11V8a4 4 0 0 1 8 0v3"/>',
  turn: '<path d="m6 9 6 6 6-6"/>',
} as const

/** A drawing that says nothing beside its text. */
export function icon(name: keyof typeof PATHS, className = ''): Html {
  return html`<svg viewBox="0 0 24 24" aria-hidden="true" class="${className}">${new Html(PATHS[name])}</svg>`
}

/** How something stands, in a colour of its own. */
export type Tone = 'good' | 'bad' | 'warn' | 'calm'

/** How a request stands, and what that means. */
export function state(tone: Tone, sign: keyof typeof PATHS, title: string, sentences: readonly Html[]) {
  return { tone, sign, title, sentences }
}

/** What became of a request, above all else. */
export function stateHeader(
  { tone, sign, title, sentences }: ReturnType<typeof state>,
  cents: number | null,
): Html {
  const amount = cents === null ? null : html`<p class="amount">${dollars(cents)}</p>`
  const text = sentences.map((one) => html`<p class="soft">${one}</p>`)
  return html`<div class="state"><span class="sign ${tone}">${icon(sign)}</span><h1>${title}</h1>${amount}${text}</div>`
}

/** A message beside the rest. @param role `alert` where it answers what the payer did. */
export function note(tone: Tone, title: string, text: Html, role: 'alert' | 'note' = 'note'): Html {
  const focus = role === 'alert' ? html` tabindex="-1" id="alert"` : null
  return html`<div class="note ${tone}" role="${role}"${focus}><strong>${title}</strong>${text}</div>`
}

export function pill(tone: Tone, text: string): Html {
  return html`<span class="pill ${tone}">${text}</span>`
}

/** Names and values; what is null is left out. */
export function facts(rows: readonly (readonly [string, Html | string | null])[]): Html {
  const shown = rows.filter(([, value]) => value !== null)
  return html`<dl>${shown.map(([name, value]) => html`<div class="row"><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

interface Item {
  readonly label: string
  readonly amount_cents: number
}

/** What an amount is made of. */
export function items(all: readonly Item[], totals: readonly Item[]): Html {
  const row = ({ label, amount_cents }: Item) =>
    html`<tr><th scope="row">${label}</th><td class="num">${dollars(amount_cents)}</td></tr>`
  return html`<table><caption>Details</caption><thead class="hide"><tr><th scope="col">For</th><th scope="col">Amount</th></tr></thead><tbody>${all.map(row)}</tbody><tfoot>${totals.map(row)}</tfoot></table>`
}

interface Installment {
  readonly number: number
  readonly amount_cents: number
  readonly due_at: string
  readonly progress: DebitProgress | 'due'
}

const PROGRESS: Readonly<Record<Installment['progress'], readonly [Tone, string]>> = {
  due: ['calm', 'Upcoming'],
  arranged: ['calm', 'Scheduled'],
  on_its_way: ['calm', 'Processing'],
  collected: ['good', 'Paid'],
  returned: ['bad', 'Returned'],
  stopped: ['calm', 'Not collected'],
}

/** How a debit stands, in a word. */
export function progress(of: Installment['progress']): Html {
  return pill(...PROGRESS[of])
}

/** Installments above which a schedule opens only when it is asked for. */
const FEW = 6

/** When a plan is paid. @param isRunning what became of each is of interest. */
export function scheduleTable(all: readonly Installment[], isRunning: boolean): Html {
  const row = (one: Installment) =>
    html`<tr><td>${one.number}</td><td>${shortDay(one.due_at)}</td>${isRunning ? html`<td>${progress(one.progress)}</td>` : null}<td class="num">${dollars(one.amount_cents)}</td></tr>`
  const state = isRunning ? html`<th scope="col">Status</th>` : null
  const table = html`<table><caption class="hide">Monthly installments</caption><thead><tr><th scope="col"><span class="hide">Number</span></th><th scope="col">Date</th>${state}<th scope="col" class="num">Amount</th></tr></thead><tbody>${all.map(row)}</tbody></table>`
  return html`<details class="more"${all.length <= FEW ? new Html(' open') : null}><summary>Payment schedule: ${installments(all.length)}</summary>${table}</details>`
}

/** `10 monthly installments`. */
export function installments(count: number, kind = 'monthly '): string {
  return `${count} ${kind}installment${count === 1 ? '' : 's'}`
}
