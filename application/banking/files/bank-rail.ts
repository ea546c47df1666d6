import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'
import type { RailReport } from '../../ports/bank-rail.ts'
import { debitDisabledBy } from '../accounts/disabled-numbers.ts'
import { correctedAccount } from '../accounts/payer-corrections.ts'

/**
 * Records what is reported of a debit. A report that does not fit how the debit stands is refused, and changes nothing; so is
 * one of a debit that goes through a real bank, whose own files report of it.
 */
export async function reportDebit(
  app: Application,
  debitId: string,
  report: RailReport,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  const { state } = await app.commands.load(bankDebit, debitId)
  if (state !== null && app.bankRails[state.environment].kind !== 'simulated') {
    const why = 'The debit goes through a bank: what becomes of it is read from the files of the bank'
    return reject('conflict', 'rail_not_simulated', why)
  }
  return changed(app, bankDebit, debitId, commandOf(report, app.clock.now()), context)
}

function commandOf(report: RailReport, at: number): Parameters<typeof bankDebit.decide>[0] {
  switch (report.verb) {
    case 'acknowledge':
      return { type: 'Acknowledge', at }
    case 'settle':
      return { type: 'Report', ...report.settlement, at }
    case 'return':
      return { type: 'Return', return_code: report.return_code, at }
  }
}

/** Presents a debit again that came back for lack of money: it goes with the batch that closes next. */
export async function representDebit(
  app: Application,
  debitId: string,
  note: string | null,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  const { state } = await app.commands.load(bankDebit, debitId)
  if (state !== null && (await debitDisabledBy(app, state, await correctedAccount(app, state))) !== null) {
    const why = 'The debit cannot be presented again: its account is disabled'
    return reject('conflict', 'ach_account_disabled', why)
  }
  return changed(app, bankDebit, debitId, { type: 'Represent', note, at: app.clock.now() }, context)
}
