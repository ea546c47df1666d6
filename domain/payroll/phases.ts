import { z } from 'zod'
import { type CanonicalRow, rowPerson, rowReason, showValue } from './payroll-row.ts'
import { type PayrollTerms, resolvedClassCode, resolvedState, validateRow } from './row-validation.ts'
import { auditableCents, type PremiumTable } from './wages-and-premium.ts'

/**
 * What each phase makes of rows, and the shape of what it found. The same functions and shapes serve a chunk of a
 * file, one phase after another, and a small file as a whole.
 */

/** The terms of a policy that the phases of one file work with. */
export interface PhaseTerms {
  readonly terms: PayrollTerms
  readonly table: PremiumTable
  readonly overtimeExclusion: boolean
}

/** Phase 1. */
export const validationResult = z.object({
  green: z.number().int(),
  red: z.number().int(),
  /** The red rows. */
  failures: z.array(
    z.object({
      row_number: z.number().int(),
      person: rowPerson('row_number').optional(),
      reasons: z.array(rowReason),
    }),
  ),
  /** What would have been valid; only with failures. */
  valid: z.object({ class_codes: z.array(z.string()), states: z.array(z.string()) }).optional(),
})
export type ValidationResult = z.output<typeof validationResult>

/** Phase 2. */
export const wagesResult = z.object({
  rows_processed: z.number().int(),
  auditable_cents: z.number().int(),
  /** Per green row: [row number, auditable cents, class code, state]. */
  wages: z.array(z.tuple([z.number().int(), z.number().int(), z.string(), z.string()])),
})
export type WagesResult = z.output<typeof wagesResult>

/** Phase 3. */
export const premiumResult = z.object({
  rows_processed: z.number().int(),
  premium_cents: z.number().int(),
  /** Per green row: [row number, premium cents]. */
  premiums: z.array(z.tuple([z.number().int(), z.number().int()])),
})
export type PremiumResult = z.output<typeof premiumResult>

/** Phase 1: which rows are red, and why; beside the result the green rows, for phase 2. */
export function validateRows(
  rows: readonly CanonicalRow[],
  terms: PayrollTerms,
): { readonly result: ValidationResult; readonly green: readonly CanonicalRow[] } {
  const failures: ValidationResult['failures'] = []
  const green: CanonicalRow[] = []
  for (const row of rows) {
    const { errors } = validateRow(row, terms)
    if (errors.length === 0) {
      green.push(row)
      continue
    }
    const failure = { row_number: row.n, reasons: [...errors] }
    failures.push(row.person === undefined ? failure : { ...failure, person: row.person })
  }
  const result = { green: green.length, red: failures.length, failures }
  if (failures.length === 0) return { result, green }
  const valid = { class_codes: [...terms.class_codes], states: [...terms.states] }
  return { result: { ...result, valid }, green }
}

/** Phase 2: the auditable wages of green rows. */
export function calculateWages(
  green: readonly CanonicalRow[],
  { terms, overtimeExclusion }: Omit<PhaseTerms, 'table'>,
): WagesResult {
  const wages: WagesResult['wages'] = []
  let total = 0
  for (const row of green) {
    const state = resolvedState(row, terms)
    const cents = auditableCents(row, state, overtimeExclusion)
    wages.push([row.n, cents, resolvedClassCode(row, terms), state])
    total += cents
  }
  return { rows_processed: wages.length, auditable_cents: total, wages }
}

/**
 * Phase 3: the premium of wages.
 * @returns the error that fails the file where the table has no rate for a class code and state: that never counts as 0.
 */
export function calculatePremium(wages: WagesResult['wages'], table: PremiumTable): PremiumResult | string {
  const premiums: PremiumResult['premiums'] = []
  let total = 0
  for (const [rowNumber, wageCents, classCode, state] of wages) {
    const cents = table.premiumOf(classCode, state, wageCents)
    if (cents === null) {
      return `The policy has no rate for class code ${showValue(classCode)} in ${showValue(state)} (row ${rowNumber})`
    }
    premiums.push([rowNumber, cents])
    total += cents
  }
  return { rows_processed: premiums.length, premium_cents: total, premiums }
}
