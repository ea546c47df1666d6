import type { Environment } from '../../domain/kernel/ids.ts'
import { bigint, orNull, type RowOf, table, text } from '../queries/table.ts'

/** What the directory knows of; everything else has a read model of its own. */
export type DirectoryKind =
  | 'tenant'
  | 'payroll_company'
  | 'api_client'
  | 'inbound_connection'
  | 'webhook_subscription'

/** Which tenants there are, and which companies, keys, connections and webhook subscriptions they have. */
export const directory = table('directory', {
  key: ['kind', 'id'],
  columns: {
    kind: text<DirectoryKind>(),
    id: text(),
    /** Of a tenant its own id. */
    tenant_id: text(),
    /** Null of what stands in both. */
    environment: orNull(text<Environment>()),
    /** Null of what has none. What was deleted stands in no list; its story is found by it. */
    status: orNull(text<'active' | 'deactivated' | 'disabled' | 'deleted'>()),
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
