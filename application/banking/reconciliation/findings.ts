import {
  DIFFERENCES_REPORTED,
  type Difference,
} from '../../../domain/banking/reconciliation/reconciliation.ts'

/** What a comparison has found so far; however much differs, it stays small. */
export class Findings {
  readonly #reported: Difference[] = []
  #count = 0

  add(difference: Pick<Difference, 'what' | 'expected' | 'found'> & Partial<Difference>): void {
    this.#count += 1
    if (this.#reported.length === DIFFERENCES_REPORTED) return
    const nothing = { tenant_id: null, environment: null, carrier_id: null, leg_id: null, file_id: null }
    this.#reported.push({ ...nothing, ...difference })
  }

  get reported(): readonly Difference[] {
    return this.#reported
  }

  get count(): number {
    return this.#count
  }
}

/** Says what of something is in a text, for a person. */
export function described(parts: Readonly<Record<string, string | number | null>>): string {
  return Object.entries(parts)
    .map(([name, value]) => `${name} ${value ?? 'none'}`)
    .join(', ')
}
