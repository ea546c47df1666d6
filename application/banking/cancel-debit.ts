import { bankDebit } from '../../domain/banking/bank-debit.ts'
import type { BankDebit } from '../../domain/banking/bank-debit-state.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { changed } from '../command-handling/verbs.ts'

/** Cancels a debit before its batch closes. Cancelling again changes nothing. */
export function cancelDebit(
  app: Application,
  legId: string,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  return changed(app, bankDebit, legId, { type: 'Cancel', at: app.clock.now() }, context)
}
