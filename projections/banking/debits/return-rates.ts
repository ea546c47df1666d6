import { debitDays } from '../../../application/banking/debits/return-rates-table.ts'
import type { RecordedEvent } from '../../../application/commands/event-registry.ts'
import { BankDebitReturned, BankDebitSubmitted } from '../../../domain/banking/debits/bank-debit-events.ts'
import { ratesOf } from '../../../domain/banking/debits/return-rate.ts'
import { newYorkDate } from '../../../domain/kernel/new-york.ts'
import { type FoldedTable, projection } from '../../runtime/projection.ts'

type Counted = 'entries' | 'unauthorized' | 'administrative' | 'overall'
type OfDay = Pick<RecordedEvent, 'metadata'> & { readonly data: { readonly at: string } }

/** Events say in their metadata whose they are. */
const dayOf = ({ data: { at }, metadata: { tenant_id, environment } }: OfDay) =>
  [tenant_id!, environment!, newYorkDate(Date.parse(at))] as const
const ofDay = (event: OfDay) => ({ debit_days: [dayOf(event)] })

function count(days: FoldedTable<typeof debitDays>, event: OfDay, counted: readonly Counted[]): void {
  const [tenant_id, environment, day] = dayOf(event)
  const before = days.get(tenant_id, environment, day)
  const after = (name: Counted) => (before?.[name] ?? 0) + (counted.includes(name) ? 1 : 0)
  days.put({
    tenant_id,
    environment,
    day,
    entries: after('entries'),
    unauthorized: after('unauthorized'),
    administrative: after('administrative'),
    overall: after('overall'),
  })
}

/** How many debits of an originator the bank takes and returns on each day. */
export const returnRates = projection({
  name: 'return-rates',
  version: 1,
  tables: [debitDays],
  handlers: (on) => [
    on(BankDebitSubmitted, {
      reads: ofDay,
      apply: (event, { debit_days }) => count(debit_days, event, ['entries']),
    }),
    on(BankDebitReturned, {
      reads: ofDay,
      apply: (event, { debit_days }) => count(debit_days, event, ratesOf(event.data.return_code)),
    }),
  ],
})
