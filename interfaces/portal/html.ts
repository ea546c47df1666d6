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
