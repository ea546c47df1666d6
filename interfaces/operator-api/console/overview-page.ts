import { type Html, html } from '../../portal/html.ts'
import { pill, type Tone } from '../../portal/pieces.ts'
import { type Answered, type Caller, call, type OperatorEndpoints, type Texts } from './calls.ts'
import { chart } from './chart.ts'
import type { ConsolePage } from './layout.ts'
import { isRow, type Row, table } from './values.ts'

/** What could be looked at, or why not. */
type Look = Answered | { readonly why: string }

interface Tile {
  readonly title: string
  readonly href: string
  readonly of: readonly [route: string, query: Texts]
  /** What calls for a person. */
  readonly count: (answered: Answered) => number
}

const total = ({ pagination }: Answered) => Number(pagination?.total ?? 0)
const rowsOf = ({ data }: Answered) => (Array.isArray(data) ? data : []).filter(isRow)
const ONE: Texts = { limit: '1' }

const TILES: readonly Tile[] = [
  {
    title: 'Open alerts',
    href: '/console/alerts?status=open',
    of: ['GET /alerts', { ...ONE, status: 'open' }],
    count: total,
  },
  {
    title: 'Projections that are late or stand',
    href: '/console/projections',
    of: ['GET /projections', {}],
    count: (all) => rowsOf(all).filter(isLate).length,
  },
  {
    title: 'Dead-lettered streams',
    href: '/console/dead-letters',
    of: ['GET /dead-letters', ONE],
    count: total,
  },
  {
    title: 'Failed work',
    href: '/console/work',
    of: ['GET /work', {}],
    count: ({ data }) => Number((data as { readonly counts: Row }).counts.failed),
  },
  {
    title: 'Failing webhooks',
    href: '/console/webhooks',
    of: ['GET /webhooks/failing', ONE],
    count: total,
  },
  {
    title: 'Debits in quarantine',
    href: '/console/debits?status=quarantined',
    of: ['GET /debits', { ...ONE, status: 'quarantined' }],
    count: total,
  },
  {
    title: 'Uncertain bank files',
    href: '/console/bank-files?status=uncertain',
    of: ['GET /bank-files', { ...ONE, status: 'uncertain' }],
    count: total,
  },
  {
    title: 'Bank reports to look at',
    href: '/console/bank-reports?parked=true',
    of: ['GET /bank-reports', { ...ONE, parked: 'true' }],
    count: total,
  },
  {
    title: 'Differences of the last reconciliation',
    href: '/console/reconciliations',
    of: ['GET /reconciliations', ONE],
    count: (all) => Number(rowsOf(all)[0]?.difference_count ?? 0),
  },
]

/** Behind by so many real seconds, a projection is late. */
const LATE_S = 5

function isLate({ state, lag }: Row): boolean {
  return !['active', 'new', 'booting'].includes(String(state)) || Number((lag as Row).seconds) >= LATE_S
}

