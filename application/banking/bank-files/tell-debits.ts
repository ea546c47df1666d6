import { type BankDebitCommand, bankDebit } from '../../../domain/banking/bank-debit.ts'
import { bankFile } from '../../../domain/banking/bank-file.ts'
import type { BankFileData } from '../../../domain/banking/bank-file-events.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../application.ts'
import type { CommandContext } from '../../command-handling/command-context.ts'
import { within } from '../../command-handling/verbs.ts'
import { entriesOf, traceAt } from './entries.ts'
import { endDeposits, putDepositsInFile } from './micro-deposits.ts'

/** Debits that are told at once. */
const AT_ONCE = 64

/** Tells each debit of a file, and each order of micro-deposits, that its entry stands in it. @param signal aborts when the time is up. */
export async function tellInFile(
  app: Application,
  fileId: string,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of entriesOf(app, await entriesIdIn(app, fileId))) {
    const at = app.clock.now()
    const { kind, ids, entry_date: entryDate } = chunk
    await inTurns(ids, signal, async (id, index) => {
      if (kind === 'micro-deposit') return putDepositsInFile(app, id, fileId, context)
      const traceNumber = traceAt(chunk, index)
      await tell(app, id, { type: 'PutInFile', fileId, traceNumber, entryDate, at }, context)
    })
  }
}

/**
 * Tells each debit of some batches, and the verification of each order of micro-deposits, how the bank answered to them. One
 * that has gone its way meanwhile stays as it is.
 */
export async function tellAnswer(
  app: Application,
  {
    file_id,
    batch_numbers,
    outcome,
    reason,
  }: Pick<BankFileData<'BankFileAnswered'>, 'file_id' | 'batch_numbers' | 'outcome' | 'reason'>,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  const note = `The bank rejected the file with it${reason === null ? '' : `: ${reason}`}`
  for await (const { batch_number, kind, ids } of entriesOf(app, await entriesIdIn(app, file_id))) {
    if (!batch_numbers.includes(batch_number)) continue
    if (kind === 'micro-deposit') {
      // an order has two entries
      const rejected = outcome === 'rejected' ? [...new Set(ids)] : []
      await inTurns(rejected, signal, async (id) => void (await endDeposits(app, id, context)))
      continue
    }
    const at = app.clock.now()
    const command =
      outcome === 'accepted'
        ? ({ type: 'Acknowledge', at } as const)
        : ({ type: 'Fail', note, byBank: true, at } as const)
    await inTurns(ids, signal, (id) => tell(app, id, command, context))
  }
}

async function entriesIdIn({ commands }: Pick<Application, 'commands'>, fileId: string): Promise<string> {
  const { state } = await commands.load(bankFile, fileId)
  if (!state?.content) throw new Error(`The bank file ${fileId} is not recorded`)
  return state.content.entries_id
}

async function inTurns(
  ids: readonly string[],
  signal: AbortSignal,
  run: (id: string, index: number) => Promise<void>,
): Promise<void> {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    signal.throwIfAborted()
    await Promise.all(ids.slice(from, from + AT_ONCE).map((id, index) => run(id, from + index)))
  }
}

async function tell(
  { commands }: Pick<Application, 'commands'>,
  legId: string,
  command: BankDebitCommand,
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(bankDebit, legId)
  const outcome = await commands.execute(bankDebit, legId, command, within(context, state!))
  if (isRejection(outcome) && outcome.kind !== 'conflict') throw new Error(outcome.message)
}
