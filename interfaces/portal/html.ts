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

type Value = string | number | Html | null | undefined | readonly Html[]

/** A piece of a page; whatever is put into it is escaped, unless it is a piece itself. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  let text = parts[0]!
  for (let at = 0; at < values.length; at += 1) text += shown(values[at]) + parts[at + 1]!
  return new Html(text)
}

function shown(value: Value): string {
  if (value instanceof Html) return value.text
  if (value === null || value === undefined) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value))
  let text = ''
  for (const { text: one } of value) text += one
  return text
}

const MEANS_SOMETHING = /[&<>"']/

function escapeHtml(text: string): string {
  if (!MEANS_SOMETHING.test(text)) return text
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)
}
