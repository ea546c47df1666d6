import { type Reconciliation, reconciliation } from '../../../domain/banking/reconciliation/reconciliation.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { readable } from '../../commands/verbs.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { loadPage, pagedList, readPage } from '../../queries/pages.ts'
import { compareBalances } from './compare-balances.ts'
import { compareCredits } from './compare-credits.ts'
import { COMPARED, compareDebits } from './compare-debits.ts'
import { compareFiles } from './compare-files.ts'
import { Findings } from './findings.ts'

const LIST = pagedList({ projection: 'reconciliations', name: 'reconciliations' }, (db) =>
  db
    .selectFrom('reconciliations')
    .select(['reconciliation_id as id', 'through_position'])
    .orderBy('seq', 'desc'),
)

/**
 * Compares what events say of the money with what the ledger, the balances, the credits and the files for the bank say, and
 * records what differs. Debits that have not changed since the last comparison are compared by what read models say of
 * them, and files once.
 * @throws ReadModelsLate when it cannot be told now.
 */
export async function reconcile(
  app: Application,
  trigger: Reconciliation['trigger'],
  context: CommandContext,
): Promise<Reconciliation | Rejection> {
  const started_at = isoTime(app.clock.now())
  const through_position = String(await app.log.head())
  const { items } = await readPage(app, LIST, {}, { page: 1, limit: 1 })
  await untilCurrent(app, ...COMPARED)
  const findings = new Findings()
  const last = items[0]?.through_position ?? '0'
  const { debits, ledger } = await compareDebits(app, last, findings)
  const balances = await compareBalances(app, findings)
  const credits = await compareCredits(app, findings)
  const files = await compareFiles(app, last, findings)
  const reconciliation_id = createdId(context, reconciliation)
  const data: Reconciliation = {
    reconciliation_id,
    trigger,
    through_position,
    compared: { debits, ledger, balances, credits, files },
    differences: [...findings.reported],
    difference_count: findings.count,
    started_at,
    at: isoTime(app.clock.now()),
  }
  const command = { type: 'Record', data } as const
  // it is about all tenants
  const ofNobody = { ...context, tenantId: null, environment: null }
  return readable(
    app,
    reconciliation,
    await app.commands.create(reconciliation, reconciliation_id, command, ofNobody),
  )
}

/** One comparison. */
export async function findReconciliation(
  { commands }: Pick<Application, 'commands'>,
  id: string,
): Promise<Reconciliation | Rejection> {
  const found = await stateOf({ commands }, reconciliation, id)
  return found ?? reject('not_found', 'reconciliation_not_found', 'There is no such reconciliation')
}

/** Comparisons, newest first. */
export function listReconciliations(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  page: PageRequest,
): Promise<ListPage<Reconciliation>> {
  return loadPage(app, reconciliation, LIST, {}, page)
}
