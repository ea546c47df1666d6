import type { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { dollars } from '../kernel/money.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import {
  type PayrollFileEvent,
  PayrollFileFailed,
  PayrollFileNormalized,
  PayrollFileProcessed,
  PayrollFileReceived,
  type PayrollFileStage,
  PayrollPremiumCalculated,
  PayrollRowsRecorded,
  PayrollRowsValidated,
  PayrollWagesCalculated,
  payrollFileEvents,
  type ReceivedFile,
} from './payroll-file-events.ts'
import type { CanonicalRow } from './payroll-row.ts'
import { calculatePremium, calculateWages, type PhaseTerms, validateRows } from './phases.ts'
import type { PayrollTerms } from './row-validation.ts'
import type { PremiumTable } from './wages-and-premium.ts'

/**
 * A payroll file: rows of one report against one policy, and what the pipeline made of them, in one
 * stream. A file of one chunk that is processed at once is two events, in one append:
 *
 *   received with its rows, processed
 *
 * Rows and results of any other stand in chunks, so that no event, append or array grows with the file:
 *
 *   received, rows x chunks, normalized, validated x chunks, wages x chunks, premium x chunks
 *
 * Each phase works strictly after the one before it, chunk by chunk; the stream itself tells where
 * to go on after a crash.
 */

/** Rows in a chunk at the most; a chunk is also closed at {@link CHUNK_BYTES} of JSON. */
export const CHUNK_ROWS = 500
export const CHUNK_BYTES = 256 * 1024

// ---- state

/** What the stream says so far; sums only, so that it stays small for any file. */
export interface PayrollFile {
  readonly received: ReceivedFile | null
  readonly chunks_recorded: number
  readonly rows_recorded: number
  readonly policy_revision: number | null
  readonly validated: { readonly chunks: number; readonly green: number; readonly red: number }
  readonly wages: { readonly chunks: number; readonly rows: number; readonly cents: number }
  readonly premium: { readonly chunks: number; readonly rows: number; readonly cents: number }
  readonly failed: { readonly stage: PayrollFileStage; readonly error: string } | null
}

const initialState: PayrollFile = {
  received: null,
  chunks_recorded: 0,
  rows_recorded: 0,
  policy_revision: null,
  validated: { chunks: 0, green: 0, red: 0 },
  wages: { chunks: 0, rows: 0, cents: 0 },
  premium: { chunks: 0, rows: 0, cents: 0 },
  failed: null,
}

function evolve(state: PayrollFile, event: PayrollFileEvent): PayrollFile {
  switch (event.type) {
    case 'PayrollFileReceived': {
      const { rows, ...received } = event.data
      return rows
        ? { ...state, received, chunks_recorded: 1, rows_recorded: rows.length }
        : { ...state, received }
    }
    case 'PayrollFileProcessed': {
      const { policy_revision, validation, wages, premium } = event.data
      return {
        ...state,
        policy_revision,
        validated: { chunks: 1, green: validation.green, red: validation.red },
        wages: { chunks: 1, rows: wages.rows_processed, cents: wages.auditable_cents },
        premium: premium
          ? { chunks: 1, rows: premium.rows_processed, cents: premium.premium_cents }
          : state.premium,
      }
    }
    case 'PayrollRowsRecorded':
      return {
        ...state,
        chunks_recorded: state.chunks_recorded + 1,
        rows_recorded: state.rows_recorded + event.data.rows.length,
      }
    case 'PayrollFileNormalized':
      return { ...state, policy_revision: event.data.policy_revision }
    case 'PayrollRowsValidated':
      return {
        ...state,
        validated: {
          chunks: state.validated.chunks + 1,
          green: state.validated.green + event.data.green,
          red: state.validated.red + event.data.red,
        },
      }
    case 'PayrollWagesCalculated':
      return {
        ...state,
        wages: {
          chunks: state.wages.chunks + 1,
          rows: state.wages.rows + event.data.rows_processed,
          cents: state.wages.cents + event.data.auditable_cents,
        },
      }
    case 'PayrollPremiumCalculated':
      return {
        ...state,
        premium: {
          chunks: state.premium.chunks + 1,
          rows: state.premium.rows + event.data.rows_processed,
          cents: state.premium.cents + event.data.premium_cents,
        },
      }
    case 'PayrollFileFailed':
      return { ...state, failed: { stage: event.data.stage, error: event.data.error } }
  }
}

