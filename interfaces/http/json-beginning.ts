import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
} from './json-bytes.ts'

/**
 * A member of the object that a JSON text begins with, read from its first bytes alone; undefined when
 * it does not stand there whole, or what stands before it cannot be read. One pass, and nothing but
 * keys and the member itself is parsed.
 */
export function memberAtBeginning(bytes: Buffer, name: string): unknown {
  const { length } = bytes
  let at = skipSpace(bytes, 0, length)
  if (bytes[at] !== OPEN_BRACE) return undefined
  do {
    const keyStart = skipSpace(bytes, at + 1, length)
    const keyEnd = bytes[keyStart] === QUOTE ? endOfString(bytes, keyStart) : -1
    const colon = skipSpace(bytes, keyEnd, length)
    if (keyEnd < 0 || bytes[colon] !== COLON) return undefined
    const start = skipSpace(bytes, colon + 1, length)
    const end = endOfValue(bytes, start)
    if (end < 0) return undefined
    if (parsed(bytes, keyStart, keyEnd) === name) return parsed(bytes, start, end)
    at = skipSpace(bytes, end, length)
  } while (bytes[at] === COMMA)
  return undefined
}

function parsed(bytes: Buffer, from: number, until: number): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', from, until))
  } catch {
    return undefined
  }
}

/** The place after a string that begins at `start`, -1 when its end is missing. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    if (bytes[at] === QUOTE) return at + 1
    if (bytes[at] === BACKSLASH) at += 1
  }
  return -1
}

/** The place after a value, -1 when its end is missing. */
function endOfValue(bytes: Buffer, start: number): number {
  if (bytes[start] === QUOTE) return endOfString(bytes, start)
  let depth = 0
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = endOfString(bytes, at) - 1
      if (at < 0) return -1
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      // a scalar ends before the bracket of what it stands in
      if (depth === 0) return at
      depth -= 1
      if (depth === 0) return at + 1
    } else if (byte === COMMA && depth === 0) {
      return at
    }
  }
  return -1
}
