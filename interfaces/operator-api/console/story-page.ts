import type { Endpoint } from '../../endpoints/endpoint.ts'
import { HttpError } from '../../http/errors.ts'
import { type Html, html } from '../../portal/html.ts'
import { note, pill } from '../../portal/pieces.ts'
import type { OperatorHost } from '../host/api.ts'
import { type Caller, call, type OperatorEndpoints, type Texts } from './calls.ts'
import { type Caused, causation } from './causation.ts'
import { fieldsOf, input, queryOfForm } from './fields.ts'
import type { ConsolePage } from './layout.ts'
import { link, refused } from './resource-pages.ts'
import { isRow, json, moment, type Row, table, thing } from './values.ts'

/** Events that its slider goes over, which are as many as an answer has, and those that a page shows and draws. */
const EVENTS = 500
const ROWS = 50
/** Bytes of parts of the page at the most: it stays below 100 KiB. */
const STATE_BYTES = 16 * 1024
const CHANGES_BYTES = 10 * 1024
const EVENTS_BYTES = 26 * 1024

/** An event of a story, as far as the page looks into it. */
interface Told extends Caused {
  readonly position: string
  readonly recorded_at: string
  readonly about: { readonly kind: string; readonly id: string } | null
}

/** When: a place in the log or a time; null: now. */
type Point = { readonly position: string } | { readonly as_of: string } | null

/**
 * The story of a thing, its state at any of its events or times, and what has changed since then. It moves by links and
 * forms alone.
 * @returns where a step of the slider leads, where one is asked for. @throws HttpError.
 */
export async function storyPage(
  endpoints: OperatorEndpoints,
  caller: Caller,
  params: { readonly kind: string; readonly id: string },
  query: Texts,
): Promise<ConsolePage | string> {
  const shows = endpoints.of('GET /stories/{kind}/{id}')
  const told = (asked: Texts) => call(caller, shows, params, asked)
  const from: Texts = query.from ? { from: query.from } : {}
  const { data, pagination } = await told({ ...from, limit: String(EVENTS) })
  const { events, state } = data as { readonly events: readonly Told[]; readonly state: unknown }
  const here = `/console/stories/${params.kind}/${encodeURIComponent(params.id)}`
  const to = (place: Texts) => `${here}?${new URLSearchParams({ ...place, ...from }).toString()}`
  const asOf = (step: number) => to({ position: events[step - 1]!.position })
  if (query.event && events[Number(query.event) - 1]) return asOf(Number(query.event))

  const point = pointOf(shows, query)
  const past = point && (await told({ ...point, limit: '1' }).catch(refused))
  const changes =
    point && past && !(past instanceof HttpError)
      ? ((await told({ ...sinceOf(point), limit: '1' })).data as Row).changes
      : null
  const step = stepOf(events, point)
  // what belongs to it may have begun before it did
  const own = events.findIndex(({ about }) => about?.kind === params.kind && about.id === params.id) + 1
  const begins = query.from || own === 0 ? `${here}?event=1` : asOf(own)
  const pages = Math.max(1, Math.ceil(events.length / ROWS))
  const asked = Math.trunc(Number(query.page)) || Math.ceil((point === null ? 1 : step) / ROWS)
  const page = Math.min(pages, Math.max(1, asked))
  const before = (page - 1) * ROWS
  const shown = events.slice(before, before + ROWS)
  const turned = (page: number) => to({ ...point, page: String(page) })
  const next = pagination && 'next' in pagination ? pagination.next : null
  const steps = [
    step > 1 ? link(asOf(step - 1), 'Previous event') : null,
    step < events.length ? link(asOf(step + 1), 'Next event') : null,
    point === null ? null : link(to({}), 'Now'),
  ].filter((one) => one !== null)
  const title = `Story of the ${params.kind} ${params.id}`
  return {
    title,
    body: html`<div><h1>${title}</h1><p class="soft">What happened to it over all its streams, and how it stood at a time.</p></div>
<section class="card stack"><h2>As of when</h2>
<p>${whenOf(events, point, step)}</p>
${events.length < 2 ? null : slider(events.length, step, from)}
${steps.length === 0 ? null : html`<p class="do-all">${steps}</p>`}
${timeForm(shows, query, from)}</section>
${past instanceof HttpError ? unshown(past, begins) : stateOf(past ? (past.data as Row).state : state, point === null)}
${changes === null ? null : html`<section class="card stack"><h2>What has changed since</h2>${changed(changes)}</section>`}
<section class="card stack"><h2>Events</h2>${pages === 1 ? null : html`<p class="soft">${before + 1} to ${before + shown.length} of ${events.length}.</p>`}
${eventTable(shown, before, step, asOf, params)}
<p>${query.from ? link(here, 'From the beginning') : null}${page > 1 ? link(turned(page - 1), 'Earlier events') : null}${page < pages ? link(turned(page + 1), 'Later events') : null}${next === null ? null : link(`${here}?from=${String(next)}`, 'Go on')}</p></section>
<section class="card stack"><h2>What caused what</h2>
${pages === 1 && next === null && !query.from ? null : html`<p class="soft">Drawn are the events above, ${ROWS} at the most; what other events caused is not.</p>`}
${causation({ events: shown, before, step, asOf })}</section>`,
  }
}

