import { z } from 'zod'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { maybeSealed, sealContext } from '../kernel/sealed.ts'
import { canonicalRow } from './payroll-row.ts'
import { premiumResult, validationResult, wagesResult } from './phases.ts'

/** What happens to a payroll file. Times are in the metadata, amounts in cents. */
const period = z.object({ start: z.string(), end: z.string() }).nullable()
/** Facts of the file that its last event repeats, so that readers of that event look nothing up. */
const whose = {
  employer_id: id(),
  policy_id: id(),
  policy_number: z.string(),
  row_count: z.number().int(),
  period,
}
/**
 * The ACH account from which the premium is debited: the active primary one of the employer as of now. Null: the employer
 * has none, and no debit is raised. Absent: there is no premium, or a release that debited none processed the file.
 */
const debit_account_id = id().nullable().optional()
const ofChunk = { file_id: id(), chunk: z.number().int(), last: z.boolean() }

export const PayrollFileReceived = eventType(
  'PayrollFileReceived',
  {
    file_id: id(),
    tenant_id: id(),
    environment: environment(),
    employer_id: id(),
    policy_id: id(),
    policy_number: z.string(),
    source: z.object({
      kind: z.enum(['tool', 'report', 'inbound_webhook']),
      /** Set when an agent submitted the rows. */
      submission_id: id().nullable(),
      /** Credential, client or connection that sent it. */
      sender_id: z.string(),
    }),
    /** With the employer's name in it, and sealed where that is. */
    file_name: maybeSealed({
      subject: 'employer',
      boundTo: ({ data }) => sealContext(`payrollFile-${data.file_id}`, 'PayrollFileReceived', 'file_name'),
    }),
    row_count: z.number().int().positive(),
    chunk_count: z.number().int().positive(),
    period,
    /** The policy as of this revision of its stream is what the rows were read by; absent in files of earlier builds. */
    policy_revision: z.number().int().nonnegative().optional(),
    /** Only of a file that was processed at once: `PayrollFileProcessed` follows. Others have them in chunks. */
    rows: z.array(canonicalRow).optional(),
  },
  // rows came with version 2
  (raw) => raw,
)

/** What all phases made of a file that was processed at once. */
export const PayrollFileProcessed = eventType('PayrollFileProcessed', {
  file_id: id(),
  ...whose,
  /** The policy as of this revision of its stream is what every phase worked with. */
  policy_revision: z.number().int().nonnegative(),
  validation: validationResult,
  wages: wagesResult,
  /** Null where a rate is missing: `PayrollFileFailed` follows. */
  premium: premiumResult.nullable(),
  debit_account_id,
})

export const PayrollRowsRecorded = eventType('PayrollRowsRecorded', {
  file_id: id(),
  /** 0-based; the event of chunk c stands at revision 1 + c. */
  chunk: z.number().int().nonnegative(),
  last: z.boolean(),
  rows: z.array(canonicalRow),
})

export const PayrollFileNormalized = eventType('PayrollFileNormalized', {
  file_id: id(),
  row_count: z.number().int(),
  /** The policy as of this revision of its stream is what every phase of the file works with. */
  policy_revision: z.number().int().nonnegative(),
})

export const PayrollRowsValidated = eventType('PayrollRowsValidated', {
  ...ofChunk,
  ...validationResult.shape,
})

export const PayrollWagesCalculated = eventType('PayrollWagesCalculated', {
  ...ofChunk,
  ...wagesResult.shape,
})

export const PayrollPremiumCalculated = eventType('PayrollPremiumCalculated', {
  ...ofChunk,
  ...premiumResult.shape,
  /** With the last chunk, the totals of the whole file, so that readers of this event need not read the rows. */
  completed: z
    .object({
      ...whose,
      green_rows: z.number().int(),
      red_rows: z.number().int(),
      auditable_cents: z.number().int(),
      premium_cents: z.number().int(),
      debit_account_id,
    })
    .optional(),
})

export const PayrollFileFailed = eventType('PayrollFileFailed', {
  file_id: id(),
  stage: z.enum(['file_creation', 'validation', 'wage_calculation', 'premium_calculation']),
  error: z.string(),
})

export const payrollFileEvents = [
  PayrollFileReceived,
  PayrollFileProcessed,
  PayrollRowsRecorded,
  PayrollFileNormalized,
  PayrollRowsValidated,
  PayrollWagesCalculated,
  PayrollPremiumCalculated,
  PayrollFileFailed,
] as const
export type PayrollFileEvent = EventOf<(typeof payrollFileEvents)[number]>
/** What a received event says of a file beside its rows. */
export type ReceivedFile = Omit<z.output<typeof PayrollFileReceived.schema>, 'rows'>
export type PayrollFileStage = z.output<typeof PayrollFileFailed.schema>['stage']

export type RecordedRows = Extract<PayrollFileEvent, { type: 'PayrollRowsRecorded' }>['data']
export type CalculatedWages = Extract<PayrollFileEvent, { type: 'PayrollWagesCalculated' }>['data']

/** Revision of the event with a chunk's rows in the stream of its file. */
export function rowsRevision(chunk: number): number {
  return 1 + chunk
}

/** Revision of the event with a chunk's wages: after received, rows, normalized and validated. */
export function wagesRevision(chunkCount: number, chunk: number): number {
  return 2 + 2 * chunkCount + chunk
}
