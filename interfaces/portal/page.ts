import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { palette } from './accent.ts'
import { type Html, html } from './html.ts'
import { accentStyle, STYLE } from './style.ts'

/** The tenant of a page, as its readers see it. */
export interface PageBrand {
  readonly name: string
  /** `#rrggbb`. */
  readonly accent: string | null
  /** Path of the copy of the logo on this host; null: the name stands alone. */
  readonly logo: string | null
  readonly supportEmail: string | null
}

/** A page with what its content security policy lets it do. */
export interface Page {
  readonly title: string
  readonly body: Html
  /** Null: the service's own. */
  readonly brand: PageBrand | null
  readonly isTest?: boolean
  /** Two columns where there is room for them. */
  readonly isWide?: boolean
  /** Runs on the page; it is small, and stands in it. */
  readonly script?: string
  /** What is told apart by the script when the page is loaded again. */
  readonly state?: string
  /** What scripts are told beside it. */
  readonly data?: Readonly<Record<string, string>>
  readonly policy?: Partial<Policy>
}

/** Sources of a content security policy, beside the page's own style and script. */
export interface Policy {
  readonly scripts: readonly string[]
  readonly connections: readonly string[]
  readonly frames: readonly string[]
  readonly images: readonly string[]
  readonly takesForms: boolean
  /** Origins that may show the page in a frame. */
  readonly ancestors: readonly string[]
}

const STYLE_HASH = hashOf(STYLE)
/** What every page begins with. Bytes that never change are made once. */
const HEAD = Buffer.from(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex, nofollow"><meta name="color-scheme" content="light dark"><style>${STYLE}</style>`)
const scriptOf = kept((script: string) => ({
  element: Buffer.from(`<script>${script}</script>\n`),
  hash: hashOf(script),
}))
const coloursOf = kept((accent: string) => {
  const css = accentStyle(palette(accent, 'light'), palette(accent, 'dark'))
  return { css, hash: hashOf(css) }
})

/** Writes a page that browsers do not keep, and that sends no referrer. */
export function writePage(response: ServerResponse, status: number, page: Page): void {
  const { title, body, brand, script, policy = {}, isTest = false, isWide = false } = page
  const data = Object.entries({ state: page.state ?? '', ...page.data })
  const colours = coloursOf(brand?.accent ?? '')
  const text = [
    HEAD,
    `<title>${html`${title}`.text}</title><link rel="icon" href="data:,"><style>${colours.css}</style></head>
<body class="${isWide ? 'wide' : 'narrow'}">
${header(brand, isTest, response).text}
<main${isWide ? ' class="two"' : ''}${data.map(([name, value]) => html` data-${name}="${value}"`.text).join('')}>${body.text}</main>
${footer(brand).text}
`,
    script === undefined ? '' : scriptOf(script).element,
    '</body>\n</html>\n',
  ]
  const bytes = Buffer.concat(text.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const ancestors = policy.ancestors ?? []
  response.statusCode = status
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  response.setHeader('Content-Length', bytes.length)
  response.setHeader('Content-Security-Policy', written(policy, colours.hash, script))
  response.setHeader('Referrer-Policy', 'no-referrer')
  if (ancestors.length === 0) response.setHeader('X-Frame-Options', 'DENY')
  response.end(bytes)
}

function header(brand: PageBrand | null, isTest: boolean, response: ServerResponse): Html {
  if (brand === null) return html``
  const { name, logo } = brand
  const shown =
    logo === null
      ? html`<span class="mark" aria-hidden="true">${[...name][0]?.toUpperCase() ?? ''}</span><bdi>${name}</bdi>`
      : html`<img src="${fromHere(response, logo)}" alt="${name}">`
  const tag = isTest ? html`<span class="tag">Test mode</span>` : null
  return html`<header class="bar"><div class="brand">${shown}</div>${tag}</header>`
}

/** A path of the host as a page links to it, whatever stands before both. */
function fromHere({ req }: ServerResponse, path: string): string {
  const { originalUrl = '/' } = req as { readonly originalUrl?: string }
  const { pathname } = new URL(originalUrl, 'http://page')
  return `${'../'.repeat(pathname.split('/').length - 2)}${path.slice(1)}`
}

function footer(brand: PageBrand | null): Html {
  if (!brand?.supportEmail) return html`<footer></footer>`
  const { name, supportEmail } = brand
  return html`<footer><p>Questions about this payment? Write to <bdi>${name}</bdi>: <a href="mailto:${supportEmail}">${supportEmail}</a></p></footer>`
}

function written(policy: Partial<Policy>, colourHash: string, script: string | undefined): string {
  const { scripts = [], connections = [], frames = [], images = [], ancestors = [] } = policy
  const own = script === undefined ? [] : [scriptOf(script).hash]
  return [
    "default-src 'none'",
    `style-src ${STYLE_HASH} ${colourHash}`,
    `script-src ${sources([...own, ...scripts])}`,
    `connect-src ${sources(script === undefined ? connections : ["'self'", ...connections])}`,
    `frame-src ${sources(frames)}`,
    `img-src ${sources(["'self'", 'data:', ...images])}`,
    "base-uri 'none'",
    `form-action ${policy.takesForms ? "'self'" : "'none'"}`,
    `frame-ancestors ${sources(ancestors.filter(isOrigin))}`,
  ].join('; ')
}

function sources(all: readonly string[]): string {
  return all.length === 0 ? "'none'" : all.join(' ')
}

/** Nothing else may end a directive. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text.toLowerCase()
}

function hashOf(text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`
}

/** Accent colours whose styles are kept. */
const MOST_KEPT = 1_000

/** What depends on a text alone, made once. */
function kept<Made>(make: (text: string) => Made): (text: string) => Made {
  const known = new Map<string, Made>()
  return (text) => {
    const made = known.get(text) ?? make(text)
    if (known.size >= MOST_KEPT) known.clear()
    known.set(text, made)
    return made
  }
}
