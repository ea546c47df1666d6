import {
  carrierBalances as balancesTable,
  bookedCredits,
  bookedDebits,
} from '../../../application/banking/debits/carrier-balances-table.ts'
import type { RecordedEvent } from '../../../application/commands/event-registry.ts'
import type { ChangedColumns, RowOf } from '../../../application/queries/table.ts'
import {
  type BankCreditEvent,
  BankCreditMatched,
  BankCreditReceived,
  BankCreditUnmatched,
} from '../../../domain/banking/credits/bank-credit.ts'
import {
  BankDebitCreated,
  type BankDebitEvent,
  BankDebitHeldUp,
  BankDebitLeftOut,
  BankDebitScheduled,
  bankDebitEvents,
} from '../../../domain/banking/debits/bank-debit-events.ts'
import {
  bookCredit,
  bookDebit,
  type Posting,
  posted,
} from '../../../domain/banking/reconciliation/postings.ts'
import { type Environment, isId } from '../../../domain/kernel/ids.ts'
import { type FoldedTable, projection } from '../../runtime/projection.ts'

/** Banks know no sandbox: what they show is of the live environment. */
const OF_CREDITS: Environment = 'live'

/** Events that move no money and come by the thousand: the next one of a debit tells more. */
const OF_BATCHES: ReadonlySet<string> = new Set([
  BankDebitScheduled.name,
  BankDebitLeftOut.name,
  BankDebitHeldUp.name,
])

type Whose = Pick<RowOf<typeof bookedDebits>, 'tenant_id' | 'environment' | 'carrier_id'>
type Recorded = Pick<RecordedEvent, 'metadata' | 'position'>

/** Events say in their metadata whose they are. */
const ofTenant = ({ metadata: { tenant_id, environment } }: Recorded) =>
  [tenant_id!, environment ?? OF_CREDITS] as const

function post(
  balances: FoldedTable<typeof balancesTable>,
  { tenant_id, environment, carrier_id }: Whose,
  postings: readonly Posting[],
  { position }: Recorded,
): void {
  if (postings.length === 0) return
  const before = balances.get(tenant_id, environment)?.carriers ?? {}
  const carriers = { ...before, [carrier_id]: posted(before[carrier_id] ?? {}, postings) }
  balances.put({ tenant_id, environment, carriers, position: String(position) })
}

/** What else of a debit an event changes. */
function changesOf(
  event: BankDebitEvent,
  { entries, place, matched_entries }: RowOf<typeof bookedDebits>,
): ChangedColumns<typeof bookedDebits> {
  switch (event.type) {
    case 'BankDebitMatched':
      // a surer credit takes the place of the first, and is no second receipt
      return place === 'at_bank' ? { matched_entries: matched_entries + 1 } : {}
    case 'BankDebitInFile':
      return { file_id: event.data.file_id, entries: entries + 1 }
    case 'BankDebitRepresented':
      return { file_id: null, representments: event.data.representment }
    default:
      return {}
  }
}

/** Where the money of each debit and credit stands, and what that comes to for each carrier. */
export const carrierBalances = projection({
  name: 'carrier-balances',
  version: 4,
  tables: [balancesTable, bookedDebits, bookedCredits],
  handlers: (on) => [
    on(BankDebitCreated, {
      reads: (event) => ({ carrier_balances: [ofTenant(event)] }),
      apply(event, { carrier_balances, booked_debits }) {
        const { leg_id, tenant_id, environment, carrier_id, amount_cents, settlement_type } = event.data
        const { place, postings } = bookDebit(event, null)
        booked_debits.put({
          leg_id,
          tenant_id,
          environment,
          carrier_id,
          amount_cents,
          settlement_type,
          place,
          matched_entries: 0,
          entries: 0,
          representments: 0,
          seq: event.position,
        })
        post(carrier_balances, event.data, postings, event)
      },
    }),
    ...bankDebitEvents
      .filter((type) => type !== BankDebitCreated && !OF_BATCHES.has(type.name))
      .map((type) =>
        on(type, {
          reads: (event) => ({
            carrier_balances: [ofTenant(event)],
            booked_debits: [[event.data.leg_id]],
          }),
          apply(event, { carrier_balances, booked_debits }) {
            const { leg_id } = event.data
            const before = booked_debits.get(leg_id)!
            const { place, postings } = bookDebit(event as BankDebitEvent, before)
            booked_debits.change([leg_id], {
              place,
              seq: event.position,
              ...changesOf(event as BankDebitEvent, before),
            })
            post(carrier_balances, before, postings, event)
          },
        }),
      ),
    on(BankCreditReceived, {
      reads: ({ data: { tenant_id } }) => ({ carrier_balances: [[tenant_id, OF_CREDITS]] }),
      apply(event, { carrier_balances, booked_credits }) {
        const { credit_id, tenant_id, carrier_id, amount_cents, bank_date, reference } = event.data
        booked_credits.put({
          credit_id,
          tenant_id,
          carrier_id,
          amount_cents,
          bank_date,
          named_id: reference !== null && isId(reference) ? reference : null,
          seq: event.position,
        })
        const whose = { tenant_id, environment: OF_CREDITS, carrier_id }
        post(carrier_balances, whose, bookCredit(event, null), event)
      },
    }),
    ...[BankCreditMatched, BankCreditUnmatched].map((type) =>
      on(type, {
        reads: ({ data: { credit_id }, metadata: { tenant_id } }) => ({
          carrier_balances: [[tenant_id!, OF_CREDITS]],
          booked_credits: [[credit_id]],
        }),
        apply(event, { carrier_balances, booked_credits }) {
          const { credit_id } = event.data
          const before = booked_credits.get(credit_id)!
          const leg_id = event.type === 'BankCreditMatched' ? event.data.leg_id : null
          booked_credits.change([credit_id], { leg_id })
          const whose = { ...before, environment: OF_CREDITS }
          post(carrier_balances, whose, bookCredit(event as BankCreditEvent, before), event)
        },
      }),
    ),
  ],
})
