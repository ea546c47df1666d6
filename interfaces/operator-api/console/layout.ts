import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { palette } from '../../portal/accent.ts'
import { type Html, html } from '../../portal/html.ts'
import { accentStyle, STYLE } from '../../portal/style.ts'
import type { Session } from './session.ts'

/** A page of the console. */
export interface ConsolePage {
  readonly title: string
  readonly body: Html
  /** Default 200. */
  readonly status?: number
}

/** A place that the head of each page leads to. */
export interface Place {
  readonly href: string
  readonly title: string
}

/** What the console looks like beyond hosted pages. */
const OWN_STYLE = `
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
.bar,main,footer{max-width:84rem}
.bar{padding-top:1rem;padding-bottom:.5rem}
.bar .brand{font-size:1rem}
.bar form{display:flex;gap:.5rem;align-items:end;flex:1 1 16rem}
.bar form.out{flex:none;margin-left:auto;align-items:center}
.bar label{flex:1}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem;margin:0;padding:.25rem 0 1rem}
nav a{display:block;padding:.375rem .625rem;border-radius:.5rem;text-decoration:none}
nav a[aria-current]{background:var(--accent);color:var(--on-accent)}
.scroll{overflow-x:auto}
.scroll:focus-visible{outline-offset:-3px}
th,td{padding:.375rem .75rem .375rem 0;overflow-wrap:normal}
th+th,th+td,td+td{padding-left:0}
td{max-width:28rem;overflow-wrap:anywhere;min-width:4rem}
td.time,td.do{white-space:nowrap}
td.do a{margin-right:.75rem}
thead th{vertical-align:bottom;white-space:nowrap}
dl{grid-template-columns:minmax(9rem,auto) 1fr}
dd{text-align:left}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.875rem}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
button,.button{width:auto;min-height:2.75rem;padding:.5rem 1rem;justify-self:start}
.plain{background:none;color:var(--accent-text)}
.do-all{display:flex;flex-wrap:wrap;gap:.75rem;align-items:center}
.filters{display:flex;flex-wrap:wrap;gap:.75rem;align-items:end}
.filters>*{flex:0 1 13rem}
.slider{display:flex;flex-wrap:wrap;gap:.75rem;align-items:end}
.slider label{flex:1 1 16rem}
.slider input{display:block;width:100%;min-height:2.75rem;margin:0;padding:0;accent-color:var(--accent)}
.charts{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr))}
.chart figcaption .soft{display:block}
.chart svg{display:block;width:100%;height:7rem;margin-top:.25rem}
.chart path{vector-effect:non-scaling-stroke}
.chart .axis{stroke:var(--line);stroke-width:1}
.chart .line{stroke:var(--accent-text)}
.graph{display:block;max-width:none}
.graph path{stroke:var(--edge);stroke-width:1.5}
.graph circle,.graph rect{fill:var(--accent-text);stroke:var(--accent-text)}
.graph rect{fill:var(--calm);stroke:none}
.graph .later{fill:var(--card)}
.graph text{fill:var(--ink);stroke:none;font-size:13px}
.ends{display:flex;justify-content:space-between}
details ul{margin:0;padding-left:1.25rem}
select,textarea{display:block;width:100%;margin-top:.25rem;padding:.5rem .75rem;min-height:2.75rem;font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--edge);border-radius:.5rem}
.tiles{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));list-style:none;margin:0;padding:0}
.tiles .card{padding:1rem}
.tiles strong{display:block;font-size:1.75rem;font-variant-numeric:tabular-nums}
td.num{text-align:left}
h2+*,h1+*{margin-top:.5rem}
`
const CSS = `${STYLE}${OWN_STYLE}${accentStyle(palette('', 'light'), palette('', 'dark'))}`
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', CSS, 'base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** Shows a page. Nothing runs on it, and nothing is loaded by it. @param session null: nobody is signed in. */
export function writeConsolePage(
  response: ServerResponse,
  { title, body, status = 200 }: ConsolePage,
  session: Session | null = null,
  places: readonly Place[] = [],
): void {
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex, nofollow"><meta name="color-scheme" content="light dark"><title>${title} · compstream</title><link rel="icon" href="data:,"><style>`
  const head =
    session === null
      ? html`<header class="bar"><div class="brand">compstream console</div></header>`
      : header(session)
  const rest = html`</style></head>
<body><a class="skip" href="#main">Skip to the content</a>
${head}
${session === null ? null : navigation(response, places)}
<main id="main" tabindex="-1">${body}</main>
<footer></footer>
</body>
</html>
`
  const bytes = Buffer.from(`${page.text}${CSS}${rest.text}`)
  response.statusCode = status
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  response.setHeader('Content-Length', bytes.length)
  response.setHeader('Content-Security-Policy', POLICY)
  response.setHeader('Referrer-Policy', 'same-origin')
  response.setHeader('X-Frame-Options', 'DENY')
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
  response.setHeader('Cross-Origin-Resource-Policy', 'same-origin')
  response.end(bytes)
}

/** Leads on: what was sent is not sent again by a reload. */
export function leadTo(response: ServerResponse, path: string): void {
  response.statusCode = 303
  response.setHeader('Location', path)
  response.setHeader('Content-Length', 0)
  response.end()
}

/** The field that proves where a form comes from. */
export function proofField(session: Session, of: string): Html {
  return html`<input type="hidden" name="form" value="${session.form(of)}">`
}

function header(session: Session): Html {
  return html`<header class="bar"><div class="brand">compstream console</div>
<form method="post" action="/console/search" role="search">${proofField(session, 'search')}<label>Search <input type="search" name="q" required maxlength="200" autocomplete="off"></label><button>Search</button></form>
<form method="post" action="/console/sign-out" class="out">${proofField(session, 'sign-out')}<span class="soft">${session.operator.operator_id} (${session.operator.role})</span><button class="plain">Sign out</button></form></header>`
}

function navigation(response: ServerResponse, places: readonly Place[]): Html {
  const { originalUrl = '' } = response.req as { readonly originalUrl?: string }
  const here = originalUrl.split('?')[0]!
  const one = ({ href, title }: Place) => {
    const isHere = href === here || (href !== '/console' && here.startsWith(`${href}/`))
    return html`<li><a href="${href}"${isHere ? html` aria-current="page"` : null}>${title}</a></li>`
  }
  return html`<nav class="bar" aria-label="Console"><ul>${places.map(one)}</ul></nav>`
}
