import { achAccount, awaitsDeposits } from '../../../domain/banking/accounts/ach-account.ts'
import {
  type MicroDepositsCommand,
  microDeposits,
  microDepositsOfBatch,
  type OrderedMicroDeposits,
} from '../../../domain/banking/accounts/micro-deposits.ts'
import { isRoutingNumber } from '../../../domain/banking/accounts/routing-number.ts'
import { writtenName } from '../../../domain/banking/files/nacha/characters.ts'
import type { DraftEntry } from '../../../domain/banking/files/nacha/draft.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import type { BankAccount, MicroDeposits } from '../../ports/bank-rail.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { amountsOf, endVerification } from '../accounts/account-verification.ts'
import { keptAccount } from '../accounts/payer-accounts.ts'
import type { FileApp } from './file-app.ts'

/** Has two deposits paid with the next file, once. @throws ProviderRefused where no file can hold them. */
export async function orderMicroDeposits(
  { commands, clock }: Pick<FileApp, 'commands' | 'clock'>,
  { depositsId, achAccountId, account }: MicroDeposits,
): Promise<void> {
  const receiver = receiverOf(account)
  if (typeof receiver === 'string') throw new ProviderRefused(receiver)
  const context: CommandContext = {
    actor: { type: 'system', id: 'bank-rail' },
    tenantId: null,
    environment: null,
    correlationId: depositsId,
    commandId: derivedId(depositsId, 'micro-deposits'),
    mayRepeat: true,
  }
  const data = { deposits_id: depositsId, ach_account_id: achAccountId }
  const ordered = orThrow(
    await commands.execute(microDeposits, depositsId, { type: 'Order', data, at: clock.now() }, context),
  )
  const { batch_closes_at } = ordered.state!
  orThrow(
    await commands.execute(
      microDepositsOfBatch,
      batchIdOf(batch_closes_at),
      { type: 'List', depositsId, batchClosesAt: batch_closes_at, at: clock.now() },
      context,
    ),
  )
}

/** A batch whose file is written. */
interface DepositsBatch {
  /** Epoch milliseconds. */
  readonly closesAt: number
  readonly entryDate: string
  /** What stands in a file of it already. */
  readonly recorded: ReadonlySet<string>
}

/**
 * The deposits that go with a batch, as two entries of each order, to the numbers as they are now: those whose verification
 * is under way still. An order whose account cannot be read is left out.
 */
export async function* orderedDeposits(
  app: FileApp,
  { closesAt, entryDate, recorded }: DepositsBatch,
  context: CommandContext,
): AsyncGenerator<readonly [DraftEntry, DraftEntry]> {
  const { state } = await app.commands.load(microDepositsOfBatch, batchIdOf(isoTime(closesAt)))
  for (const id of state.deposits) {
    const { state: order } = await app.commands.load(microDeposits, id)
    if (order === null || order.file_id !== null || order.is_left_out || recorded.has(id)) continue
    const { state: owned } = await app.commands.load(achAccount, order.ach_account_id)
    if (owned === null || !awaitsDeposits(owned, id, app.clock.now())) continue
    const account = await keptAccount(app, owned.account)
    const receiver = account === null ? 'The account cannot be read' : receiverOf(account)
    if (typeof receiver === 'string') {
      await endVerification(app, order.ach_account_id, id, context)
      await changed(app, id, { type: 'LeaveOut', note: receiver, at: app.clock.now() }, context)
      continue
    }
    const [one, other] = amountsOf(app, { verification_id: id })
    const { fingerprint } = owned.account
    const entry = { ...receiver, kind: 'micro-deposit' as const, id, entryDate, fingerprint }
    yield [
      { ...entry, amountCents: one },
      { ...entry, amountCents: other },
    ]
  }
}

/** The receiver of an entry. */
type Receiver = Pick<DraftEntry, 'name' | 'routing' | 'account' | 'accountType'>

/** An account as a file holds it, or why none can. */
function receiverOf({
  holderName,
  routingNumber,
  accountNumber,
  accountType,
}: BankAccount): Receiver | string {
  const name = writtenName(holderName, 22)
  if (!isRoutingNumber(routingNumber)) return 'The check digit of the routing number is wrong'
  if (name === null) return 'The name of the account holder cannot be written'
  return { name, routing: routingNumber, account: accountNumber, accountType }
}

/** Records that deposits stand in a file. */
export async function putDepositsInFile(
  app: Pick<FileApp, 'commands' | 'clock'>,
  depositsId: string,
  fileId: string,
  context: CommandContext,
): Promise<void> {
  await changed(app, depositsId, { type: 'PutInFile', fileId, at: app.clock.now() }, context)
}

/** The bank has not paid deposits, or they came back: their verification has ended. @returns their account's id. */
export async function endDeposits(
  app: Pick<FileApp, 'commands' | 'clock'>,
  depositsId: string,
  context: CommandContext,
): Promise<string> {
  const { state: order } = await app.commands.load(microDeposits, depositsId)
  const { ach_account_id } = order!
  await endVerification(app, ach_account_id, depositsId, context)
  return ach_account_id
}

async function changed(
  { commands }: Pick<FileApp, 'commands'>,
  depositsId: string,
  command: MicroDepositsCommand,
  context: CommandContext,
): Promise<OrderedMicroDeposits> {
  const outcome = orThrow(await commands.execute(microDeposits, depositsId, command, context))
  return outcome.state!
}

function batchIdOf(batchClosesAt: string): string {
  return derivedId('micro-deposits', batchClosesAt)
}
