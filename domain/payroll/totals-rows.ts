import { type Decimal, decimal, divideHalfUp } from '../kernel/money.ts'
import {
  type NormalizedRow,
  normalizeRow,
  type PolicyCodes,
  type RowVocabulary,
  showValue,
} from './payroll-row.ts'
import { hoursTimesRate } from './row-validation.ts'

/**
 * A word for totals, alone or among others: `Total`, `Grand Totals:`, `Sub-total Dept 7`, `Totales`. What stands between
 * two words is looked for after the first alone: the time is linear in the name.
 */
const TOTALS = /(?<!\p{L})(?:(?:sub|grand)[\s_-]*)?total(?:s|es)?(?!\p{L})/iu

/**
 * Prepares to normalize the rows of one file, one after another, and to mark those that are totals of others as errors on
 * `gross_wages`. Such a row names nobody while another row of the file names somebody, or its name is a word for totals;
 * and its wage is the sum of at least two rows right before it, or of those since the last such row. Totals rows count in
 * no further sum.
 * @param rows all of the file: up to the first that names somebody, each is looked at, and then yields.
 * @param codes of the policy, see {@link normalizeRow}.
 * @returns what normalizes a row; to be called with each of them in order.
 */
export function* rowNormalizer(
  rows: readonly Record<string, unknown>[],
  vocabulary: RowVocabulary,
  codes: PolicyCodes,
): Generator<void, (raw: Record<string, unknown>, n: number) => NormalizedRow, void> {
  let isAnybodyNamed = false
  for (const raw of rows) {
    const normalized = normalizeRow(raw, 1, vocabulary, codes)
    isAnybodyNamed = normalized.identity !== null && !isCalledTotal(normalized)
    if (isAnybodyNamed) break
    yield
  }
  const sums = new RunningSums()
  return (raw, n) => {
    const normalized = normalizeRow(raw, n, vocabulary, codes)
    const { row, identity } = normalized
    const cents = wageCents(normalized)
    const mayBeTotal = isCalledTotal(normalized) || (identity === null && isAnybodyNamed)
    if (mayBeTotal && cents !== null && sums.isSum(cents)) {
      sums.pass()
      const value = showValue(Number(cents) / 100)
      const reason = { field: 'gross_wages', code: 'totals_row', value } as const
      row.malformed = [...(row.malformed ?? []), reason]
    } else {
      sums.add(cents ?? 0n)
    }
    return normalized
  }
}

function isCalledTotal({ person }: NormalizedRow): boolean {
  return TOTALS.test([person?.first_name, person?.last_name, person?.employee_id].join(' '))
}

/** The wage of a row in cents, half up; null where it has none that can be read. */
function wageCents({ row }: NormalizedRow): bigint | null {
  const wage: Decimal | null = row.gross_wages === undefined ? hoursTimesRate(row) : decimal(row.gross_wages)
  if (wage === null || row.malformed?.some(({ field }) => field === 'gross_wages')) return null
  return divideHalfUp(wage.digits * 100n, 10n ** BigInt(wage.scale))
}

/** Sums of consecutive rows, in constant time for each row; exact also where a wage is beyond all bounds. */
class RunningSums {
  /** The sum of all rows before a row, for each that is followed by at least two. */
  readonly #starts = new Set<bigint>()
  /** The same before the last row; null before the first. */
  #beforeLast: bigint | null = null
  #sum = 0n
  /** The sum at the last totals row, once rows follow it; null before the first. */
  #atTotal: bigint | null = null
  #isAfterTotal = false

  /** Whether an amount is the sum of at least two rows up to here, or of those since the last totals row. */
  isSum(cents: bigint): boolean {
    return this.#starts.has(this.#sum - cents) || (!this.#isAfterTotal && this.#sum - cents === this.#atTotal)
  }

  add(cents: bigint): void {
    if (this.#beforeLast !== null) this.#starts.add(this.#beforeLast)
    this.#beforeLast = this.#sum
    this.#sum += cents
    this.#isAfterTotal = false
  }

  /** Passes a totals row. */
  pass(): void {
    this.#atTotal = this.#sum
    this.#isAfterTotal = true
  }
}
