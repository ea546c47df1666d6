/** Which numbers of a JSON text a double keeps. */

/** A number of this many characters without an exponent has no more digits than a double keeps. */
const SHORT = 15

/** Characters that a number may have, far more than any double needs to be written exactly enough. */
export const MAX_NUMBER_LENGTH = 1_000

const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Whether a byte may begin a number. */
export function beginsNumber(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2d
}

/** The place after the characters of numbers that stand from `from` on; of too many, that after the first one too much. */
export function endOfNumber(bytes: Buffer, from: number): number {
  const limit = Math.min(bytes.length, from + MAX_NUMBER_LENGTH + 1)
  let at = from
  while (at < limit && isOfNumber(bytes[at]!)) at += 1
  return at
}

/** {@link isRounded} of the number between two places. */
export function isRoundedAt(bytes: Buffer, from: number, until: number): boolean {
  if (until - from <= SHORT && !hasExponent(bytes, from, until)) return false
  return isRounded(bytes.toString('latin1', from, until))
}

/** As many digits as programs print of a double. */
const PRINTED_DIGITS = 17

/**
 * Whether reading a number changes it: it is neither the shortest decimal of its double nor that with 17 digits, which some
 * programs print (`0.10000000000000001`). One beyond the safe integers is not judged here: its field refuses it by name. What
 * is no number is not rounded. Time is linear.
 */
export function isRounded(text: string): boolean {
  const value = Number(text)
  if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) return false
  const shortest = String(value)
  if (text === shortest || !NUMBER.test(text)) return false
  const decimal = significant(text)
  return ![shortest, value.toPrecision(PRINTED_DIGITS)].some((printed) => significant(printed) === decimal)
}

/** The digits of a decimal without zeros at either end, and the power of ten of the last, or `0`; signs aside. */
function significant(text: string): string {
  const [, whole, fraction = '', exponent = 0] = NUMBER.exec(text)!
  const digits = whole + fraction
  let [from, until] = [0, digits.length]
  while (digits[from] === '0') from += 1
  while (until > from && digits[until - 1] === '0') until -= 1
  if (from === until) return '0'
  return `${digits.slice(from, until)}e${Number(exponent) - fraction.length + digits.length - until}`
}

/** Digits, `+`, `-`, `.`, `E` and `e`. */
function isOfNumber(byte: number): boolean {
  return beginsNumber(byte) || byte === 0x2b || byte === 0x2e || isExponent(byte)
}

function hasExponent(bytes: Buffer, from: number, until: number): boolean {
  for (let at = from; at < until; at += 1) if (isExponent(bytes[at]!)) return true
  return false
}

function isExponent(byte: number): boolean {
  return byte === 0x45 || byte === 0x65
}
