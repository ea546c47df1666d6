import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A piece of a page: text that was escaped. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A piece of a page; whatever is put into it is escaped, unless it is a piece itself. */
export function html(
  parts: TemplateStringsArray,
  ...values: readonly (string | number | Html | null | readonly Html[])[]
): Html {
  const shown = (value: (typeof values)[number] | undefined): string => {
    if (value instanceof Html) return value.text
    if (Array.isArray(value)) return value.map(shown).join('')
    return value === null || value === undefined ? '' : escapeHtml(String(value))
  }
  return new Html(parts.map((part, index) => part + shown(values[index])).join(''))
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)
}

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 32rem; margin: 4rem auto; padding: 0 1rem }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem }
dd { margin: 0; text-align: right }
.note { border-left: .25rem solid; padding-left: .75rem }
`

/** Pages have no scripts, forms or frames, and style themselves. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Writes a page. */
export function writePage(response: ServerResponse, status: number, title: string, body: Html): void {
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title}</title><style>${new Html(STYLE)}</style></head>
<body><main><h1>${title}</h1>${body}</main></body>
</html>
`.text
  response.statusCode = status
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  response.setHeader('Content-Length', Buffer.byteLength(page))
  response.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY)
  response.setHeader('Referrer-Policy', 'no-referrer')
  response.end(page)
}
