import type { NextStep, PayrollFileCommand } from '../../domain/payroll/payroll-file.ts'
import type {
  CalculatedWages,
  PayrollFileStage,
  RecordedRows,
} from '../../domain/payroll/payroll-file-events.ts'
import type { PhaseTerms } from '../../domain/payroll/phases.ts'
import { premiumTable } from '../../domain/payroll/wages-and-premium.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import type { FaultMode } from '../ports/faults.ts'

/** Policies are cached; what derives from one is kept as long as it is. */
const termsByPolicy = new WeakMap<Policy, PhaseTerms>()

/** The terms that all phases of one file work with. */
export function phaseTerms(policy: Policy): PhaseTerms {
  let derived = termsByPolicy.get(policy)
  if (!derived) {
    const { class_codes, states, effective_date, expiration_date } = policy
    derived = {
      terms: { class_codes, states, effective_date, expiration_date },
      table: premiumTable(policy.rates),
      overtimeExclusion: policy.overtime_exclusion,
    }
    termsByPolicy.set(policy, derived)
  }
  return derived
}

/** A phase that works on one chunk after another. */
export type ChunkStep = Extract<NextStep, { readonly chunk: number }>['step']

/** The command of a phase that works on a chunk's rows. */
export function rowsCommand(
  step: 'validate' | 'calculate_wages',
  recorded: RecordedRows,
  { terms, overtimeExclusion }: PhaseTerms,
): PayrollFileCommand {
  return step === 'validate'
    ? { type: 'ValidateChunk', recorded, terms }
    : { type: 'CalculateWages', recorded, terms, overtimeExclusion }
}

/**
 * The command of the phase that works on a chunk's wages.
 * @param debitAccountId from which the premium is debited; it counts with the last chunk.
 */
export function premiumCommand(
  calculated: CalculatedWages,
  { table }: PhaseTerms,
  debitAccountId: string | null,
): PayrollFileCommand {
  return { type: 'CalculatePremium', calculated, table, debitAccountId }
}

/** The stage that a failure before or in a step belongs to. */
export function stageOf(step: NextStep['step']): PayrollFileStage {
  switch (step) {
    case 'validate':
      return 'validation'
    case 'calculate_wages':
      return 'wage_calculation'
    case 'calculate_premium':
      return 'premium_calculation'
    default:
      return 'file_creation'
  }
}

/** The error of a file that an injected fault failed. */
export function pipelineFault(mode: FaultMode): string {
  switch (mode) {
    case 'timeout':
      return 'The payroll pipeline did not answer in time'
    case 'unreachable':
      return 'The payroll pipeline could not be reached'
    default:
      return 'The payroll pipeline refused the file'
  }
}
