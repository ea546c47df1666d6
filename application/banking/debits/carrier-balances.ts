import { CARRIER_ACCOUNTS, type CarrierAccount } from '../../../domain/banking/reconciliation/postings.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type Parameter, statement } from '../../queries/statement.ts'

const ENVIRONMENTS = ['live', 'sandbox'] as const satisfies readonly Environment[]
const OF_TENANT = statement('carrier-balances', (db, $: Parameter<{ readonly tenantId: string }>) =>
  db
    .selectFrom('carrier_balances')
    .select(['environment', 'carriers'])
    .where('tenant_id', '=', $('tenantId')),
)

/** Where the money of a carrier stands in an environment, in cents by account. */
export interface CarrierBalances {
  readonly environment: Environment
  readonly balances: Readonly<Record<CarrierAccount, number>>
}

/** The balances of a carrier, as of now. @throws ReadModelsLate when they cannot be told. */
export async function balancesOf(
  app: Pick<Application, 'commands' | 'log' | 'read' | 'readModels'>,
  carrierId: string,
): Promise<readonly CarrierBalances[] | Rejection> {
  const owner = await stateOf(app, carrier, carrierId)
  if (!owner) return reject('not_found', 'carrier_not_found', 'There is no such carrier')
  await untilCurrent(app, 'carrier-balances')
  const rows = await app.read.query(OF_TENANT, { tenantId: owner.tenant_id })
  return ENVIRONMENTS.map((environment) => {
    const posted = rows.find((row) => row.environment === environment)?.carriers[carrierId]
    const balances = Object.fromEntries(CARRIER_ACCOUNTS.map((account) => [account, posted?.[account] ?? 0]))
    return { environment, balances: balances as Record<CarrierAccount, number> }
  })
}