/** What has to happen next to a file. */
export type NextStep =
  | { readonly step: 'record_rows' | 'normalize' | 'complete' | 'failed' }
  | { readonly step: 'validate' | 'calculate_wages' | 'calculate_premium'; readonly chunk: number }

/** Where the pipeline goes on with a file; the strict order of the phases is this function. */
export function nextStep(file: PayrollFile): NextStep {
  if (file.failed) return { step: 'failed' }
  const chunks = file.received?.chunk_count ?? Number.POSITIVE_INFINITY
  if (file.chunks_recorded < chunks) return { step: 'record_rows' }
  if (file.policy_revision === null) return { step: 'normalize' }
  if (file.validated.chunks < chunks) return { step: 'validate', chunk: file.validated.chunks }
  if (file.wages.chunks < chunks) return { step: 'calculate_wages', chunk: file.wages.chunks }
  if (file.premium.chunks < chunks) return { step: 'calculate_premium', chunk: file.premium.chunks }
  return { step: 'complete' }
}

// ---- commands

type RecordedRows = z.output<typeof PayrollRowsRecorded.schema>
type CompletedFile = NonNullable<z.output<typeof PayrollPremiumCalculated.schema>['completed']>
type CalculatedWages = z.output<typeof PayrollWagesCalculated.schema>
/** The active primary ACH account of the employer, from which premium is debited; null: it has none. */
type DebitAccountId = string | null

export type PayrollFileCommand =
  | { readonly type: 'Receive'; readonly data: ReceivedFile }
  /** For a file whose rows are all at hand. */
  | ({
      readonly type: 'ReceiveAndProcess'
      readonly data: ReceivedFile
      readonly rows: readonly CanonicalRow[]
      readonly policyRevision: number
      readonly debitAccountId: DebitAccountId
    } & PhaseTerms)
  | { readonly type: 'RecordRows'; readonly rows: RecordedRows['rows'] }
  | { readonly type: 'Normalize'; readonly policyRevision: number }
  | { readonly type: 'ValidateChunk'; readonly recorded: RecordedRows; readonly terms: PayrollTerms }
  | ({ readonly type: 'CalculateWages'; readonly recorded: RecordedRows } & Omit<PhaseTerms, 'table'>)
  | {
      readonly type: 'CalculatePremium'
      readonly calculated: CalculatedWages
      readonly table: PremiumTable
      readonly debitAccountId: DebitAccountId
    }
  | { readonly type: 'Fail'; readonly stage: PayrollFileStage; readonly error: string }

function decide(command: PayrollFileCommand, file: PayrollFile): readonly PayrollFileEvent[] | Rejection {
  if (command.type === 'Receive' || command.type === 'ReceiveAndProcess') {
    if (file.received) return reject('conflict', 'file_exists', 'The file was received already')
    return command.type === 'Receive' ? [PayrollFileReceived.of(command.data)] : processed(command)
  }
  if (!file.received) return reject('not_found', 'file_not_found', 'No such file')
  const next = nextStep(file)
  const isNext = (step: NextStep['step'], { chunk }: { readonly chunk: number }) =>
    next.step === step && 'chunk' in next && next.chunk === chunk
  const { file_id, chunk_count } = file.received
  switch (command.type) {
    case 'RecordRows': {
      if (next.step !== 'record_rows') return outOfOrder(command.type, next)
      const chunk = file.chunks_recorded
      return [PayrollRowsRecorded.of({ file_id, chunk, last: chunk === chunk_count - 1, rows: command.rows })]
    }
    case 'Normalize':
      if (next.step !== 'normalize') return outOfOrder(command.type, next)
      return [
        PayrollFileNormalized.of({
          file_id,
          row_count: file.rows_recorded,
          policy_revision: command.policyRevision,
        }),
      ]
    case 'ValidateChunk':
      if (!isNext('validate', command.recorded)) return outOfOrder(command.type, next)
      return [validated(command.recorded, command.terms)]
    case 'CalculateWages':
      if (!isNext('calculate_wages', command.recorded)) return outOfOrder(command.type, next)
      return [wages(command.recorded, command)]
    case 'CalculatePremium':
      if (!isNext('calculate_premium', command.calculated)) return outOfOrder(command.type, next)
      return [premium(command, file)]
    case 'Fail':
      if (next.step === 'failed' || next.step === 'complete') return []
      return [PayrollFileFailed.of({ file_id, stage: command.stage, error: command.error })]
  }
}

