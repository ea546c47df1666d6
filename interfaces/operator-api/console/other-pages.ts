import type { StoryKind } from '../../../application/audit/story-streams.ts'
import { type Html, html } from '../../portal/html.ts'
import { note } from '../../portal/pieces.ts'
import { type Caller, call, type OperatorEndpoints } from './calls.ts'
import type { ConsolePage } from './layout.ts'
import { linksOf } from './resource-pages.ts'
import type { Resource } from './resources.ts'
import { isRow, type Row, table } from './values.ts'

/** What tells the story of things that a search finds, by their kinds. */
const STORIES: Readonly<Record<string, StoryKind>> = {
  policy: 'policy',
  employer: 'employer',
  payroll_file: 'file',
  payment_link: 'link',
  payment_session: 'session',
  debit: 'debit',
  subscription: 'subscription',
  webhook_subscription: 'webhook',
  webhook_event: 'webhook',
}

/** Asks for the token of an operator. @param next where to go on. */
export function signInPage(next: string, refused: string | null): ConsolePage {
  return {
    title: 'Sign in',
    body: html`<div class="card stack"><h1>Sign in</h1>
${refused === null ? null : note('bad', 'You are not signed in', html`<p>${refused}</p>`, 'alert')}
<form method="post" action="/console/sign-in"><input type="hidden" name="next" value="${next}">
<div><label for="token">Operator token</label><input id="token" name="token" type="password" required autocomplete="current-password" maxlength="600" spellcheck="false"></div>
<p class="hint">You are signed out after 30 minutes without a request, and after 12 hours in any case.</p>
<button>Sign in</button></form></div>`,
  }
}

/** What a text names. @throws HttpError. */
export async function searchPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  resources: readonly Resource[],
  q: string,
): Promise<ConsolePage> {
  const heading = html`<h1>Search</h1>`
  const { data } = await call(caller, endpoints.of('GET /search'), {}, { q })
  const rows = (Array.isArray(data) ? data : []).filter(isRow)
  const leads = (row: Row): readonly Html[] => {
    const href = placeOf(endpoints, resources, row)
    return href === null ? [] : [html`<a href="${href}">Show</a>`]
  }
  const found = table('What was found', rows, { kind: 'kind', id: 'id', label: 'label' }, leads)
  return { title: 'Search', body: html`<section class="card stack">${heading}${found}</section>` }
}

/** A place of a kind of things, or its story; null: neither is there. */
function placeOf(
  endpoints: OperatorEndpoints,
  resources: readonly Resource[],
  { kind, id }: Row,
): string | null {
  const [name, key] = [String(kind).replaceAll('_', '-'), encodeURIComponent(String(id))]
  const place = resources.find(({ path }) => path === `${name}s` || path === `bank-${name}s`)
  const hasOne =
    place?.show !== undefined && endpoints.has(place.show) && (place.show.match(/\{/g) ?? []).length === 1
  if (hasOne) return `/console/${place.path}/${key}`
  const story = STORIES[String(kind)]
  return story === undefined ? null : `/console/stories/${story}/${key}`
}

/** Streams that wait behind an event that a projection could not apply. @throws HttpError. */
export async function deadLettersPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  projections: Resource,
): Promise<ConsolePage> {
  const { data } = await call(caller, endpoints.of('GET /projections'))
  const parked = (data as readonly Row[]).filter(
    ({ parked_streams, rebuild }) =>
      Number(parked_streams) > 0 || Number((rebuild as Row | null)?.parked_streams) > 0,
  )
  const shown = await Promise.all(
    parked.map(async ({ name }) => {
      const { data } = await call(caller, endpoints.of('GET /projections/{name}'), { name: String(name) })
      const whole = data as Row
      const streams = whole.parked as readonly Row[]
      const does = (row: Row) => [
        html`<a href="/console/streams/${encodeURIComponent(String(row.stream))}?from=${String(row.revision)}">What waits</a> `,
        ...linksOf(endpoints, projections.parts?.parked, row, whole),
      ]
      const columns = {
        stream: 'stream',
        event: ({ type, revision }: Row) => `${String(revision)}: ${String(type)}`,
        error: ({ category, message }: Row) => `${String(category)}: ${String(message)}`,
        attempts: 'attempts',
        parked_at: 'parked_at',
      }
      return html`<section class="card stack"><h2><a href="/console/projections/${String(name)}">${String(name)}</a></h2>${table(String(name), streams, columns, does, 12 * 1024)}</section>`
    }),
  )
  return {
    title: 'Dead letters',
    body: html`<div><h1>Dead letters</h1><p class="soft">Streams that wait behind an event that a projection could not apply. Mend the cause first; then try them again.</p></div>
${shown.length > 0 ? shown : html`<p class="card">No stream waits.</p>`}`,
  }
}
