import { type BankDebitCommand, bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import { bankFile } from '../../../domain/banking/files/bank-file.ts'
import type { BankFileData } from '../../../domain/banking/files/bank-file-events.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { FirstFailure } from '../../commands/first-failure.ts'
import { within } from '../../commands/verbs.ts'
import { entriesOf, traceAt } from './entries.ts'
import { endDeposits, putDepositsInFile } from './micro-deposits.ts'

/** Debits that are told at once. */
const AT_ONCE = 64

/**
 * Tells each debit of a file, and each order of micro-deposits, that its entry stands in it.
 * @param signal aborts when the time is up. @throws what went wrong with one of them, once the others are told.
 */
export async function reportInFile(
  app: Application,
  fileId: string,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  const { entriesId, ofBatch } = await recordedFile(app, fileId)
  const failure = new FirstFailure()
  for await (const chunk of entriesOf(app, entriesId)) {
    const at = app.clock.now()
    const { kind, ids, entry_date: entryDate } = chunk
    await inTurns(ids, { signal, failure }, async (id, index) => {
      if (kind === 'micro-deposit') return putDepositsInFile(app, id, fileId, context)
      const traceNumber = traceAt(chunk, index)
      const fingerprint = chunk.fingerprints?.[index]
      const put = { type: 'PutInFile', ofBatch, fileId, traceNumber, entryDate, fingerprint, at } as const
      await tell(app, id, [put], context)
    })
  }
  failure.throwIfAny()
}

/**
 * Tells each debit of some batches, and the verification of each order of micro-deposits, how the bank answered to them. One
 * that has gone its way meanwhile, or was presented again since, stays as it is.
 * @param signal aborts when the time is up. @throws what went wrong with one of them, once the others are told.
 */
export async function reportAnswer(
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
  const { entriesId, ofBatch } = await recordedFile(app, file_id)
  const failure = new FirstFailure()
  for await (const chunk of entriesOf(app, entriesId)) {
    const { batch_number, kind, ids, entry_date: entryDate } = chunk
    if (!batch_numbers.includes(batch_number)) continue
    if (kind === 'micro-deposit') {
      // an order has two entries
      const rejected = outcome === 'rejected' ? [...new Set(ids)] : []
      const end = async (id: string) => void (await endDeposits(app, id, context))
      await inTurns(rejected, { signal, failure }, end)
      continue
    }
    const at = app.clock.now()
    const commandsFor = (index: number): readonly BankDebitCommand[] => {
      if (outcome === 'rejected') return [{ type: 'Fail', note, byBank: true, ofBatch, at }]
      // it may not know yet on which day its entry takes effect
      const traceNumber = traceAt(chunk, index)
      const fingerprint = chunk.fingerprints?.[index]
      const entry = { ofBatch, fileId: file_id, traceNumber, entryDate, fingerprint }
      const put = { type: 'PutInFile', ...entry, at } as const
      return [put, { type: 'Acknowledge', ofBatch, at }]
    }
    await inTurns(ids, { signal, failure }, (id, index) => tell(app, id, commandsFor(index), context))
  }
  failure.throwIfAny()
}

async function recordedFile({ commands }: Pick<Application, 'commands'>, fileId: string) {
  const { state } = await commands.load(bankFile, fileId)
  if (!state?.content) throw new Error(`The bank file ${fileId} is not recorded`)
  return { entriesId: state.content.entries_id, ofBatch: state.batch_closes_at }
}

async function inTurns(
  ids: readonly string[],
  { signal, failure }: { readonly signal: AbortSignal; readonly failure: FirstFailure },
  run: (id: string, index: number) => Promise<void>,
): Promise<void> {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    signal.throwIfAborted()
    const some = ids.slice(from, from + AT_ONCE)
    await Promise.all(some.map((id, index) => failure.unlessFailing(() => run(id, from + index))))
  }
}

async function tell(
  { commands }: Pick<Application, 'commands'>,
  debitId: string,
  commandsInOrder: readonly BankDebitCommand[],
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(bankDebit, debitId)
  const outcome = await commands.execute(bankDebit, debitId, commandsInOrder, within(context, state!))
  if (isRejection(outcome) && outcome.kind !== 'conflict') throw new Error(outcome.message)
}
