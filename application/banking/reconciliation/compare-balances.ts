import {
  type Account,
  type Balances,
  CARRIER_ACCOUNTS,
  type Place,
} from '../../../domain/banking/reconciliation/postings.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import type { Application } from '../../commands/application.ts'
import { type Parameter, type Reading, statement } from '../../queries/statement.ts'
import { described, type Findings } from './findings.ts'

interface Words {
  readonly unmatched: 'unmatched'
  readonly live: Environment
}

const debitSums = (db: Reading) =>
  db
    .selectFrom('booked_debits')
    .select((eb) => [
      ...(['tenant_id', 'environment', 'carrier_id'] as const),
      eb.cast<string | null>('place', 'text').as('account'),
      eb.cast<string | null>(eb.fn.sum('amount_cents'), 'text').as('cents'),
      eb.cast<Readonly<Record<string, Balances>> | null>(eb.lit(null), 'jsonb').as('carriers'),
    ])
    .groupBy(['tenant_id', 'environment', 'carrier_id', 'place'])

/** What debits and credits come to, and what was posted, as of one moment: it is one statement. */
const SUMS = statement('sums-and-balances', (db, $: Parameter<Words>) =>
  debitSums(db)
    .unionAll(
      db
        .selectFrom('booked_credits')
        .select((eb) => [
          'tenant_id',
          eb.cast<Environment>($('live'), 'text').as('environment'),
          'carrier_id',
          eb.cast<string | null>($('unmatched'), 'text').as('account'),
          eb.cast<string | null>(eb.fn.sum('amount_cents'), 'text').as('cents'),
          eb.cast<Readonly<Record<string, Balances>> | null>(eb.lit(null), 'jsonb').as('carriers'),
        ])
        .where('leg_id', 'is', null)
        .groupBy(['tenant_id', 'carrier_id']),
    )
    .unionAll(
      db
        .selectFrom('carrier_balances')
        .select((eb) => [
          ...(['tenant_id', 'environment'] as const),
          eb.cast<string>(eb.lit(null), 'text').as('carrier_id'),
          eb.cast<string | null>(eb.lit(null), 'text').as('account'),
          eb.cast<string | null>(eb.lit(null), 'text').as('cents'),
          eb.ref('carriers').as('carriers'),
        ]),
    ),
)

interface Compared {
  readonly tenant_id: string
  readonly environment: Environment
  readonly carrier_id: string
  summed: { [Name in Account]?: number }
  posted: Balances
}

/**
 * Holds what was posted of each carrier against the sums of its debits and credits, and all accounts together against 0.
 * @returns how many balances there are.
 */
export async function compareBalances(
  { read }: Pick<Application, 'read'>,
  findings: Findings,
): Promise<number> {
  const carriers = new Map<string, Compared>()
  const of = (tenant_id: string, environment: Environment, carrier_id: string): Compared => {
    const key = `${environment}/${carrier_id}`
    const known = carriers.get(key) ?? { tenant_id, environment, carrier_id, summed: {}, posted: {} }
    carriers.set(key, known)
    return known
  }
  for (const row of await read.query(SUMS, { unmatched: 'unmatched', live: 'live' })) {
    const { tenant_id, environment, carrier_id, account, cents } = row
    if (row.carriers === null) {
      // what ended stands with the employers, where it came from
      if ((account as Place) !== 'ended')
        of(tenant_id, environment, carrier_id).summed[account as Account] = Number(cents)
      continue
    }
    for (const [id, posted] of Object.entries(row.carriers)) of(tenant_id, environment, id).posted = posted
  }
  for (const { summed, posted, ...whose } of carriers.values()) {
    const expected = described({ ...shownOf(summed), sum: 0 })
    const sum = Object.values(posted).reduce((total, cents) => total + cents, 0)
    const found = described({ ...shownOf(posted), sum })
    if (expected !== found) findings.add({ what: 'balance_differs', ...whose, expected, found })
  }
  return carriers.size * CARRIER_ACCOUNTS.length
}

function shownOf(balances: Balances): Readonly<Record<string, number>> {
  return Object.fromEntries(CARRIER_ACCOUNTS.map((account) => [account, balances[account] ?? 0]))
}
