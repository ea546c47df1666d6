import type { Environment } from '../../domain/kernel/ids.ts'
import type { PROCESSOR_NOTICE_STATUSES } from '../../domain/payments/processor/processor-notice.ts'
import { bigint, orNull, type RowOf, table, text } from '../queries/table.ts'

/** What the directory knows of; everything else that is listed has a read model of its own. */
export type DirectoryKind =
  | 'tenant'
  | 'payroll_company'
  | 'api_client'
  | 'inbound_connection'
  | 'webhook_subscription'
  | 'intake'
  | 'financing_session'
  | 'debit_collection'
  | 'processor_notice'

/** How something stands, where lists are narrowed by it. */
export type DirectoryStatus =
  | 'active'
  | 'deactivated'
  | 'disabled'
  | 'received'
  | 'unfinished'
  | 'completed'
  | (typeof PROCESSOR_NOTICE_STATUSES)[number]

/** Which tenants there are, and what they have of the kinds that nothing but lists asks for. */
export const directory = table('directory', {
  key: ['kind', 'id'],
  columns: {
    kind: text<DirectoryKind>(),
    id: text(),
    /** Of a tenant its own id. */
    tenant_id: text(),
    /** Null of what stands in both. */
    environment: orNull(text<Environment>()),
    /** Null of what belongs to none. */
    employer_id: orNull(text()),
    /** Null of what has none. */
    status: orNull(text<DirectoryStatus>()),
    /** Order in the log. */
    seq: bigint(),
  },
  indexes: [
    ['kind', 'seq desc'],
    ['kind', 'tenant_id', 'seq desc'],
  ],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    directory: RowOf<typeof directory>
  }
}
