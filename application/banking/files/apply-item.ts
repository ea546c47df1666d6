import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { microDeposits } from '../../../domain/banking/accounts/micro-deposits.ts'
import { payerCorrection } from '../../../domain/banking/accounts/payer-correction.ts'
import { isRoutingNumber } from '../../../domain/banking/accounts/routing-number.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import {
  disablesAccount,
  isReturnOfReceiver,
  RETURN_CODE,
} from '../../../domain/banking/debits/return-codes.ts'
import { bankFile } from '../../../domain/banking/files/bank-file.ts'
import { notificationOfChange, type ReportItem } from '../../../domain/banking/files/nacha/report.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { within } from '../../commands/verbs.ts'
import { correctAchAccount, disableNumbers } from '../accounts/ach-accounts.ts'
import { correctionIdOf, correctPayerAccount, returnOf } from '../accounts/payer-corrections.ts'
import type { FileApp } from './file-app.ts'
import { type ItemOutcome, parked } from './item-outcome.ts'
import { endDeposits } from './micro-deposits.ts'
import type { SentEntry, sentEntries } from './sent-entries.ts'

export interface ItemParts {
  readonly app: Application & Pick<FileApp, 'bankFiles'>
  readonly find: ReturnType<typeof sentEntries>
}

type Of<Kind extends ReportItem['kind']> = Extract<ReportItem, { kind: Kind }>

/** Carries out what a bank reports of one entry, or says why not. */
export async function applyItem(
  parts: ItemParts,
  item: ReportItem,
  context: CommandContext,
): Promise<ItemOutcome> {
  if (item.kind === 'other') return parked('The item is neither a return nor a notification of change')
  if (item.kind === 'unreadable') return parked(`The item cannot be read: ${item.problem}`)
  const sent = await parts.find(item.originalTrace)
  if (sent.length === 0) return parked('No entry was sent with this trace number')
  const { companyId: today } = parts.app.bankFiles.originator
  const ours = sent.filter(({ companyId }) => (companyId ?? today) === item.companyId)
  if (ours.length === 0) return parked('Its batch is of another company')
  const entry =
    item.kind === 'change' ? ours[0]! : ours.find(({ amountCents }) => amountCents === item.amountCents)
  if (!entry) return parked('The entry with this trace number was sent with another amount')
  await recordSent(parts.app, entry.fileId, context)
  return item.kind === 'change'
    ? applyChange(parts.app, item, entry, context)
    : applyReturn(parts.app, item, entry, context)
}

/** What an item of a report does is done under this id, whenever and however often that is repeated. */
export function itemCommandId(reportId: string, line: number): string {
  return derivedId(`bank-report/${reportId}`, String(line))
}

/** What a bank sends back it has: nobody sends its file again. */
export async function recordSent(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  fileId: string,
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(bankFile, fileId)
  if (state?.status !== 'uncertain') return
  const command = { type: 'TreatAsSent', note: 'The bank sent an entry of it back', at: clock.now() } as const
  // somebody may have found it meanwhile
  await commands.execute(bankFile, fileId, command, context)
}

async function applyReturn(
  app: Application,
  { code, isDebit }: Of<'return'>,
  { kind, id, batchClosesAt, fingerprint }: SentEntry,
  context: CommandContext,
): Promise<ItemOutcome> {
  if (!RETURN_CODE.test(code)) return parked(`${code} is no code of a return, R01 to R85: ask the bank`)
  if (!isReturnOfReceiver(code)) return parked(`${code} disputes a return: agree on it with the bank`)
  if (isDebit !== (kind !== 'micro-deposit')) return parked('The entry was sent in the other direction')
  if (kind === 'micro-deposit') {
    const achAccountId = await endDeposits(app, id, context)
    if (disablesAccount(code)) {
      const { tenant_id, environment, account } = (await app.commands.load(achAccount, achAccountId)).state!
      // its bank may have corrected the numbers since
      const areCurrent = fingerprint === null || fingerprint === account.fingerprint
      const returned = areCurrent
        ? { tenant_id, environment, achAccountId, numbers: [account] }
        : { tenant_id, environment, achAccountId: null, numbers: [{ fingerprint }] }
      await disableNumbers(app, returned, code, context)
    }
    return { outcome: 'applied' }
  }
  const { state } = await app.commands.load(bankDebit, id)
  const command = { ...(await returnOf(app, state!, code, fingerprint)), ofBatch: batchClosesAt }
  const returned = await app.commands.execute(bankDebit, id, command, within(context, state!))
  if (isRejection(returned)) return parked(returned.message)
  // what this item did before counts as done by it
  return { outcome: returned.events.length > 0 || returned.position !== null ? 'applied' : 'repeated' }
}

async function applyChange(
  app: Application,
  { code, originalTrace, correctedData }: Of<'change'>,
  { kind, id }: SentEntry,
  context: CommandContext,
): Promise<ItemOutcome> {
  const change = notificationOfChange(code, correctedData)
  if (change === null)
    return parked(`${code} corrects no numbers that can be used: ask the bank, or the employer`)
  if (change.routingNumber !== null && !isRoutingNumber(change.routingNumber)) {
    return parked('The check digit of the corrected routing number is wrong')
  }
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== null))
  const correct = { changeCode: code, ...given }
  // the same one in another file must not undo what was corrected since
  const what = JSON.stringify([originalTrace, code, correctedData])
  const commandId = derivedId(app.personalData.fingerprint('bank-correction', what), 'correct')
  const once = { ...context, commandId, mayRepeat: true }
  const debit = kind === 'micro-deposit' ? null : (await app.commands.load(bankDebit, id)).state!
  const whose = debit === null ? once : within(once, debit)
  const achAccountId =
    debit === null
      ? (await app.commands.load(microDeposits, id)).state!.ach_account_id
      : debit.bank_account_id
  const isDone =
    achAccountId === null
      ? await app.commands.isDone(payerCorrection, correctionIdOf(debit!), 'Correct', whose)
      : await app.commands.isDone(achAccount, achAccountId, 'Correct', whose)
  if (isDone) return { outcome: 'repeated' }
  const corrected =
    achAccountId === null
      ? await correctPayerAccount(app, debit!, correct, whose)
      : await correctAchAccount(app, achAccountId, correct, whose)
  return isRejection(corrected) ? parked(corrected.message) : { outcome: 'applied' }
}
