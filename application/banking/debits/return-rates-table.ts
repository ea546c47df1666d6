import type { Environment } from '../../../domain/kernel/ids.ts'
import { integer, type RowOf, table, text } from '../../queries/table.ts'

/** Debits that the bank took, and that came back, by originator and day in New York. */
export const debitDays = table('debit_days', {
  key: ['tenant_id', 'environment', 'day'],
  columns: {
    tenant_id: text(),
    environment: text<Environment>(),
    day: text(),
    entries: integer(),
    /** Of those that came back that day, as each rate counts them. */
    unauthorized: integer(),
    administrative: integer(),
    overall: integer(),
  },
  indexes: [['day']],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    debit_days: RowOf<typeof debitDays>
  }
}
