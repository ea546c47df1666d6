import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit, DebitStatus } from '../../../domain/banking/debits/bank-debit-state.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from '../../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../../queries/statement.ts'

/** What an operator's list of debits is narrowed to; null is everything. */
interface DebitScope extends ListScope {
  readonly employer_id: string | null
  readonly status: DebitStatus | null
}

const DEBITS = pagedList(
  { projection: 'bank-debits', name: 'operator-bank-debits' },
  (db, $: Parameter<DebitScope>) =>
    db
      .selectFrom('bank_debits')
      .select('leg_id as id')
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Bank debits, newest first. */
export function listDebits(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  scope: DebitScope,
  page: PageRequest,
): Promise<ListPage<BankDebit>> {
  return loadPage(app, bankDebit, DEBITS, scope, page)
}

/** What an operator makes of a debit in quarantine, or of one that the legacy service was thought to have collected. */
export interface Verdict {
  readonly verdict: 'Release' | 'Reject'
  /** For its history. */
  readonly note: string | null
}

/** Lets a debit out of quarantine or ends it there, or raises one anew that a record stopped. Any other is refused. */
export function resolveQuarantine(
  app: Application,
  debitId: string,
  { verdict, note }: Verdict,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  return changed(app, bankDebit, debitId, { type: verdict, note, at: app.clock.now() }, context)
}