/** What is late, stuck and failing now. */
export async function overviewPage(endpoints: OperatorEndpoints, caller: Caller): Promise<ConsolePage> {
  const looks = new Map<string, Promise<Look>>()
  const look = ([route, query]: Tile['of']): Promise<Look> => {
    const key = `${route}?${new URLSearchParams(query).toString()}`
    // one part that is away hides none of the others
    const asking =
      looks.get(key) ??
      call(caller, endpoints.of(route), {}, query).catch((error: Error) => ({ why: error.message }))
    looks.set(key, asking)
    return asking
  }
  const tiles = TILES.filter(({ of }) => endpoints.has(of[0]))
  const shown = await Promise.all(tiles.map(async (tile) => tileOf(tile, await look(tile.of))))
  const [hour, day, alerts, projections, work, health] = await Promise.all([
    look(['GET /throughput', { span: 'hour' }]),
    look(['GET /throughput', { span: 'day' }]),
    look(['GET /alerts', { status: 'open', limit: '5' }]),
    look(['GET /projections', {}]),
    look(['GET /work', {}]),
    caller.hostOf().services.readiness(),
  ])
  const degraded = health.degraded ?? []
  const sentence = !health.ok
    ? pill('bad', 'This process cannot serve')
    : degraded.length > 0
      ? pill('warn', 'Degraded')
      : pill('good', 'Ready')
  return {
    title: 'Overview',
    body: html`<div><h1>Overview</h1><p>${sentence} ${degraded.join('; ')}</p></div>
<ul class="tiles">${shown}</ul>
${over('hour', hour)}
${over('day', day)}
${section('The newest alerts', alerts, (all) =>
  table(
    'The newest alerts',
    rowsOf(all),
    { raised: 'raised_at', kind: 'kind', message: 'message' },
    ({ alert_id }) => [html`<a href="/console/alerts/${String(alert_id)}">Show</a>`],
  ),
)}
${section('Read models', projections, (all) =>
  table(
    'Read models',
    rowsOf(all),
    {
      name: 'name',
      state: 'state',
      'events behind': 'lag.events',
      'seconds behind': 'lag.seconds',
      'dead letters': 'parked_streams',
      rebuild: 'rebuild.state',
    },
    ({ name }) => [html`<a href="/console/projections/${String(name)}">Show</a>`],
    20 * 1024,
  ),
)}
${section('Process managers', work, ({ data }) => {
  const { counts, process_managers } = data as { counts: Row; process_managers: readonly Row[] }
  return html`<p class="soft">Work: ${Object.entries(counts).map(([name, count]) => html`${String(count)} ${name} `)}</p>
${table('Process managers', process_managers, { name: 'name', state: 'state', 'events behind': 'lag.events', 'seconds behind': 'lag.seconds', 'dead letters': 'parked_streams', problem: 'problem' }, undefined, 20 * 1024)}`
})}`,
  }
}

function tileOf({ title, href, count }: Tile, look: Look): Html {
  const words = 'why' in look ? '?' : String(count(look))
  const tone: Tone = words === '0' ? 'good' : words === '?' ? 'warn' : 'bad'
  const why = 'why' in look ? html`<span class="small soft">${look.why}</span>` : null
  return html`<li class="card"><strong>${words} ${pill(tone, tone === 'good' ? 'well' : tone === 'bad' ? 'look' : 'unknown')}</strong><a href="${href}">${title}</a>${why}</li>`
}

/** Throughput and lag as lines, and as the table that they are drawn from. */
function over(span: 'hour' | 'day', look: Look): Html {
  return section(`The last ${span}`, look, (all) => {
    const rows = rowsOf(all)
    const line = (field: string, title: string, unit: string) =>
      chart({
        id: `${span}-${field.replaceAll('_', '-')}`,
        title: `${title} of the last ${span}`,
        unit,
        values: rows.map((row) => row[field] as number | null),
        from: clock(String(rows[0]?.at)),
        to: clock(String(rows.at(-1)?.at)),
      })
    const columns = {
      at: ({ at }: Row) => clock(String(at)),
      'events/s': 'events_per_second',
      'events behind': 'events_behind',
      'seconds behind': 'seconds_behind',
    }
    const known = rows.filter(({ seconds_behind }) => seconds_behind !== null)
    return html`<div class="charts">${line('events_per_second', 'Throughput', 'events/s')}${line('seconds_behind', 'Lag', 's')}</div>
<details class="more"><summary>The last ${span} as a table</summary>${table(`The last ${span}`, known, columns, undefined, 10 * 1024)}</details>`
  })
}

/** `10:20 UTC`. */
function clock(at: string): Html {
  return html`<time datetime="${at.slice(0, 16)}Z">${at.slice(11, 16)}</time> UTC`
}

function section(title: string, look: Look, show: (answered: Answered) => Html): Html {
  const body = 'why' in look ? html`<p class="soft">It cannot be read now: ${look.why}</p>` : show(look)
  return html`<section class="card stack"><h2>${title}</h2>${body}</section>`
}
