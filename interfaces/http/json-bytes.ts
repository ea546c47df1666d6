/** JSON as bytes: what its structure is made of. */

export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COLON = 0x3a
export const COMMA = 0x2c
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d

/** Whether the hex digits at `at` can be NUL (`0000`) or a surrogate (`d8..` to `df..`). */
export function isDoubtful(bytes: Buffer, at: number): boolean {
  const first = bytes[at]
  if (first === 0x64 || first === 0x44) return true
  return first === 0x30 && bytes[at + 1] === 0x30 && bytes[at + 2] === 0x30 && bytes[at + 3] === 0x30
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** The first place from `from` on, before `end`, that is no white space; else `end`. */
export function skipSpace(bytes: Buffer, from: number, end: number): number {
  let at = from
  while (at < end && isSpace(bytes[at])) at += 1
  return at
}

/** The place after the last byte before `end`, from `from` on, that is no white space; else `from`. */
export function skipSpaceBack(bytes: Buffer, from: number, end: number): number {
  let at = end
  while (at > from && isSpace(bytes[at - 1])) at -= 1
  return at
}
