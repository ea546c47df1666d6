import type { Environment } from '../../domain/kernel/ids.ts'
import type { PROCESSOR_NOTICE_STATUSES } from '../../domain/payments/processor/processor-notice.ts'
import { bigint, orNull, type RowOf, table, text } from '../queries/table.ts'

/** What nothing but lists of operators asks for. */
export type KeptKind = 'intake' | 'financing_session' | 'debit_collection' | 'processor_notice'

/** How something stands, where lists are narrowed by it. */
type KeptStatus = 'received' | 'unfinished' | 'completed' | (typeof PROCESSOR_NOTICE_STATUSES)[number]

/** What lists of operators alone find; what it is stands in the log. */
export const keptThings = table('kept_things', {
  key: ['kind', 'id'],
  columns: {
    kind: text<KeptKind>(),
    id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    /** Null of what has none. */
    status: orNull(text<KeptStatus>()),
    /** Order in the log. */
    seq: bigint(),
  },
  indexes: [
    ['kind', 'seq desc'],
    ['kind', 'tenant_id', 'environment', 'seq desc'],
    ['employer_id', 'seq desc'],
  ],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    kept_things: RowOf<typeof keptThings>
  }
}
