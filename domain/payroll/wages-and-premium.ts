import { decimal, divideHalfUp, premiumCents } from '../kernel/money.ts'
import type { CanonicalRow } from './payroll-row.ts'
import { hoursTimesRate } from './row-validation.ts'

/**
 * Where the premium part of overtime pay is not excluded from remuneration: Pennsylvania, Delaware,
 * Nevada and Utah do not follow NCCI Basic Manual rule 2-C-2 here.
 */
const NO_OVERTIME_EXCLUSION = new Set(['PA', 'DE', 'NV', 'UT'])

/**
 * Auditable wages of a green row in cents, half up. Overtime lies inside gross wages and is never
 * added; with `overtimeExclusion`, one third of it (the premium part of time and a half) is deducted.
 * @param state the row's resolved state.
 */
export function auditableCents(row: CanonicalRow, state: string, overtimeExclusion: boolean): number {
  const wage = row.gross_wages === undefined ? hoursTimesRate(row)! : decimal(row.gross_wages)!
  const excluded =
    overtimeExclusion && !NO_OVERTIME_EXCLUSION.has(state) && row.overtime !== undefined
      ? decimal(row.overtime)!
      : { digits: 0n, scale: 0 }
  // one exact fraction, (3 x wage - overtime) / 3, so that only the result is rounded
  const scale = Math.max(wage.scale, excluded.scale)
  const thirds =
    3n * wage.digits * 10n ** BigInt(scale - wage.scale) -
    excluded.digits * 10n ** BigInt(scale - excluded.scale)
  const cents = Number(divideHalfUp(thirds * 100n, 3n * 10n ** BigInt(scale)))
  return Math.max(0, cents)
}

/** A policy's rate of one class code in one state: dollars of premium per 100 dollars of wages, as a decimal string. */
export interface PremiumRate {
  readonly class_code: string
  readonly state: string
  readonly rate_per_100: string
}

/** Finds the premium of wages by class code and state. */
export interface PremiumTable {
  /** Premium in cents, or null when the table has no rate for that class code and state. */
  premiumOf(classCode: string, state: string, wageCents: number): number | null
}

/** A look-up over a policy's rates. A policy without any rates charges 0; a gap among rates is null, never 0. */
export function premiumTable(rates: readonly PremiumRate[]): PremiumTable {
  const byKey = new Map(
    rates.map((rate) => [`${rate.class_code}|${rate.state}`, decimal(rate.rate_per_100)!]),
  )
  return {
    premiumOf(classCode, state, wageCents) {
      if (byKey.size === 0) return 0
      const rate = byKey.get(`${classCode}|${state}`)
      return rate ? premiumCents(wageCents, rate) : null
    },
  }
}
