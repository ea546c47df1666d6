import { COLLECTING_STATUSES } from '../../../domain/banking/legacy/legacy-collection.ts'
import type { CalendarDate } from '../../../domain/kernel/calendar.ts'
import type { Application } from '../../commands/application.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type Parameter, sql, statement } from '../../queries/statement.ts'

/** What of a debit tells whether the legacy service collected it. */
export interface CollectedBefore {
  readonly employer_id: string
  readonly amount_cents: number
  /** Of a debit that a payroll file raised: the file's; null of any other. */
  readonly period: { readonly start: CalendarDate; readonly end: CalendarDate } | null
  /** When it takes effect; what counts where there is no period. */
  readonly effective_date: CalendarDate
}

interface Candidates {
  readonly employers: readonly string[]
  readonly amounts: readonly number[]
  /** First and last day that a period must hold, and whether it must be exactly this one. */
  readonly starts: readonly string[]
  readonly ends: readonly string[]
  readonly areExact: readonly boolean[]
  readonly statuses: readonly string[]
}

/** Places, from 1, of the debits that there is a record for. */
const COLLECTED = statement('legacy-collected', (db, $: Parameter<Candidates>) =>
  db
    .selectFrom(
      sql<{
        employer_id: string
        amount_cents: number
        starts: string
        ends: string
        is_exact: boolean
        place: number
      }>`unnest(${$('employers')}::text[], ${$('amounts')}::bigint[], ${$('starts')}::text[],
        ${$('ends')}::text[], ${$('areExact')}::boolean[]) WITH ORDINALITY`.as<'debit'>(
        sql`debit(employer_id, amount_cents, starts, ends, is_exact, place)`,
      ),
    )
    .select('debit.place')
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('legacy_collections as record')
          .select(sql`1`.as('one'))
          .whereRef('record.employer_id', '=', 'debit.employer_id')
          .whereRef('record.amount_cents', '=', 'debit.amount_cents')
          .where(sql<boolean>`record.status = any(${$('statuses')}::text[])`)
          .where((eb) =>
            eb.or([
              eb.and([
                eb('debit.is_exact', '=', eb.lit(true)),
                eb('record.period_start', '=', eb.ref('debit.starts')),
                eb('record.period_end', '=', eb.ref('debit.ends')),
              ]),
              eb.and([
                eb('debit.is_exact', '=', eb.lit(false)),
                eb('record.period_start', '<=', eb.ref('debit.starts')),
                eb('record.period_end', '>=', eb.ref('debit.ends')),
              ]),
            ]),
          ),
      ),
    ),
)

/**
 * Those of some debits that the legacy service collected, or is about to, by one look.
 * @throws ReadModelsLate when that cannot be told.
 */
export async function collectedByLegacy<Debit extends CollectedBefore>(
  app: Pick<Application, 'log' | 'read' | 'readModels'>,
  debits: readonly Debit[],
): Promise<ReadonlySet<Debit>> {
  await untilCurrent(app, 'legacy-collections')
  const found = await app.read.query(COLLECTED, {
    employers: debits.map(({ employer_id }) => employer_id),
    amounts: debits.map(({ amount_cents }) => amount_cents),
    starts: debits.map(({ period, effective_date }) => period?.start ?? effective_date),
    ends: debits.map(({ period, effective_date }) => period?.end ?? effective_date),
    areExact: debits.map(({ period }) => period !== null),
    statuses: COLLECTING_STATUSES,
  })
  return new Set(found.map(({ place }) => debits[Number(place) - 1]!))
}
