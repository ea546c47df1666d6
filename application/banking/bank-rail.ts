import { type BankDebit, bankDebit } from '../../domain/banking/bank-debit.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { changed } from '../command-handling/verbs.ts'

/** What a bank, or the processor between, reports of a debit. */
export type RailReport =
  | { readonly verb: 'acknowledge' }
  | {
      readonly verb: 'settle'
      readonly processorStatus: string | null
      readonly transmissionDate: string | null
      readonly effectiveDate: string | null
    }
  | { readonly verb: 'return'; readonly returnCode: string }

/** Records a report. One that does not fit how the debit stands is refused, and changes nothing. */
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

/** Why the rail does not move a debit by verbs. */
export function refuseUnlessSimulated(kind: 'simulated' | 'nacha'): Rejection | null {
  if (kind === 'simulated') return null
  return reject('conflict', 'rail_not_simulated', 'The bank rail is not the simulated one')
}
