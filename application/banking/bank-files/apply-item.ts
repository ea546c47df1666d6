import { bankDebit } from '../../../domain/banking/bank-debit.ts'
import { correctionOf, type ReportItem } from '../../../domain/banking/nacha/report.ts'
import { disablesAccount, isReturnOfReceiver } from '../../../domain/banking/nacha/return-codes.ts'
import { microDeposits } from '../../../domain/banking/rail-deposits.ts'
import { isRoutingNumber } from '../../../domain/banking/routing-number.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../application.ts'
import type { CommandContext } from '../../command-handling/command-context.ts'
import { within } from '../../command-handling/verbs.ts'
import { correctAchAccount, disableAchAccount } from '../ach-accounts.ts'
import { correctPayerAccount } from '../payer-corrections.ts'
import { type ItemOutcome, parked } from './item-outcome.ts'
import { endDeposits } from './micro-deposits.ts'
import type { FileApp } from './parts.ts'
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
  if (item.companyId !== parts.app.bankFiles.originator.companyId) {
    return parked('Its batch is of another company')
  }
  if (item.kind === 'other') return parked('It is neither a return nor a notification of change')
  const sent = await parts.find(item.originalTrace)
  if (sent.length === 0) return parked('No entry was sent with this trace number')
  if (item.kind === 'change') return applyChange(parts.app, item, sent[0]!, context)
  const entry = sent.find(({ amountCents }) => amountCents === item.amountCents)
  if (!entry) return parked('The entry with this trace number was sent with another amount')
  return applyReturn(parts.app, item, entry, context)
}

async function applyReturn(
  app: Application,
  { code, isDebit }: Of<'return'>,
  { kind, id, batchClosesAt }: SentEntry,
  context: CommandContext,
): Promise<ItemOutcome> {
  if (!isReturnOfReceiver(code)) return parked(`${code} disputes a return: agree on it with the bank`)
  if (isDebit !== (kind !== 'micro-deposit')) return parked('The entry was sent in the other direction')
  if (kind === 'micro-deposit') {
    const achAccountId = await endDeposits(app, id, context)
    if (disablesAccount(code)) await disableAchAccount(app, achAccountId, code, context)
    return { outcome: 'applied' }
  }
  const { state } = await app.commands.load(bankDebit, id)
  const command = { type: 'Return', returnCode: code, ofBatch: batchClosesAt, at: app.clock.now() } as const
  const returned = await app.commands.execute(bankDebit, id, command, within(context, state!))
  if (isRejection(returned)) return parked(returned.message)
  // what this item did before counts as done by it
  return { outcome: returned.events.length > 0 || returned.position !== null ? 'applied' : 'repeated' }
}

async function applyChange(
  app: Application,
  { code, correctedData }: Of<'change'>,
  { kind, id }: SentEntry,
  context: CommandContext,
): Promise<ItemOutcome> {
  const correction = correctionOf(code, correctedData)
  if (correction === null)
    return parked(`${code} corrects no numbers that can be used: ask the bank, or the employer`)
  if (correction.routingNumber !== null && !isRoutingNumber(correction.routingNumber)) {
    return parked('The check digit of the corrected routing number is wrong')
  }
  const given = Object.fromEntries(Object.entries(correction).filter(([, value]) => value !== null))
  const correct = { changeCode: code, ...given }
  if (kind === 'micro-deposit') {
    const { state: order } = await app.commands.load(microDeposits, id)
    return outcomeOf(await correctAchAccount(app, order!.ach_account_id, correct, context))
  }
  const debit = (await app.commands.load(bankDebit, id)).state!
  const whose = within(context, debit)
  return outcomeOf(
    debit.bank_account_id === null
      ? await correctPayerAccount(app, debit, correct, whose)
      : await correctAchAccount(app, debit.bank_account_id, correct, whose),
  )
}

function outcomeOf(corrected: unknown): ItemOutcome {
  return isRejection(corrected) ? parked(corrected.message) : { outcome: 'applied' }
}