function pointOf({ query: schema }: Pick<Endpoint<OperatorHost>, 'query'>, query: Texts): Point {
  const { position, as_of } = queryOfForm(fieldsOf(schema), query)
  if (position !== undefined) return { position }
  return as_of === undefined ? null : { as_of }
}

function sinceOf(point: NonNullable<Point>): Texts {
  return 'position' in point ? { since_position: point.position } : { since: point.as_of }
}

/** How many of some events had happened then. */
function stepOf(events: readonly Told[], point: Point): number {
  if (point === null) return events.length
  if ('as_of' in point) {
    const until = Date.parse(point.as_of)
    return events.filter(({ recorded_at }) => Date.parse(recorded_at) <= until).length
  }
  const until = /^\d+$/.test(point.position) ? BigInt(point.position) : 0n
  return events.filter(({ position }) => BigInt(position) <= until).length
}

function whenOf(events: readonly Told[], point: Point, step: number): Html {
  if (point === null) return html`Now, after the last of ${events.length} events.`
  const last = events[step - 1]
  if (!last) return html`Before the first of ${events.length} events.`
  return html`After event ${step} of ${events.length}: ${moment(last.recorded_at)}, ${last.sentence}`
}

/** A form with a slider over events: it says where it stands by its number, and goes there by its button. */
function slider(count: number, step: number, from: Texts): Html {
  const marks = Array.from({ length: count }, (_, index) => html`<option value="${index + 1}"></option>`)
  const marked = count > ROWS ? null : html`<datalist id="events">${marks}</datalist>`
  return html`<form class="slider" method="get">${hidden(from)}<label>Event, 1 to ${count} <input type="range" name="event" min="1" max="${count}" step="1" value="${Math.max(1, step)}"${marked && html` list="events"`}></label>${marked}<button class="plain">Show as of this event</button></form>`
}

function timeForm({ query: schema }: Pick<Endpoint<OperatorHost>, 'query'>, query: Texts, from: Texts): Html {
  const field = fieldsOf(schema).find(({ name }) => name === 'as_of')!
  return html`<form class="filters" method="get">${hidden(from)}${input(field, query.as_of ?? '', true)}<button class="plain">Show as of this time</button></form>`
}

function hidden(texts: Texts): readonly Html[] {
  return Object.entries(texts).map(
    ([name, text]) => html`<input type="hidden" name="${name}" value="${text}">`,
  )
}

const STOOD_THEN = 'How it stood then'

/** Says why there is no state at a point. @param begins leads to its first event. */
function unshown({ status, message }: HttpError, begins: string): Html {
  if (status !== 404) return note('bad', 'The page cannot be shown', html`<p>${message}</p>`, 'alert')
  return html`<section class="card stack"><h2>${STOOD_THEN}</h2><p>Nothing had happened to it by then. ${link(begins, 'Go to its first event')}</p></section>`
}

function stateOf(state: unknown, isNow: boolean): Html {
  const heading = isNow ? 'How it stands' : STOOD_THEN
  const shown = thing(state)
  const isLong = Buffer.byteLength(shown.text) > STATE_BYTES
  return html`<section class="card stack"><h2>${heading}</h2>${state === null ? html`<p class="soft">It is gone, or its history is too large.</p>` : isLong ? json(state, STATE_BYTES) : shown}</section>`
}

function changed(changes: unknown): Html {
  if (!Array.isArray(changes)) return html`<p class="soft">The history is too large to be compared.</p>`
  const columns = { path: 'path', 'at that time': 'before', now: 'after' }
  return table('What has changed since', changes.filter(isRow), columns, undefined, CHANGES_BYTES)
}

function eventTable(
  events: readonly Told[],
  before: number,
  step: number,
  asOf: (step: number) => string,
  of: { readonly kind: string; readonly id: string },
): Html {
  const rows = events.map((event, index) => ({ ...event, step: before + index + 1 }))
  const columns = {
    event: 'step',
    recorded: 'recorded_at',
    'known then': ({ step: at }: Row) =>
      at === step ? pill('good', 'the last') : Number(at) < step ? 'yes' : pill('calm', 'later'),
    about: ({ about }: Row) => aboutOf(about as Told['about'], of),
    'what happened': 'sentence',
  }
  const does = ({ step: at }: Row) => [link(asOf(Number(at)), 'As of this')]
  return table('Events', rows, columns, does, EVENTS_BYTES)
}

function aboutOf(about: Told['about'], of: { readonly kind: string; readonly id: string }): Html | null {
  if (about === null) return null
  if (about.kind === of.kind && about.id === of.id) return html`itself`
  return link(`/console/stories/${about.kind}/${encodeURIComponent(about.id)}`, about.kind)
}
