import { bankFile } from '../../../domain/banking/files/bank-file.ts'
import type { FileAnswer } from '../../../domain/banking/files/nacha/answers.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import type { FileApp } from './file-app.ts'
import { type ItemOutcome, parked } from './item-outcome.ts'

/** The id of a file stands in its name. */
const NAME = /-([0-9a-f]{24})\.ach$/

/**
 * Records how a bank answered to a file, or to a batch of it; its debits are told after that.
 * @param report.bank routing number of the answering bank.
 */
export async function applyAnswer(
  { commands, clock, bankFiles }: Pick<Application, 'commands' | 'clock'> & Pick<FileApp, 'bankFiles'>,
  { file: name, sha256, batch: batchNumber, outcome, reason }: FileAnswer,
  { reportId, bank }: { readonly reportId: string; readonly bank: string },
  context: CommandContext,
): Promise<ItemOutcome> {
  const [, fileId] = NAME.exec(name) ?? []
  const { state } = fileId === undefined ? { state: null } : await commands.load(bankFile, fileId)
  if (!state?.content || state.content.name !== name) return parked('There is no file of this name')
  const { originator } = state.content
  if (bank !== (originator?.destination_routing ?? bankFiles.originator.destinationRouting)) {
    return parked('The file was written for another bank')
  }
  if (sha256 !== null && sha256 !== state.content.sha256) return parked('The file has another sha256')
  const command = { type: 'Answer', batchNumber, outcome, reason, reportId, at: clock.now() } as const
  const answered = await commands.execute(bankFile, fileId!, command, context)
  if (isRejection(answered)) return parked(answered.message)
  // what this line did before counts as done by it
  return { outcome: answered.events.length > 0 || answered.position !== null ? 'applied' : 'repeated' }
}
