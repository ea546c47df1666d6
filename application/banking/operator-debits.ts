import { bankDebit } from '../../domain/banking/bank-debit.ts'
import type { BankDebit, DebitStatus } from '../../domain/banking/bank-debit-state.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { changed } from '../command-handling/verbs.ts'
import {
  type ListPage,
  type ListScope,
  type PagePart,
  type PageRequest,
  readPage,
} from '../read-models/pages.ts'
import {
  equalsIfGiven,
  isOfTenant,
  type Parameter,
  type Reading,
  statement,
} from '../read-models/statement.ts'

/** What an operator's list of debits is narrowed to; null is everything. */
interface DebitScope extends ListScope {
  readonly employerId: string | null
  readonly status: DebitStatus | null
}

const debitsOf = (db: Reading, $: Parameter<DebitScope>) =>
  db
    .selectFrom('bank_debits')
    .where((eb) => isOfTenant(eb, $))
    .where((eb) => equalsIfGiven(eb, 'employer_id', $('employerId')))
    .where((eb) => equalsIfGiven(eb, 'status', $('status')))
const DEBITS = {
  projection: 'bank-debits',
  rows: statement('operator-bank-debits', (db, $: Parameter<DebitScope & PagePart>) =>
    debitsOf(db, $).select('leg_id').orderBy('seq', 'desc').limit($('limit')).offset($('offset')),
  ),
  count: statement('operator-bank-debit-count', (db, $: Parameter<DebitScope>) =>
    debitsOf(db, $).select(({ fn }) => fn.countAll<number>().as('total')),
  ),
}

/** Bank debits, newest first. The read model tells which there are; the log what they are. */
export async function listDebits(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  scope: DebitScope,
  page: PageRequest,
): Promise<ListPage<BankDebit>> {
  const { items, total } = await readPage(app, DEBITS, scope, page)
  const loaded = await Promise.all(items.map(({ leg_id }) => app.commands.load(bankDebit, leg_id)))
  return { items: loaded.map(({ state }) => state).filter((state) => state !== null), total }
}

/** What an operator makes of a debit in quarantine. */
export interface Verdict {
  readonly verdict: 'Release' | 'Reject'
  /** For its history. */
  readonly note: string | null
}

/** Lets a debit out of quarantine, or ends it there. One that is not in quarantine is refused. */
export function resolveQuarantine(
  app: Application,
  legId: string,
  { verdict, note }: Verdict,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  return changed(app, bankDebit, legId, { type: verdict, note, at: app.clock.now() }, context)
}
