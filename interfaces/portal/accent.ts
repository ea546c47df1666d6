/** Colours of a page that follow from a partner's accent colour, each readable where it stands (WCAG 2.2, AA). */

/** Red, green and blue, 0 to 255. */
type Colour = readonly [number, number, number]

export interface Palette {
  /** Of buttons and marks. */
  readonly accent: string
  /** Text on it. */
  readonly onAccent: string
  /** Links, borders of what is chosen, and rings around what has the focus, on the page itself. */
  readonly accentText: string
}

/** Surfaces that text stands on: the one on which a colour is the hardest to read, of each scheme. */
const SURFACES = { light: '#eef1f6', dark: '#20242d' } as const
const DEFAULT = '#1f5fd6'
const BLACK: Colour = [0, 0, 0]
const WHITE: Colour = [255, 255, 255]
/** Contrast of text with what it stands on. */
export const READABLE = 4.5
const STEPS = 40

/** The colours of a scheme. @param accent `#rrggbb`; whatever else it is, the service's own stands in. */
export function palette(accent: string, scheme: keyof typeof SURFACES): Palette {
  const surface = read(SURFACES[scheme])!
  const wanted = read(accent) ?? read(DEFAULT)!
  const ink = scheme === 'light' ? BLACK : WHITE
  const accentText = towards(wanted, ink, (one) => contrast(one, surface) >= READABLE)
  // a button that can hardly be told from the page takes the colour of its links
  const button = contrast(wanted, surface) >= 1.5 ? wanted : accentText
  const onAccent = contrast(button, WHITE) >= READABLE ? WHITE : BLACK
  return { accent: written(button), onAccent: written(onAccent), accentText: written(accentText) }
}

/** Contrast of two colours, 1 to 21. @param one, other `#rrggbb`. */
export function contrastOf(one: string, other: string): number {
  return contrast(read(one)!, read(other)!)
}

/** The first colour on the way from one to another that will do; else the other. */
function towards(from: Colour, to: Colour, isFine: (colour: Colour) => boolean): Colour {
  for (let step = 0; step < STEPS; step += 1) {
    const mixed = from.map((part, at) => Math.round(part + ((to[at]! - part) * step) / STEPS))
    if (isFine(mixed as unknown as Colour)) return mixed as unknown as Colour
  }
  return to
}

function contrast(one: Colour, other: Colour): number {
  const [bright, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number]
  return (bright + 0.05) / (dark + 0.05)
}

function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as unknown as Colour
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function read(text: string): Colour | null {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text)
  return match && (match.slice(1).map((part) => Number.parseInt(part, 16)) as unknown as Colour)
}

function written(colour: Colour): string {
  return `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
