/**
 * Exact decimal arithmetic for money. Amounts are integer cents (JavaScript numbers within the safe
 * range); everything that is not whole cents is a {@link Decimal}, never a float.
 */

/** An exact decimal: `digits` x 10^-`scale`. */
export interface Decimal {
  readonly digits: bigint
  /** Number of digits after the point, 0 or more. */
  readonly scale: number
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/

/**
 * Parses a decimal string, or a JavaScript number by its shortest decimal form (the one that JSON
 * shows), so that 1000.505 means exactly that.
 * @returns null when the value is not finite or not a decimal.
 */
export function decimal(value: string | number): Decimal | null {
  const match = DECIMAL.exec(typeof value === 'number' ? String(value) : value.trim())
  if (!match) return null
  const fraction = match[3] ?? ''
  let digits = BigInt(match[2]! + fraction)
  let scale = fraction.length - Number(match[4] ?? 0)
  if (scale < 0) {
    digits *= 10n ** BigInt(-scale)
    scale = 0
  }
  return { digits: match[1] ? -digits : digits, scale }
}

/** Exact product. */
export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale }
}

/** Compares two decimals: negative, zero or positive like a sort function. */
export function compare(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale)
  const left = a.digits * 10n ** BigInt(scale - a.scale)
  const right = b.digits * 10n ** BigInt(scale - b.scale)
  return left < right ? -1 : left > right ? 1 : 0
}

/** `numerator / denominator` to the nearest integer, halves away from zero ("half up" on amounts). */
export function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n !== denominator < 0n
  const n = numerator < 0n ? -numerator : numerator
  const d = denominator < 0n ? -denominator : denominator
  const quotient = (2n * n + d) / (2n * d)
  return negative ? -quotient : quotient
}

/**
 * Premium of one row: `cents` of auditable wages x `ratePer100` dollars per 100 dollars, in whole
 * cents, half up.
 */
export function premiumCents(cents: number, ratePer100: Decimal): number {
  return Number(divideHalfUp(BigInt(cents) * ratePer100.digits, 100n * 10n ** BigInt(ratePer100.scale)))
}

/** Cents as they are written for people: `$1,234.50`. */
export function dollars(cents: number): string {
  const whole = Math.trunc(Math.abs(cents) / 100).toLocaleString('en-US')
  return `${cents < 0 ? '-' : ''}$${whole}.${String(Math.abs(cents) % 100).padStart(2, '0')}`
}

/** Dollars as whole cents, exactly; null where they have fractions of a cent. */
export function centsOf(dollars: number): number | null {
  const exact = decimal(dollars)
  if (exact === null || exact.scale > 2) return null
  return Number(exact.digits * 10n ** BigInt(2 - exact.scale))
}
