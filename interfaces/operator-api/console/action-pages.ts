import type { Endpoint } from '../../endpoints/endpoint.ts'
import { HttpError } from '../../http/errors.ts'
import { type Html, html } from '../../portal/html.ts'
import { note } from '../../portal/pieces.ts'
import type { OperatorHost } from '../host/api.ts'
import { PendingAction } from '../host/second-operator.ts'
import { type Caller, call, type OperatorEndpoints, paramsOf, type Texts } from './calls.ts'
import { bodyOfForm, type Field, fieldsOf, input } from './fields.ts'
import { type ConsolePage, proofField } from './layout.ts'
import type { Action, Resource } from './resource.ts'
import type { Session } from './session.ts'
import { type Row, thing, words } from './values.ts'

const WAITS =
  'Nothing has happened yet: another operator must approve it, under Pending actions, before it expires.'

/** An action of the console, and where it belongs. */
export interface Doing {
  readonly endpoint: Endpoint<OperatorHost>
  readonly label: string
  /** Where the same is done to all at once: what that is called. */
  readonly labelOfAll?: string | undefined
  readonly resource: Resource
}

/** All actions that the console offers, by the names of their operations. Nothing else can be done by it. */
export function doingsOf(
  endpoints: OperatorEndpoints,
  resources: readonly Resource[],
): ReadonlyMap<string, Doing> {
  const all = resources.flatMap((resource) => {
    const actions: readonly Action[] = [
      ...(resource.actions ?? []),
      ...(resource.alsoActions ?? []),
      ...Object.values(resource.parts ?? {}).flat(),
      ...(resource.whole ?? []),
    ]
    return actions
      .filter(({ route, isDry }) => !isDry && endpoints.has(route))
      .map((action) => ({ ...action, resource }))
  })
  const ofAll = resources.flatMap(({ whole }) => whole ?? [])
  return new Map(
    all.reverse().map(({ route, label, resource }) => {
      const endpoint = endpoints.of(route)
      const { label: labelOfAll } = ofAll.find((one) => one.route === route) ?? {}
      return [endpoint.operation, { endpoint, label, labelOfAll, resource }]
    }),
  )
}

/** What it is called, by what is given: nothing is all. */
function labelOf({ label, labelOfAll = label }: Doing, given: Texts): string {
  return Object.keys(given).some((name) => name !== 'dry_run') ? label : labelOfAll
}

/** What an address says of an action: parameters of its path, and fields of its body. */
function saidBy({ endpoint }: Doing, query: Texts) {
  const names = Object.keys(paramsOf(endpoint, []))
  const isParam = ([name]: readonly [string, string]) => names.includes(name)
  const entries = Object.entries(query)
  return {
    params: Object.fromEntries(entries.filter(isParam)) as Texts,
    preset: Object.fromEntries(entries.filter((one) => !isParam(one))) as Texts,
  }
}

/** Asks whether something shall be done, and says what follows from it. @param refused why it was not done. */
export async function confirmPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  session: Session,
  doing: Doing,
  query: Texts,
  refused: { readonly error: HttpError; readonly typed: Texts } | null = null,
): Promise<ConsolePage> {
  const { endpoint, resource } = doing
  const { params, preset } = saidBy(doing, query)
  const asked = fieldsOf(endpoint.body).filter(({ name }) => !(name in preset))
  const named = { ...params, ...preset }
  const about = await aboutOf(endpoints, caller, doing, params)
  const title = endpoint.summary
  const effect = (endpoint.description ?? '').replaceAll('`', '')
  const alert =
    refused && note('bad', 'The action was not done', html`<p>${refused.error.message}</p>`, 'alert')
  return {
    title,
    body: html`<div class="card stack"><h1>${title}</h1>
${alert}${effect === '' ? null : html`<p class="text">${effect}</p>`}
${Object.keys(named).length === 0 ? null : html`<dl>${Object.entries(named).map(([name, one]) => html`<div class="row"><dt>${words(name)}</dt><dd><code>${one}</code></dd></div>`)}</dl>`}
<form method="post" action="${caller.request.originalUrl}">${proofField(session, caller.request.originalUrl)}
${asked.map((field) => input(field, refused?.typed[field.name]))}
<div class="do-all"><button>${preset.dry_run === 'true' ? 'Dry run' : labelOf(doing, named)}</button> <a href="/console/${resource.path}">Leave it as it is</a></div></form></div>
${about === null ? null : html`<section class="card stack"><h2>How it stands now</h2>${thing(about)}</section>`}`,
  }
}

/** Does it. @throws HttpError for what the endpoint refuses, or where the reason is missing. */
export async function done(caller: Caller, doing: Doing, query: Texts, typed: Texts): Promise<ConsolePage> {
  const { endpoint, resource } = doing
  const { params, preset } = saidBy(doing, query)
  const label = labelOf(doing, { ...params, ...preset })
  const fields = fieldsOf(endpoint.body)
  requireReason(fields, { ...preset, ...typed })
  const sent = { ...preset, ...bodyOfForm(fields, { ...typed, ...preset }) }
  const { status, data } = await call(caller, endpoint, params, {}, sent)
  const isWaiting = status === 202 && endpoint.answers[202] === PendingAction
  const isDryRun = (sent as Row).dry_run === true
  const [title, what] = isWaiting
    ? [`Waits: ${label}`, WAITS]
    : isDryRun
      ? [`Dry run: ${label}`, 'Nothing was changed: this is what it would be done to.']
      : [`Done: ${label}`, `${endpoint.summary}.`]
  return {
    title,
    body: html`<div class="card stack"><h1>${title}</h1><p>${what}</p>${thing(data)}
<p class="do-all">${isDryRun ? inEarnest(doing, { ...typed, ...query }) : null}<a href="/console/${resource.path}">Go on to ${resource.title}</a></p></div>`,
  }
}

/** Leads from a dry run to the same without it. */
function inEarnest(doing: Doing, given: Texts): Html {
  const { endpoint } = doing
  const same = Object.fromEntries(
    Object.entries(given).filter(([name, text]) => name !== 'dry_run' && text.trim() !== ''),
  )
  const label = labelOf(doing, same)
  const query = new URLSearchParams(same).toString()
  return html`<a class="button" href="/console/actions/${endpoint.operation}${query && `?${query}`}">${label}</a>`
}

function requireReason(fields: readonly Field[], given: Texts): void {
  const missing = fields.find(({ name, kind }) => kind === 'reason' && !given[name]?.trim())
  if (!missing) return
  throw new HttpError(400, null, `${missing.name} is required: say why`, {
    code: 'field_missing',
    field: missing.name,
  })
}

/** The thing that an action is about, where the API shows it by the same parameters; null: nothing to show. */
async function aboutOf(
  endpoints: OperatorEndpoints,
  caller: Caller,
  { resource, endpoint }: Doing,
  params: Texts,
): Promise<unknown> {
  const { show } = resource
  if (show === undefined || !endpoints.has(show)) return null
  const shows = endpoints.of(show)
  const names = Object.keys(paramsOf(shows, []))
  if (names.length === 0 || !endpoint.path.startsWith(shows.path) || names.some((name) => !params[name]))
    return null
  return call(caller, shows, params).then(
    ({ data }) => data,
    // the endpoint itself says so
    (error: unknown) => {
      if (error instanceof HttpError && error.status === 404) return null
      throw error
    },
  )
}
