import { bankCredit } from '../../../domain/banking/credits/bank-credit.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { Application } from '../../commands/application.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { described, type Findings } from './findings.ts'

/** Credits and debits that one comparison reports, of each kind. */
const MOST = 500

const UNRECEIVED = statement('credits-not-received', (db, $: Parameter<{ readonly limit: number }>) =>
  db
    .selectFrom('booked_credits')
    .leftJoin('booked_debits', 'booked_debits.leg_id', 'booked_credits.leg_id')
    .select('booked_credits.credit_id')
    .where('booked_credits.leg_id', 'is not', null)
    .where((eb) =>
      eb.or([
        eb('booked_debits.leg_id', 'is', null),
        // it lost the debit to another one: each presentation has the money of one
        eb(
          'booked_debits.matched_entries',
          '<',
          eb
            .selectFrom('booked_credits as same')
            .select(({ fn }) => fn.countAll<number>().as('count'))
            .whereRef('same.leg_id', '=', 'booked_credits.leg_id'),
        ),
        eb('booked_debits.amount_cents', '<>', eb.ref('booked_credits.amount_cents')),
      ]),
    )
    .limit($('limit')),
)
const UNCREDITED = statement(
  'receipts-without-credit',
  (db, $: Parameter<{ readonly fbo: 'fbo'; readonly received: 'received'; readonly limit: number }>) =>
    db
      .selectFrom('booked_debits')
      .leftJoin('booked_credits', 'booked_credits.leg_id', 'booked_debits.leg_id')
      .select([
        'booked_debits.leg_id',
        'booked_debits.tenant_id',
        'booked_debits.environment',
        'booked_debits.carrier_id',
        'booked_debits.amount_cents',
      ])
      .where('booked_debits.place', '=', $('received'))
      .where('booked_debits.settlement_type', '=', $('fbo'))
      .where('booked_credits.credit_id', 'is', null)
      .limit($('limit')),
)
const COUNT = statement('booked-credit-count', (db) =>
  db.selectFrom('booked_credits').select(({ fn }) => fn.countAll<number>().as('total')),
)

/** Holds credits against the debits that they are the money of, both ways. @returns how many credits there are. */
export async function compareCredits(app: Application, findings: Findings): Promise<number> {
  const { read, commands } = app
  for (const { credit_id } of await read.query(UNRECEIVED, { limit: MOST })) {
    const credit = (await commands.load(bankCredit, credit_id)).state!
    const debitId = credit.match?.debitId ?? null
    const debit = debitId === null ? null : (await commands.load(bankDebit, debitId)).state
    const { amount_cents, bank_transaction_id } = credit
    const isReceived =
      debit?.amount_cents === amount_cents &&
      debit.matched_with.includes(bank_transaction_id) &&
      !debit.displaced.includes(bank_transaction_id)
    // the debit is told a moment after the credit
    if (debitId === null || isReceived) continue
    const { tenant_id, carrier_id } = credit
    findings.add({
      ...({ what: 'credit_not_received', tenant_id, carrier_id, leg_id: debitId } as const),
      expected: described({ credit: bank_transaction_id, cents: amount_cents }),
      found: described({
        cents: debit?.amount_cents ?? null,
        credits: debit?.matched_with.join(' ') || null,
      }),
    })
  }
  for (const { amount_cents, ...whose } of await read.query(UNCREDITED, {
    ...({ fbo: 'fbo', received: 'received' } as const),
    limit: MOST,
  })) {
    const expected = described({ cents: amount_cents })
    findings.add({ what: 'receipt_without_credit', ...whose, expected, found: described({ credit: null }) })
  }
  const [counted] = await read.query(COUNT, {})
  return counted!.total
}
