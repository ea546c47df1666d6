const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * A member of the object that a JSON text begins with, read from its first bytes alone; undefined when
 * it does not stand there whole, or what stands before it cannot be read. One pass, and nothing but
 * keys and the member itself is parsed.
 */
export function memberAtBeginning(bytes: Buffer, name: string): unknown {
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== 0x7b) return undefined
  do {
    const keyStart = skipSpace(bytes, at + 1)
    const keyEnd = bytes[keyStart] === QUOTE ? endOfString(bytes, keyStart) : -1
    const colon = skipSpace(bytes, keyEnd)
    if (keyEnd < 0 || bytes[colon] !== 0x3a) return undefined
    const start = skipSpace(bytes, colon + 1)
    const end = endOfValue(bytes, start)
    if (end < 0) return undefined
    if (parsed(bytes, keyStart, keyEnd) === name) return parsed(bytes, start, end)
    at = skipSpace(bytes, end)
  } while (bytes[at] === 0x2c)
  return undefined
}

function parsed(bytes: Buffer, from: number, until: number): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', from, until))
  } catch {
    return undefined
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
  return at
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
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1
    } else if (byte === 0x7d || byte === 0x5d) {
      // a scalar ends before the bracket of what it stands in
      if (depth === 0) return at
      depth -= 1
      if (depth === 0) return at + 1
    } else if (byte === 0x2c && depth === 0) {
      return at
    }
  }
  return -1
}
