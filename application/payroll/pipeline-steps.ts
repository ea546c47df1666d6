import { fold } from '../../domain/kernel/decider.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import {
  type NextStep,
  nextStep,
  type PayrollFileCommand,
  type PayrollFileEvent,
  type PayrollFileStage,
  payrollFile,
} from '../../domain/payroll/payroll-file.ts'
import type { PayrollTerms } from '../../domain/payroll/row-validation.ts'
import { type PremiumTable, premiumTable } from '../../domain/payroll/wages-and-premium.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import type { FaultMode } from '../ports/faults.ts'

/** What the phases of the pipeline take from a policy. */
export interface PipelineTerms {
  readonly terms: PayrollTerms
  readonly table: PremiumTable
  readonly overtimeExclusion: boolean
}

/** The terms that all phases of one file work with. */
export function pipelineTerms(policy: Policy): PipelineTerms {
  const { class_codes, states, effective_date, expiration_date } = policy
  return {
    terms: { class_codes, states, effective_date, expiration_date },
    table: premiumTable(policy.rates),
    overtimeExclusion: policy.overtime_exclusion,
  }
}

/** A phase that works on one chunk after another. */
export type ChunkStep = Extract<NextStep, { readonly chunk: number }>['step']
export type RecordedRows = Extract<PayrollFileEvent, { type: 'PayrollRowsRecorded' }>['data']
export type CalculatedWages = Extract<PayrollFileEvent, { type: 'PayrollWagesCalculated' }>['data']

/** The command of a phase that works on a chunk's rows. */
export function rowsCommand(
  step: 'validate' | 'calculate_wages',
  recorded: RecordedRows,
  { terms, overtimeExclusion }: PipelineTerms,
): PayrollFileCommand {
  return step === 'validate'
    ? { type: 'ValidateChunk', recorded, terms }
    : { type: 'CalculateWages', recorded, terms, overtimeExclusion }
}

/** The command of the phase that works on a chunk's wages. */
export function premiumCommand(calculated: CalculatedWages, { table }: PipelineTerms): PayrollFileCommand {
  return { type: 'CalculatePremium', calculated, table }
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

/** Revision of the event with a chunk's rows in the stream of its file. */
export function rowsRevision(chunk: number): number {
  return 1 + chunk
}

/** Revision of the event with a chunk's wages: after received, rows, normalized and validated. */
export function wagesRevision(chunkCount: number, chunk: number): number {
  return 2 + 2 * chunkCount + chunk
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

/**
 * The events that take a file whose rows are all at hand through every phase, so that they can be
 * stored together with the rows. They end early where one fails the file (a missing rate).
 * @param recorded everything in the file's stream so far: received and all rows.
 * @param policyRevision revision of the policy's stream that `policy` is the state at.
 */
export function inlinePhases(
  recorded: readonly PayrollFileEvent[],
  policy: Policy,
  policyRevision: number,
): readonly PayrollFileEvent[] | Rejection {
  const terms = pipelineTerms(policy)
  const rows: RecordedRows[] = []
  const wages: CalculatedWages[] = []
  for (const event of recorded) if (event.type === 'PayrollRowsRecorded') rows.push(event.data)
  const events: PayrollFileEvent[] = []
  let file = fold(payrollFile, recorded)
  for (;;) {
    const next = nextStep(file)
    let command: PayrollFileCommand
    if (next.step === 'normalize') command = { type: 'Normalize', policyRevision }
    else if (next.step === 'validate' || next.step === 'calculate_wages') {
      command = rowsCommand(next.step, rows[next.chunk]!, terms)
    } else if (next.step === 'calculate_premium') command = premiumCommand(wages[next.chunk]!, terms)
    else return events
    const decided = payrollFile.decide(command, file)
    if (isRejection(decided)) return decided
    for (const event of decided) {
      if (event.type === 'PayrollWagesCalculated') wages.push(event.data)
      file = payrollFile.evolve(file, event)
      events.push(event)
    }
  }
}
