import type { Environment } from '../../domain/kernel/ids.ts'
import { bigint, integer, jsonb, orNull, type RowOf, table, text, timestamptz } from '../queries/table.ts'

export const operatorAlerts = table('operator_alerts', {
  key: ['alert_id'],
  columns: {
    alert_id: text(),
    /** A key of `ALERTS`. */
    kind: text(),
    /** Null where the alert belongs to no tenant, as is the environment. */
    tenant_id: orNull(text()),
    environment: orNull(text<Environment>()),
    /** Ids of what it is about, by their names. */
    about: jsonb<Readonly<Record<string, string>>>(),
    raised_at: timestamptz(),
    /** How often it happened since it is open. */
    count: integer(),
    /** How often it ever happened. */
    times: integer(),
    /** Null until an operator took note. */
    acknowledged_at: orNull(timestamptz()),
    acknowledged_by: orNull(text()),
    note: orNull(text()),
    /** Order in which they were raised. */
    seq: bigint(),
  },
  indexes: [['seq'], ['kind', 'seq'], ['tenant_id', 'seq']],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    operator_alerts: RowOf<typeof operatorAlerts>
  }
}
