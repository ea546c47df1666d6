import type { Reconciliation } from '../../../domain/banking/reconciliation/reconciliation.ts'
import { bigint, integer, type RowOf, table, text } from '../../queries/table.ts'

/** Comparisons of the money; what they found stands in the log. */
export const reconciliations = table('reconciliations', {
  key: ['reconciliation_id'],
  columns: {
    reconciliation_id: text(),
    trigger: text<Reconciliation['trigger']>(),
    through_position: text(),
    difference_count: integer(),
    at: text(),
    seq: bigint(),
  },
  indexes: [['seq desc']],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    reconciliations: RowOf<typeof reconciliations>
  }
}