function outOfOrder(command: string, next: NextStep): Rejection {
  return reject('conflict', 'out_of_order', `${command} does not come next for this file: ${next.step} does`)
}

function processed(
  command: Extract<PayrollFileCommand, { type: 'ReceiveAndProcess' }>,
): readonly PayrollFileEvent[] {
  const { data, policyRevision, terms, table, debitAccountId } = command
  const rows = [...command.rows]
  const { result: validation, green } = validateRows(rows, terms)
  const wages = calculateWages(green, command)
  const premium = calculatePremium(wages.wages, table)
  const { file_id, employer_id, policy_id, policy_number, row_count, period } = data
  const file = { file_id, employer_id, policy_id, policy_number, row_count, period }
  const results = { ...file, policy_revision: policyRevision, validation, wages }
  const received = PayrollFileReceived.of({ ...data, rows })
  return typeof premium === 'string'
    ? [received, PayrollFileProcessed.of({ ...results, premium: null }), withoutPremium(file_id, premium)]
    : [
        received,
        PayrollFileProcessed.of({ ...results, premium, ...debited(premium.premium_cents, debitAccountId) }),
      ]
}

function validated({ file_id, chunk, last, rows }: RecordedRows, terms: PayrollTerms): PayrollFileEvent {
  return PayrollRowsValidated.of({ file_id, chunk, last, ...validateRows(rows, terms).result })
}

function wages(recorded: RecordedRows, terms: Omit<PhaseTerms, 'table'>): PayrollFileEvent {
  const { file_id, chunk, last, rows } = recorded
  const { green } = validateRows(rows, terms.terms)
  return PayrollWagesCalculated.of({ file_id, chunk, last, ...calculateWages(green, terms) })
}

/** The premium of a chunk, with what the file comes to when it is the last. */
function premium(
  { calculated, table, debitAccountId }: Extract<PayrollFileCommand, { type: 'CalculatePremium' }>,
  file: PayrollFile,
): PayrollFileEvent {
  const { file_id, chunk, last } = calculated
  const result = calculatePremium(calculated.wages, table)
  if (typeof result === 'string') return withoutPremium(file_id, result)
  if (file.premium.cents + result.premium_cents > Number.MAX_SAFE_INTEGER) {
    return withoutPremium(file_id, `The premium is above ${dollars(Number.MAX_SAFE_INTEGER)}`)
  }
  const sums = { file_id, chunk, last, ...result }
  const completed = last ? { completed: completedFile(file, result.premium_cents, debitAccountId) } : {}
  return PayrollPremiumCalculated.of({ ...sums, ...completed })
}

function withoutPremium(file_id: string, error: string): PayrollFileEvent {
  return PayrollFileFailed.of({ file_id, stage: 'premium_calculation', error })
}

/** What a file comes to. @param lastPremiumCents of the chunk that completes it. */
function completedFile(
  { received, validated, wages, premium }: PayrollFile,
  lastPremiumCents: number,
  debitAccountId: DebitAccountId,
): CompletedFile {
  const { employer_id, policy_id, policy_number, row_count, period } = received!
  const premium_cents = premium.cents + lastPremiumCents
  return {
    employer_id,
    policy_id,
    policy_number,
    row_count,
    green_rows: validated.green,
    red_rows: validated.red,
    auditable_cents: wages.cents,
    premium_cents,
    period,
    ...debited(premium_cents, debitAccountId),
  }
}

/** From where a premium is debited; nothing of one that is 0. */
function debited(
  premiumCents: number,
  debit_account_id: DebitAccountId,
): Pick<CompletedFile, 'debit_account_id'> {
  return premiumCents > 0 ? { debit_account_id } : {}
}

export const payrollFile: Decider<PayrollFile, PayrollFileCommand, PayrollFileEvent> = {
  category: 'payrollFile',
  events: payrollFileEvents,
  initialState,
  evolve,
  decide,
}
