import { type Html, html } from '../../portal/html.ts'

/** Units of the drawing; it is stretched to its place. */
const WIDTH = 600
const HEIGHT = 100

/** A line over time. */
interface Line {
  /** Unique on its page. */
  readonly id: string
  readonly title: string
  /** `events/s`. */
  readonly unit: string
  /** Oldest first, equally far apart; null: not known, the line has a gap there. */
  readonly values: readonly (number | null)[]
  readonly from: Html
  readonly to: Html
}

/** Draws a line. Its description says what it shows to those who do not see it. */
export function chart({ id, title, unit, values, from, to }: Line): Html {
  const known = values.filter((value) => value !== null)
  const most = Math.max(0, ...known)
  // the last part of the time may just have begun
  const last = values.at(-1) ?? values.at(-2) ?? null
  const now = last === null ? 'not measured at present' : `last ${short(last)} ${unit}`
  const said = known.length === 0 ? 'Not measured yet.' : `At most ${short(most)} ${unit}, ${now}.`
  return html`<figure class="chart"><figcaption>${title} <span class="soft">${said}</span></figcaption>
<svg viewBox="0 -4 ${WIDTH} ${HEIGHT + 8}" preserveAspectRatio="none" role="img" aria-labelledby="${id}-title ${id}-said"><title id="${id}-title">${title}</title><desc id="${id}-said">${said}</desc><path class="axis" d="M0 ${HEIGHT}H${WIDTH}M0 0H${WIDTH}"/><path class="line" d="${path(values, most)}"/></svg>
<p class="ends small soft"><span>${from}</span><span>${to}</span></p></figure>`
}

function path(values: readonly (number | null)[], most: number): string {
  const step = WIDTH / Math.max(1, values.length - 1)
  return values
    .map((value, at) => {
      if (value === null) return ''
      const y = HEIGHT - (most === 0 ? 0 : (value / most) * HEIGHT)
      const place = `${round(at * step)} ${round(y)}`
      // a value alone is a dot
      return at > 0 && values[at - 1] !== null ? `L${place}` : `M${place}h0`
    })
    .join('')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** A number in three digits. */
export function short(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}
