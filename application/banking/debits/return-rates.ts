import {
  type CountedDays,
  type CountedReturns,
  countedDays,
  returnRate,
} from '../../../domain/banking/debits/return-rate.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { within } from '../../commands/verbs.ts'
import type { ListPage, PageRequest, ResultOf } from '../../ports/read-database.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { isOfTenant, type ListScope, pagedList, readPage } from '../../queries/pages.ts'
import { type Parameter, type Reading, statement } from '../../queries/statement.ts'

const PROJECTION = 'return-rates'

type RateScope = ListScope & CountedDays

const rowsOf = (db: Reading, $: Parameter<RateScope>) =>
  db
    .selectFrom('debit_days')
    .select((eb) => [
      ...(['tenant_id', 'environment'] as const),
      eb.cast<number>(eb.fn.sum('entries'), 'bigint').as('entries'),
      eb.cast<number>(eb.fn.sum('unauthorized'), 'bigint').as('unauthorized'),
      eb.cast<number>(eb.fn.sum('administrative'), 'bigint').as('administrative'),
      eb.cast<number>(eb.fn.sum('overall'), 'bigint').as('overall'),
    ])
    .where((eb) => isOfTenant(eb, $))
    .where('day', '>=', $('from'))
    .where('day', '<=', $('to'))
    .groupBy(['tenant_id', 'environment'])
const LIST = pagedList({ projection: PROJECTION, name: 'return-rates' }, (db, $: Parameter<RateScope>) =>
  rowsOf(db, $).orderBy('tenant_id').orderBy('environment'),
)
const OF_TENANTS = statement('return-rates-of-tenants', (db, $: Parameter<RateScope>) => rowsOf(db, $))
interface AlertsWanted {
  readonly kind: 'return_rate_exceeded'
  readonly environment: Environment
}
const ALERTED = statement('tenants-alerted-of-return-rates', (db, $: Parameter<AlertsWanted>) =>
  db
    .selectFrom('operator_alerts')
    .select('tenant_id')
    .where('kind', '=', $('kind'))
    .where('environment', '=', $('environment'))
    .groupBy('tenant_id'),
)

/** How many debits of an originator, which is a tenant in an environment, came back in the days that count. */
export interface OriginatorReturns extends CountedReturns, CountedDays {
  readonly tenant_id: string
  readonly environment: Environment
}

function countedOf(
  { tenant_id, environment, entries, ...returned }: ResultOf<typeof OF_TENANTS>,
  days: CountedDays,
): OriginatorReturns {
  return { tenant_id, environment, entries, returned, ...days }
}

/** The returns of originators that had debits or returns in the days that count. */
export async function listReturnRates(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'clock'>,
  scope: ListScope,
  page: PageRequest,
): Promise<ListPage<OriginatorReturns>> {
  const days = countedDays(app.clock.now())
  const { items, total } = await readPage(app, LIST, { ...scope, ...days }, page)
  return { items: items.map((row) => countedOf(row, days)), total }
}

/**
 * Holds the rates of live originators against their limits, and says of each that passes one, once.
 * @param tenantId null: all that had debits or returns in the days that count, or once passed a limit.
 * @throws ReadModelsLate when it cannot be told what was returned.
 */
export async function compareReturnRates(
  app: Application,
  tenantId: string | null,
  context: CommandContext,
): Promise<void> {
  const { read, commands, clock } = app
  await untilCurrent(app, PROJECTION)
  const now = clock.now()
  const environment = 'live' as const
  const rows = await read.query(OF_TENANTS, { tenant_id: tenantId, environment, ...countedDays(now) })
  for (const row of tenantId === null ? [...rows, ...(await silent(app, rows))] : rows) {
    const { tenant_id } = row
    const return_rate_id = derivedId(tenant_id, `return-rate/${environment}`)
    const data = { return_rate_id, tenant_id, environment, at: isoTime(now) }
    const counted = countedOf(row, countedDays(now))
    const command = { type: 'Compare', data, counted } as const
    // what is compared anew is another command, whatever it is a step of
    const commandId = derivedId(context.commandId, JSON.stringify(counted))
    const owned = within({ ...context, commandId }, data)
    orThrow(await commands.execute(returnRate, return_rate_id, command, owned))
  }
}

type Row = ResultOf<typeof OF_TENANTS>

/** Live originators that once passed a limit and have neither debits nor returns now: they are within it again. */
async function silent({ read }: Pick<Application, 'read'>, rows: readonly Row[]): Promise<readonly Row[]> {
  const counted = new Set(rows.map(({ tenant_id }) => tenant_id))
  const environment = 'live'
  const none = { entries: 0, unauthorized: 0, administrative: 0, overall: 0 }
  const alerted = await read.query(ALERTED, { kind: 'return_rate_exceeded', environment })
  return alerted
    .filter(({ tenant_id }) => !counted.has(tenant_id!))
    .map(({ tenant_id }) => ({ tenant_id: tenant_id!, environment, ...none }))
}
