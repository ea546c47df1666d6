import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import { bankFile, refuseUnfetched } from '../../../domain/banking/files/bank-file.ts'
import { type BankReport, bankReport } from '../../../domain/banking/files/bank-report.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { changed, readable, within } from '../../commands/verbs.ts'
import { returnOf } from '../accounts/payer-corrections.ts'
import { itemCommandId, recordSent } from './apply-item.ts'

/** What an operator makes of a parked item. */
export interface AppliedByHand {
  readonly line: number
  readonly transaction_id: string
  readonly return_code: string
  readonly reason: string
}

/**
 * Applies a parked item to the debit that an operator names: it is returned. The report records
 * it first, so that the item brings back no second debit. After a crash the process manager `bank-files` does the rest.
 */
export async function applyByHand(
  app: Application,
  reportId: string,
  item: AppliedByHand,
  context: CommandContext,
): Promise<BankReport | Rejection> {
  const { line, transaction_id, return_code, reason } = item
  const { state: debit } = await app.commands.load(bankDebit, transaction_id)
  if (debit === null) {
    return reject('not_found', 'debit_not_found', 'transaction_id names no bank debit', 'transaction_id')
  }
  const at = app.clock.now()
  const { amount_cents } = debit
  const apply = { type: 'Apply', line, transaction_id, amount_cents, return_code, reason, at } as const
  const { state: report } = await app.commands.load(bankReport, reportId)
  const decided = bankReport.decide(apply, report)
  if (isRejection(decided)) return decided
  if (decided.length > 0) {
    if (debit.in_file === null) {
      const why = 'transaction_id names a debit that stands in no file for a bank: none can bring it back'
      return reject('conflict', 'debit_in_no_file', why, 'transaction_id')
    }
    const { state: file } = await app.commands.load(bankFile, debit.in_file.file_id)
    const refusal = refuseUnfetched(file!)
    if (refusal) return refusal
    const returned = bankDebit.decide({ type: 'Return', return_code, at }, debit)
    if (isRejection(returned)) return returned
  }
  const applied = await app.commands.execute(bankReport, reportId, apply, context)
  if (isRejection(applied)) return applied
  const after = await returnByHand(app, reportId, item, context)
  return isRejection(after) ? after : readable(app, bankReport, applied)
}

/** Returns the debit of an item that was applied by hand, once; one that something else brought back parks the item again. */
export async function returnByHand(
  app: Application,
  reportId: string,
  { line, transaction_id, return_code }: Omit<AppliedByHand, 'reason'>,
  context: CommandContext,
): Promise<null | Rejection> {
  const { state: debit } = await app.commands.load(bankDebit, transaction_id)
  const once = { ...within(context, debit!), commandId: itemCommandId(reportId, line), mayRepeat: true }
  const command = await returnOf(app, debit!, return_code)
  const returned = await changed(app, bankDebit, transaction_id, command, once)
  if (isRejection(returned)) {
    const { message: reason } = returned
    const park = {
      type: 'ParkAgain',
      line,
      transaction_id,
      return_code,
      reason,
      at: app.clock.now(),
    } as const
    const commandId = derivedId(context.commandId, 'park-again')
    const parked = await app.commands.execute(bankReport, reportId, park, { ...context, commandId })
    return isRejection(parked) ? parked : returned
  }
  if (debit!.in_file !== null) await recordSent(app, debit!.in_file.file_id, once)
  return null
}
