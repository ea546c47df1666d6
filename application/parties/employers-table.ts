import type { Environment } from '../../domain/kernel/ids.ts'
import { bigint, jsonb, type RowOf, table, text, timestamptz } from '../queries/table.ts'

export const employers = table('employers', {
  key: ['employer_id'],
  columns: {
    employer_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    legal_name: text(),
    /** Ids, in the order of linking. */
    payroll_company_ids: jsonb<readonly string[]>(),
    created_at: timestamptz(),
    /** Order of registration. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'environment', 'seq'], ['seq desc']],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    employers: RowOf<typeof employers>
  }
}
