import { type Html, html } from '../../portal/html.ts'

/** An event, as far as what caused it is concerned. */
export interface Caused {
  readonly event_id: string
  readonly sentence: string
  readonly caused_by: string | null
  readonly metadata: { readonly correlation_id?: string }
}

/** Which events of a story are drawn, and how they stand. */
interface Drawn<Event> {
  /** In the order of the log. */
  readonly events: readonly Event[]
  /** Events before them; the first that is drawn has the next number. */
  readonly before: number
  /** Events that had happened at the time that is looked at. */
  readonly step: number
  /** Where an event leads, by its number. */
  readonly asOf: (number: number) => string
}

/** An event, or what caused events and is none of them. */
interface Box {
  readonly number: number | null
  readonly text: string
  readonly shown: Html
  readonly leads: Box[]
}

/** Bytes of a sentence in the picture, and in the list: the page stays below 100 KiB. */
const IN_PICTURE = 44
const IN_LIST = 80

/** Bytes of an address. */
const MOST_ADDRESS = 100

/** Units of the picture, which are pixels. */
const ROW = 24
const INDENT = 18
/** Of all indents together: beyond it they get smaller. */
const MOST_INDENT = 180
const LEFT = 8
const CHARACTER = 7.2

/**
 * What caused what: a picture for those who see it, described to those who do not, and the same as a list. Each event
 * stands below what caused it; what is no event among these, a request, a timer or another event, stands at the left.
 */
export function causation<Event extends Caused>(drawn: Drawn<Event>): Html {
  const roots = boxesOf(drawn)
  if (roots.length === 0) return html`<p class="soft">Nothing.</p>`
  return html`${picture(roots, drawn)}<details class="more"><summary>The same as a list</summary>${list(roots)}</details>`
}

function boxesOf<Event extends Caused>({ events, before, asOf }: Drawn<Event>): readonly Box[] {
  const boxes = new Map<string, Box>()
  const causes = new Map<string, Box>()
  for (const [index, { event_id, sentence, caused_by, metadata }] of events.entries()) {
    const number = before + index + 1
    const box: Box = {
      number,
      text: cut(`${number} ${sentence}`, IN_PICTURE),
      shown: html`<a href="${asOf(number)}">${number}</a> ${cut(sentence, IN_LIST)}`,
      leads: [],
    }
    // only what came before can have caused it, whatever the event says
    const cause = boxes.get(caused_by ?? '') ?? outside(causes, caused_by, metadata.correlation_id)
    cause.leads.push(box)
    boxes.set(event_id, box)
  }
  return [...causes.values()]
}

/** The cause of an event that is none of those before it. */
function outside(causes: Map<string, Box>, event: string | null, request = 'unknown'): Box {
  const [id, text, shown] =
    event === null
      ? [request, `request or timer ${request}`, html`Request or timer ${linkTo(request)}`]
      : [event, `event elsewhere ${event}`, html`Event elsewhere <code>${cut(event, IN_PICTURE)}</code>`]
  const box = causes.get(id) ?? { number: null, text: cut(text, IN_PICTURE), shown, leads: [] }
  causes.set(id, box)
  return box
}

/** Leads to what a request led to. Callers choose its id: one whose address would be long leads nowhere. */
function linkTo(request: string): Html {
  const query = new URLSearchParams({ correlation_id: request }).toString()
  const shown = cut(request, IN_PICTURE)
  return query.length > MOST_ADDRESS ? html`${shown}` : html`<a href="/console/events?${query}">${shown}</a>`
}

function picture<Event extends Caused>(roots: readonly Box[], { events, step }: Drawn<Event>): Html {
  const rows = rowsOf(roots)
  const deepest = Math.max(...rows.map(({ depth }) => depth))
  const indent = Math.min(INDENT, MOST_INDENT / deepest)
  const x = (depth: number) => LEFT + Math.round(depth * indent * 10) / 10
  const y = (row: number) => row * ROW + ROW / 2
  const edges = rows.flatMap(({ depth, under }, row) =>
    under === null ? [] : [`M${x(rows[under]!.depth)} ${y(under)}V${y(row)}H${x(depth)}`],
  )
  const shapes = rows.map(({ box: { number, text }, depth }, row) => {
    const label = html`<text x="${x(depth) + 10}" y="${y(row) + 4}">${text}</text>`
    if (number === null)
      return html`<rect x="${x(depth) - 5}" y="${y(row) - 5}" width="10" height="10" rx="2"/>${label}`
    const later = number > step ? html` class="later"` : null
    return html`<circle${later} cx="${x(depth)}" cy="${y(row)}" r="5"/>${label}`
  })
  const width = Math.ceil(
    Math.max(...rows.map(({ box, depth }) => x(depth) + 10 + box.text.length * CHARACTER)),
  )
  const height = rows.length * ROW
  const linked = rows.filter(({ under, box }) => box.number !== null && rows[under!]!.box.number !== null)
  const said = `${events.length} events: ${linked.length} were caused by another one of them, the rest by ${roots.length} requests, timers or events elsewhere. The list below says which by which.`
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Picture of what caused what"><svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="causes-title causes-said"><title id="causes-title">What caused what</title><desc id="causes-said">${said}</desc><path d="${edges.join('')}"/>${shapes}</svg></div>
<p class="small soft">Circles are events by their number, empty ones are later than what is shown; squares are requests, timers and events elsewhere.</p>`
}

interface Place {
  readonly box: Box
  readonly depth: number
  /** The row of its cause. */
  readonly under: number | null
}

/** Boxes from above to below, each below its cause. A chain may be as long as all of them: no recursion. */
function rowsOf(roots: readonly Box[]): readonly Place[] {
  const rows: Place[] = []
  const open: Place[] = roots.map((box) => ({ box, depth: 0, under: null })).reverse()
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const under = rows.push(place) - 1
    const { box, depth } = place
    open.push(...box.leads.map((one) => ({ box: one, depth: depth + 1, under })).reverse())
  }
  return rows
}

function list(boxes: readonly Box[]): Html | null {
  if (boxes.length === 0) return null
  return html`<ul>${boxes.map(({ shown, leads }) => html`<li>${shown}${list(leads)}</li>`)}</ul>`
}

/** @param most bytes as the page has them. */
function cut(text: string, most: number): string {
  if (bytesOf(text) <= most) return text
  const characters = [...text].slice(0, most)
  while (bytesOf(characters.join('')) > most - 3) characters.pop()
  return `${characters.join('')}…`
}

function bytesOf(text: string): number {
  return Buffer.byteLength(html`${text}`.text)
}
