import type { Columns } from '../../endpoints/commands.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { HttpError } from '../../http/errors.ts'
import { type Html, html } from '../../portal/html.ts'
import { note } from '../../portal/pieces.ts'
import type { OperatorHost } from '../host/api.ts'
import { type Answered, type Caller, call, type OperatorEndpoints, paramsOf, type Texts } from './calls.ts'
import { fieldsOf, input, queryOfForm } from './fields.ts'
import type { ConsolePage } from './layout.ts'
import type { Action, Resource } from './resource.ts'
import { isRow, type Row, table, thing } from './values.ts'

const ROWS = 25
/** Query parameters that forms do not ask for: links set them, or the console leaves them alone. */
const NOT_ASKED = new Set(['page', 'limit', 'from', 'reveal', 'reason'])

type OperatorEndpoint = Endpoint<OperatorHost>

/** Where actions are confirmed that fit how a thing stands. */
function linksOf(
  endpoints: OperatorEndpoints,
  actions: readonly Action[] | undefined,
  row: Row,
  whole: Row = row,
  isButton = false,
): readonly Html[] {
  return (actions ?? []).flatMap(({ route, label, given, when }) => {
    if (!endpoints.has(route) || (when && !when(row, whole))) return []
    const query = new URLSearchParams({ ...paramsIn(route, row, whole), ...given?.(row) }).toString()
    const href = `/console/actions/${endpoints.of(route).operation}${query && `?${query}`}`
    return html`<a href="${href}"${isButton ? html` class="button"` : null}>${label}</a> `
  })
}

/** Where else a thing leads. */
function furtherOf(endpoints: OperatorEndpoints, { links }: Resource, row: Row): readonly Html[] {
  return (links?.(row) ?? [])
    .filter(({ route }) => route === undefined || endpoints.has(route))
    .map(({ href, label }) => link(href, label))
}

/** A list, narrowed by what the address says. @throws HttpError. */
export async function listPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  resource: Resource,
  query: Texts,
): Promise<ConsolePage> {
  const { title, about, path, whole } = resource
  const listing = await listed(caller, endpoints.of(resource.list!), {}, query)
  const rows = rowsOf(listing.data)
  const canShow = resource.show !== undefined && endpoints.has(resource.show)
  const does = (row: Row) => {
    const own = canShow ? [link(`/console/${path}/${keyOf(resource.show!, row)}`, 'Show')] : []
    return [
      ...own,
      ...storyOf(resource, row),
      ...furtherOf(endpoints, resource, row),
      ...linksOf(endpoints, resource.actions, row),
    ]
  }
  const columns = columnsOf(endpoints.of(resource.list!), rows)
  return {
    title,
    body: html`<div><h1>${title}</h1><p class="soft">${about}</p></div>
${toolbar(linksOf(endpoints, whole, {}, {}, true))}
${filters(endpoints.of(resource.list!), query)}
<section class="card">${table(title, rows, columns, does)}${turning(listing, query)}</section>`,
  }
}

/** Leads to the story of a row. */
export function storyOf({ story, show }: Resource, row: Row): readonly Html[] {
  return story && show ? [link(`/console/stories/${story}/${keyOf(show, row)}`, 'Story')] : []
}

/** A thing, with what can be done to it. @throws HttpError. */
export async function thingPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  resource: Resource,
  keys: readonly string[],
  query: Texts,
): Promise<ConsolePage> {
  const shows = endpoints.of(resource.show!)
  const params = paramsOf(shows, keys)
  const fields = askedOf(shows)
  const lists =
    resource.also !== undefined && endpoints.has(resource.also) ? endpoints.of(resource.also) : null
  const paged = lists === null ? pagingOf(shows, query) : {}
  const asked = call(caller, shows, params, { ...queryOfForm(fields, query), ...paged })
  const found = await (fields.length > 0 ? asked.catch(refused) : asked)
  const more =
    lists && (await listed(caller, lists, params, query.from === undefined ? {} : { from: query.from }))
  const title = keys.length === 0 ? resource.title : `${resource.title}: ${keys.at(-1)}`
  const whole = found instanceof HttpError || !isRow(found.data) ? {} : found.data
  const parts = Object.fromEntries(
    Object.entries(resource.parts ?? {}).map(([field, actions]) => [
      field,
      (row: Row) => linksOf(endpoints, actions, row, whole),
    ]),
  )
  const rows = more && rowsOf(more.data)
  return {
    title,
    body: html`<div><h1>${title}</h1><p class="soft">${resource.about}</p></div>
${toolbar([...(found instanceof HttpError ? [] : [...storyOf(resource, whole), ...furtherOf(endpoints, resource, whole)]), ...linksOf(endpoints, resource.actions, whole, whole, true), ...linksOf(endpoints, resource.whole, whole, whole, true)])}
${filters(shows, query)}
${found instanceof HttpError ? note('bad', 'The page cannot be shown', html`<p>${found.message}</p>`, 'alert') : html`<section class="card stack">${thing(found.data, parts)}${lists === null ? turning(found, query) : null}</section>`}
${rows && html`<section class="card stack"><h2>${lists!.summary}</h2>${table(lists!.summary, rows, columnsOf(lists!, rows), (row) => linksOf(endpoints, resource.alsoActions, row, whole))}${turning(more, query)}</section>`}`,
  }
}

