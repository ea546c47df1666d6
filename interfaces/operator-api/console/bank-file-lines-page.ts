import { html } from '../../portal/html.ts'
import { type Caller, call, type OperatorEndpoints, type Texts } from './calls.ts'
import type { ConsolePage } from './layout.ts'
import { link } from './resource-pages.ts'
import { isRow, type Row, table } from './values.ts'

const LINES = 100

/** Entries of a file that follow each other, as its events have them. */
interface Entries {
  readonly batch_number: number
  readonly kind: 'debit' | 'retry' | 'micro-deposit'
  readonly entry_date: string
  /** 15 digits. */
  readonly first_trace: string
  readonly ids: readonly string[]
  readonly amounts_cents: readonly number[]
}

/**
 * The lines of a file for the bank, each with what it is for, from the events of the file.
 * @param query `part`: which event of entries; `line`: from which of its entries; both from 0. @throws HttpError.
 */
export async function bankFileLinesPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  fileId: string,
  query: Texts,
): Promise<ConsolePage> {
  const read = (stream: string, asked: Texts = {}) =>
    call(caller, endpoints.of('GET /streams/{stream}'), { stream }, asked)
  const { data: events } = await read(`bankFile-${fileId}`)
  const recorded = (events as readonly Row[]).find(({ type }) => type === 'BankFileRecorded')
  const title = `Lines of the bank file ${fileId}`
  const heading = html`<div><h1>${title}</h1><p class="soft"><a href="/console/bank-files/${fileId}">The file itself</a></p></div>`
  if (!recorded || !isRow(recorded.data)) {
    return { title, body: html`${heading}<p class="card">It is not written yet.</p>` }
  }
  const [part, line] = [numberOf(query.part), numberOf(query.line)]
  const { data, pagination } = await read(`bankFileEntries-${String(recorded.data.entries_id)}`, {
    from: String(part),
    limit: '1',
  })
  const [event] = data as readonly { readonly data: Entries }[]
  const rows = event ? linesOf(event.data).slice(line, line + LINES) : []
  const next =
    event && line + LINES < event.data.ids.length
      ? { part, line: line + LINES }
      : pagination && 'next' in pagination && pagination.next !== null
        ? { part: part + 1, line: 0 }
        : null
  const columns = {
    trace: 'trace',
    batch: 'batch',
    for: 'kind',
    id: 'id',
    amount_cents: 'amount_cents',
    takes_effect: 'entry_date',
  }
  const does = ({ kind, id }: Row) =>
    kind === 'micro-deposit' ? [] : [link(`/console/debits/${String(id)}`, 'Debit')]
  return {
    title,
    body: html`${heading}<section class="card">${table(title, rows, columns, does)}${next && html`<p>${link(`?part=${next.part}&line=${next.line}`, 'Go on')}</p>`}</section>`,
  }
}

function linesOf({ batch_number, kind, entry_date, first_trace, ids, amounts_cents }: Entries) {
  const first = BigInt(first_trace)
  return ids.map((id, index) => ({
    trace: String(first + BigInt(index)).padStart(first_trace.length, '0'),
    batch: batch_number,
    kind,
    id,
    amount_cents: amounts_cents[index],
    entry_date,
  }))
}

function numberOf(text: string | undefined): number {
  return /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
}
