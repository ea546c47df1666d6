import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'
import { OF_TENANT, operatorList } from '../../queries/lists.ts'

/** Bank debits. */
export const listDebits = operatorList(bankDebit, {
  projection: 'bank-debits',
  table: 'bank_debits',
  id: 'leg_id',
  by: [...OF_TENANT, 'employer_id', 'status'],
})

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