/** Asks which thing. */
export function lookUpPage({ title, about, path, show }: Resource, endpoint: OperatorEndpoint): ConsolePage {
  const fields = fieldsOf(endpoint.params)
  return {
    title,
    body: html`<div><h1>${title}</h1><p class="soft">${about}</p></div>
<form class="card filters" method="get" action="/console/${path}">${fields.map((field) => input(field, ''))}<button>Show</button></form>
<p class="small soft">${show ?? ''}</p>`,
  }
}

/** A list of an endpoint, {@link ROWS} at a time. */
function listed(caller: Caller, endpoint: OperatorEndpoint, params: Texts, query: Texts): Promise<Answered> {
  const asked = queryOfForm(askedOf(endpoint), query)
  return call(caller, endpoint, params, { ...asked, ...pagingOf(endpoint, query) })
}

/** Which part of a list is asked for. */
function pagingOf(endpoint: OperatorEndpoint, query: Texts): Texts {
  const shape = endpoint.query?.shape ?? {}
  const place = ['page', 'from'].flatMap((name) =>
    name in shape && query[name] ? [[name, query[name]]] : [],
  )
  return { ...Object.fromEntries(place), ...('limit' in shape && { limit: String(ROWS) }) }
}

function askedOf({ query }: OperatorEndpoint) {
  return fieldsOf(query).filter(({ name }) => !NOT_ASKED.has(name))
}

function filters(endpoint: OperatorEndpoint, query: Texts): Html | null {
  const fields = askedOf(endpoint)
  if (fields.length === 0) return null
  return html`<form class="filters" method="get" aria-label="Narrow what is shown">${fields.map((field) => input(field, query[field.name], true))}<button class="plain">Show</button></form>`
}

/** Leads to the pages before and after. */
function turning({ pagination }: Answered, query: Texts): Html | null {
  if (!pagination) return null
  const to = (name: string, value: unknown, label: string) =>
    html`<a href="?${new URLSearchParams({ ...query, [name]: String(value) }).toString()}">${label}</a> `
  if ('next' in pagination) {
    const { next } = pagination
    return next === null ? null : html`<p>${to('from', next, 'Go on')}</p>`
  }
  const { page, total, total_pages, has_more } = pagination as Record<string, number>
  const before = Number(page) > 1 ? to('page', Number(page) - 1, 'Previous page') : null
  const after = has_more ? to('page', Number(page) + 1, 'Next page') : null
  return html`<p class="soft">${total} in all, page ${page} of ${Math.max(1, total_pages!)}. ${before}${after}</p>`
}

function toolbar(links: readonly Html[]): Html | null {
  return links.length === 0 ? null : html`<div class="do-all">${links}</div>`
}

function columnsOf({ columns }: OperatorEndpoint, rows: readonly Row[]): Columns {
  return columns ?? Object.fromEntries(Object.keys(rows[0] ?? {}).map((name) => [name, name]))
}

function rowsOf(data: unknown): readonly Row[] {
  return Array.isArray(data) ? data.filter(isRow) : []
}

/** What another time or revision may bring is shown as a part of the page; the rest is thrown on. */
export function refused(error: unknown): HttpError {
  if (error instanceof HttpError && [400, 404, 409].includes(error.status)) return error
  throw error
}

/** The parameters of a route's path, of a row or else of the thing that it is in. */
function paramsIn(route: string, row: Row, whole: Row = row): Texts {
  const names = Object.keys(paramsOf({ path: route }, []))
  return Object.fromEntries(names.map((name) => [name, String(row[name] ?? whole[name] ?? '')]))
}

/** What of an address names the thing of a row, by the route that shows it. */
function keyOf(show: string, row: Row): string {
  return Object.values(paramsIn(show, row)).map(encodeURIComponent).join('/')
}

/** A link among others. */
export function link(href: string, label: string): Html {
  return html`<a href="${href}">${label}</a> `
}
