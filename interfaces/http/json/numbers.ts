/** A number of this many characters without an exponent has no more digits than a double keeps. */
export const SHORT = 15

const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
const EXPONENT = /[eE]/

/** As many digits as programs print of a double. */
const PRINTED_DIGITS = 17

/**
 * Whether reading a number changes it: it is neither the shortest decimal of its double nor that with 17 digits, which some
 * programs print (`0.10000000000000001`). One beyond the safe integers is not judged here: its field refuses it by name. What
 * is no number is not rounded. Time is linear.
 */
export function isRounded(text: string): boolean {
  if (text.length <= SHORT && !EXPONENT.test(text)) return false
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
