import { reconciliations as table } from '../../../application/banking/reconciliation/reconciliations-table.ts'
import { ReconciliationMade } from '../../../domain/banking/reconciliation/reconciliation.ts'
import { projection } from '../../runtime/projection.ts'

/** Which comparisons of the money there were, and where the last one ended. */
export const reconciliations = projection({
  name: 'reconciliations',
  version: 1,
  tables: [table],
  handlers: (on) => [
    on(ReconciliationMade, {
      apply: ({ data, position }, { reconciliations }) => reconciliations.put({ ...data, seq: position }),
    }),
  ],
})
