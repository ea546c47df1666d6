import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { operatorAlert } from '../../domain/operations/operator-alert.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import type { ListPage, PageRequest, ResultOf } from '../ports/read-database.ts'
import { findCurrent } from '../queries/find-current.ts'
import { isOfTenant, type ListScope, pagedList, readPage } from '../queries/pages.ts'
import { equalIfGiven, isAsGiven, type Parameter, statement } from '../queries/statement.ts'
import { ALERT_KINDS, ALERTS, type AlertKindName } from './alert-kinds.ts'

/** What a list of alerts is narrowed to; null is everything. */
export interface AlertScope extends ListScope {
  readonly kind: AlertKindName | null
  readonly isOpen: boolean | null
}

const PROJECTION = 'operator-alerts'

const LIST = pagedList({ projection: PROJECTION, name: 'operator-alerts' }, (db, $: Parameter<AlertScope>) =>
  db
    .selectFrom('operator_alerts')
    .selectAll()
    .where((eb) => isOfTenant(eb, $))
    .where((eb) => equalIfGiven(eb, $, 'kind'))
    .where((eb) => isAsGiven(eb, eb('acknowledged_at', 'is', null), $('isOpen')))
    .orderBy('seq', 'desc'),
)
const ONE = statement('operator-alert', (db, $: Parameter<{ alertId: string }>) =>
  db.selectFrom('operator_alerts').selectAll().where('alert_id', '=', $('alertId')),
)
const OPEN = statement('open-operator-alerts', (db) =>
  db
    .selectFrom('operator_alerts')
    .select(['kind'])
    .select(({ fn }) => fn.countAll<number>().as('open'))
    .where('acknowledged_at', 'is', null)
    .groupBy('kind'),
)

/** An alert as operators see it. */
export interface ShownAlert extends Omit<ResultOf<typeof ONE>, 'seq' | 'times'> {
  /** One of {@link ALERT_KINDS}, unless a newer version of the service raised it. */
  readonly kind: string
  readonly status: 'open' | 'acknowledged'
  readonly message: string
}

/** Alerts, newest first. */
export async function listAlerts(
  app: Pick<Application, 'read' | 'readModels' | 'log'>,
  scope: AlertScope,
  page: PageRequest,
): Promise<ListPage<ShownAlert>> {
  const { items, total } = await readPage(app, LIST, scope, page)
  return { items: items.map(shown), total }
}

type Parts = Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>

/** One alert. @throws ReadModelsLate */
export async function findAlert(
  app: Omit<Parts, 'commands'>,
  alertId: string,
): Promise<ShownAlert | Rejection> {
  const found = await findRow(app, alertId)
  return isRejection(found) ? found : shown(found)
}

async function findRow(
  app: Omit<Parts, 'commands'>,
  alertId: string,
): Promise<ResultOf<typeof ONE> | Rejection> {
  const found = isId(alertId)
    ? await findCurrent(app, PROJECTION, async () => (await app.read.query(ONE, { alertId }))[0] ?? null)
    : null
  return found ?? reject('not_found', 'alert_not_found', 'There is no such alert')
}

/** Takes note of an alert. Doing it again changes nothing. @returns the alert as it stands then. */
export async function acknowledgeAlert(
  app: Parts,
  { alert_id: alertId, note }: { readonly alert_id: string; readonly note: string | null },
  context: CommandContext,
): Promise<ShownAlert | Rejection> {
  const alert = await findRow(app, alertId)
  if (isRejection(alert)) return alert
  const { tenant_id: tenantId, environment, times } = alert
  const data = { alert_id: alertId, note, ...(times > 1 && { times }) }
  const command = { type: 'Acknowledge', data } as const
  const outcome = await app.commands.execute(operatorAlert, alertId, command, {
    ...context,
    tenantId,
    environment,
  })
  if (isRejection(outcome)) return outcome
  await app.readModels.awaitProjections(operatorAlert, outcome.position ?? (await app.log.head()))
  return findAlert(app, alertId)
}

/** How many alerts of each kind are not acknowledged. */
export async function openAlerts({
  read,
}: Pick<Application, 'read'>): Promise<Readonly<Record<AlertKindName, number>>> {
  const rows = await read.query(OPEN, {})
  const open = new Map(rows.map(({ kind, open }) => [kind, open]))
  return Object.fromEntries(ALERT_KINDS.map((kind) => [kind, open.get(kind) ?? 0])) as Record<
    AlertKindName,
    number
  >
}

const UNKNOWN = 'This version of the service does not know alerts of this kind; a newer one raised it'

/** An alert as operators see it, also of a kind that another version raised before it was rolled back. */
export function shown({ seq: _seq, times: _times, ...alert }: ResultOf<typeof ONE>): ShownAlert {
  const status = alert.acknowledged_at === null ? 'open' : 'acknowledged'
  const known = Object.hasOwn(ALERTS, alert.kind) ? ALERTS[alert.kind as AlertKindName] : null
  return { ...alert, status, message: known?.message ?? UNKNOWN }
}
