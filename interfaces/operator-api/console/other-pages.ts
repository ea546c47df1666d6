import { type Html, html } from '../../portal/html.ts'
import { note } from '../../portal/pieces.ts'
import { pluralOf } from '../host/lists.ts'
import { type Caller, call, type OperatorEndpoints, paramsOf } from './calls.ts'
import type { ConsolePage } from './layout.ts'
import type { Resource } from './resource.ts'
import { storyOf } from './resource-pages.ts'
import { isRow, type Row, table } from './values.ts'

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
  const leads = ({ kind, id }: Row): readonly Html[] => {
    const path = pluralOf(String(kind))
    const place = resources.find((one) => one.path === path)
    if (place?.show === undefined || !endpoints.has(place.show)) return []
    const [key] = Object.keys(paramsOf(endpoints.of(place.show), []))
    const href = `/console/${path}/${encodeURIComponent(String(id))}`
    return [html`<a href="${href}">Show</a> `, ...storyOf(place, { [key!]: id })]
  }
  const found = table('What was found', rows, { kind: 'kind', id: 'id', label: 'label' }, leads)
  return { title: 'Search', body: html`<section class="card stack">${heading}${found}</section>` }
}

/** All lists that have no place in the head of the pages. */
export function listsPage(all: readonly Resource[]): ConsolePage {
  return {
    title: 'Lists',
    body: html`<div><h1>Lists</h1><p class="soft">Everything else that is kept. The search finds one of them.</p></div>
<section class="card"><dl>${all.map(({ path, title, about }) => html`<div class="row"><dt><a href="/console/${path}">${title}</a></dt><dd>${about}</dd></div>`)}</dl></section>`,
  }
}
