import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit, DebitStatus } from '../../../domain/banking/debits/bank-debit-state.ts'
import { type Place, placeOf } from '../../../domain/banking/reconciliation/postings.ts'
import type { Application } from '../../commands/application.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type PageBySeq, pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { described, type Findings } from './findings.ts'

/** Ledger and balances. */
export const COMPARED = ['bank-debits', 'carrier-balances'] as const
/** Debits that are looked at in one go. */
const PAGE = 500
/** Looks at a debit that seems to differ: it may change while it is looked at. */
const LOOKS = 3

const CHANGED = statement('booked-debits-changed', (db, $: Parameter<PageBySeq>) =>
  db
    .selectFrom('booked_debits')
    .select(['leg_id', 'seq'])
    .where('seq', '>', $('after') as never)
    .orderBy('seq')
    .limit($('limit')),
)

interface DebitIds {
  readonly debitIds: readonly string[]
}
const LEDGER = statement('ledger-rows-of-debits', (db, $: Parameter<DebitIds>) =>
  db
    .selectFrom('bank_debits')
    .select(['leg_id', 'status', 'amount_cents', 'carrier_id'])
    .where('leg_id', '=', ({ fn }) => fn.any($('debitIds'))),
)
const BOOKED = statement('booked-rows-of-debits', (db, $: Parameter<DebitIds>) =>
  db
    .selectFrom('booked_debits')
    .select(['leg_id', 'place', 'amount_cents', 'carrier_id'])
    .where('leg_id', '=', ({ fn }) => fn.any($('debitIds'))),
)

type Side = { readonly places: readonly Place[]; readonly statuses: readonly DebitStatus[] }
/** Statuses of the ledger by where the money stands. */
const SIDES: readonly Side[] = [
  { places: ['due', 'in_file'], statuses: ['pending', 'Scheduled', 'quarantined'] },
  { places: ['at_bank', 'received'], statuses: ['submitted', 'processed'] },
  { places: ['returned'], statuses: ['returned'] },
  { places: ['ended'], statuses: ['failed', 'cancelled', 'legacy_collected'] },
]
type SideParameters = {
  readonly [Name in `places${0 | 1 | 2 | 3}`]: readonly Place[]
} & { readonly [Name in `statuses${0 | 1 | 2 | 3}`]: readonly DebitStatus[] }
const sideParameters = Object.fromEntries(
  SIDES.flatMap(({ places, statuses }, at) => [
    [`places${at}`, places],
    [`statuses${at}`, statuses],
  ]),
) as unknown as SideParameters

/** Debits of which ledger and balances do not say the same; one of them may be a moment ahead. */
const DISAGREEING = statement(
  'debits-in-disagreement',
  (db, $: Parameter<SideParameters & { readonly limit: number }>) =>
    db
      .selectFrom('booked_debits')
      .fullJoin('bank_debits', 'bank_debits.leg_id', 'booked_debits.leg_id')
      .select(({ fn }) => fn.coalesce('booked_debits.leg_id', 'bank_debits.leg_id').as('leg_id'))
      .where((eb) =>
        eb.or([
          eb('booked_debits.leg_id', 'is', null),
          eb('bank_debits.leg_id', 'is', null),
          eb('booked_debits.amount_cents', '<>', eb.ref('bank_debits.amount_cents')),
          eb('booked_debits.carrier_id', '<>', eb.ref('bank_debits.carrier_id')),
          eb.not(
            eb.or(
              ([0, 1, 2, 3] as const).map((at) =>
                eb.and([
                  eb('booked_debits.place', '=', eb.fn.any($(`places${at}`))),
                  eb('bank_debits.status', '=', eb.fn.any($(`statuses${at}`))),
                ]),
              ),
            ),
          ),
        ]),
      )
      .limit($('limit')),
)
const COUNT = statement('ledger-row-count', (db) =>
  db.selectFrom('bank_debits').select(({ fn }) => fn.countAll<number>().as('total')),
)

/**
 * Holds debits against their events, one by one: those that have changed behind a place in the log, and those of which the
 * read models do not say the same.
 * @param after a position, a decimal.
 * @throws ReadModelsLate when that cannot be told now.
 */
export async function compareDebits(
  app: Application,
  after: string,
  findings: Findings,
): Promise<{ readonly debits: number; readonly ledger: number }> {
  const { read } = app
  let debits = 0
  for await (const page of pagesBySeq(PAGE, (page) => read.query(CHANGED, page), after)) {
    debits += page.length
    await hold(
      app,
      page.map(({ leg_id }) => leg_id),
      findings,
    )
  }
  const disagreeing = await read.query(DISAGREEING, { ...sideParameters, limit: PAGE })
  await hold(
    app,
    disagreeing.map(({ leg_id }) => leg_id!),
    findings,
  )
  const [counted] = await read.query(COUNT, {})
  return { debits, ledger: counted!.total }
}

/** Tells of those debits whose rows are not as their events say, and stay so. */
async function hold(app: Application, debitIds: readonly string[], findings: Findings): Promise<void> {
  let doubtful = debitIds
  for (let look = 1; doubtful.length > 0; look += 1) {
    const compared = await compareRows(app, doubtful)
    const differing = compared.filter(({ expected, found }) => expected !== found)
    if (look === LOOKS) {
      for (const one of differing) findings.add(one)
      return
    }
    doubtful = differing.map(({ leg_id }) => leg_id)
    if (doubtful.length > 0) await untilCurrent(app, ...COMPARED)
  }
}

async function compareRows({ commands, read }: Application, debitIds: readonly string[]) {
  const loaded = await commands.loadAll(bankDebit, debitIds)
  const debits = debitIds.map((debitId, index) => [debitId, loaded[index]!.state] as const)
  const ledger = new Map((await read.query(LEDGER, { debitIds })).map((row) => [row.leg_id, row]))
  const booked = new Map((await read.query(BOOKED, { debitIds })).map((row) => [row.leg_id, row]))
  return debits.map(([leg_id, debit]) => {
    const row = ledger.get(leg_id)
    const place = booked.get(leg_id)
    const whose = debit ? whoseOf(debit) : {}
    const found = {
      status: row?.status ?? null,
      cents: row?.amount_cents ?? null,
      carrier: row?.carrier_id ?? null,
      booked: place?.place ?? null,
      as: place?.amount_cents ?? null,
      of: place?.carrier_id ?? null,
    }
    const what =
      debit === null
        ? ('debit_not_in_events' as const)
        : row === undefined
          ? ('debit_not_in_ledger' as const)
          : ('debit_differs' as const)
    return { what, leg_id, ...whose, expected: described(expectedOf(debit)), found: described(found) }
  })
}

function whoseOf({ tenant_id, environment, carrier_id }: BankDebit) {
  return { tenant_id, environment, carrier_id }
}

function expectedOf(debit: BankDebit | null) {
  if (debit === null) {
    return { status: null, cents: null, carrier: null, booked: null, as: null, of: null }
  }
  const { status, amount_cents, carrier_id } = debit
  return {
    status,
    cents: amount_cents,
    carrier: carrier_id,
    booked: placeOf(debit),
    as: amount_cents,
    of: carrier_id,
  }
}
