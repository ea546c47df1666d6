/**
 * What no text of PostgreSQL holds although a JSON text may: U+0000, and half of a surrogate pair, each as
 * `JSON.stringify` escapes it. Other escapes are stepped over.
 */
const ESCAPE = /\\(?:u(0000|d[89a-f]..)|.)/g

/** Whether PostgreSQL can take a JSON text apart. @param json as `JSON.stringify` writes it. */
export function isStorable(json: string): boolean {
  return storable(json) === json
}

/** A JSON text that PostgreSQL can take apart: what it cannot hold is replaced by U+FFFD. */
export function storable(json: string): string {
  if (!json.includes('\\ud') && !json.includes('\\u0000')) return json
  return json.replace(ESCAPE, (sequence, unstorable) => (unstorable ? '\ufffd' : sequence))
}
