import { type BankFile, type BankFileCommand, bankFile } from '../../../domain/banking/files/bank-file.ts'
import {
  type BankReport,
  type BankReportCommand,
  bankReport,
} from '../../../domain/banking/files/bank-report.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { readable } from '../../commands/verbs.ts'

/** What operators decide of files. A verb that does not fit how a file stands is refused, and changes nothing. */
export async function decideFile(
  app: Application,
  fileId: string,
  command: Extract<BankFileCommand, { type: 'ExposeAgain' | 'TreatAsSent' | 'Answer' }>,
  context: CommandContext,
): Promise<BankFile | Rejection> {
  return readable(app, bankFile, await app.commands.execute(bankFile, fileId, command, context))
}

/** The same of files that banks reported with. */
export async function decideReport(
  app: Application,
  reportId: string,
  command: Extract<BankReportCommand, { type: 'ReadAgain' | 'Resolve' }>,
  context: CommandContext,
): Promise<BankReport | Rejection> {
  return readable(app, bankReport, await app.commands.execute(bankReport, reportId, command, context))
}
