import type { IncomingHttpHeaders } from 'node:http'

/** A header's value; null when it is absent or empty. Of a repeated one all values, joined. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  if (typeof value === 'string') return value === '' ? null : value
  return value === undefined ? null : value.join(', ')
}
