import { type BankDebit, bankDebit } from '../../domain/banking/bank-debit.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { changed } from '../command-handling/verbs.ts'
import type { RailReport } from '../ports/bank-rail.ts'

/** Records what is reported of a debit. A report that does not fit how the debit stands is refused, and changes nothing. */
export function tellDebit(
  app: Application,
  legId: string,
  report: RailReport,
  context: CommandContext,
): Promise<BankDebit | Rejection> {
  return changed(app, bankDebit, legId, commandOf(report, app.clock.now()), context)
}

function commandOf(report: RailReport, at: number): Parameters<typeof bankDebit.decide>[0] {
  switch (report.verb) {
    case 'acknowledge':
      return { type: 'Acknowledge', at }
    case 'settle': {
      const { processorStatus, transmissionDate, effectiveDate } = report
      return { type: 'Report', processorStatus, transmissionDate, effectiveDate, at }
    }
    case 'return':
      return { type: 'Return', returnCode: report.returnCode, at }
  }
}
