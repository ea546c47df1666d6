import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'

/** Cancels a debit before its batch closes. Cancelling again changes nothing. */
export function cancelDebit(
  app: Application,
  debitId: string,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  return changed(app, bankDebit, debitId, { type: 'Cancel', at: app.clock.now() }, context)
}
