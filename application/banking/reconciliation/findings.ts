import { DIFFERENCES_TOLD, type Difference } from '../../../domain/banking/reconciliation/reconciliation.ts'

/** What a comparison has found so far; however much differs, it stays small. */
export class Findings {
  readonly #told: Difference[] = []
  #count = 0

  add(difference: Pick<Difference, 'what' | 'expected' | 'found'> & Partial<Difference>): void {
    this.#count += 1
    if (this.#told.length === DIFFERENCES_TOLD) return
    const nothing = { tenant_id: null, environment: null, carrier_id: null, leg_id: null, file_id: null }
    this.#told.push({ ...nothing, ...difference })
  }

  get told(): readonly Difference[] {
    return this.#told
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
