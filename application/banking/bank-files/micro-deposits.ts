import { z } from 'zod'
import { writtenName } from '../../../domain/banking/nacha/characters.ts'
import type { DraftEntry } from '../../../domain/banking/nacha/draft.ts'
import {
  type MicroDepositsCommand,
  microDeposits,
  microDepositsOfBatch,
  type OrderedMicroDeposits,
} from '../../../domain/banking/rail-deposits.ts'
import { isRoutingNumber } from '../../../domain/banking/routing-number.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { CommandContext } from '../../command-handling/command-context.ts'
import { derivedId } from '../../event-registry.ts'
import type { MicroDeposits } from '../../ports/bank-rail.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import type { FileApp } from './parts.ts'

/** Account and amounts as the vault keeps them until they are in a file. */
const kept = z.object({
  name: z.string(),
  routing: z.string(),
  account: z.string(),
  accountType: z.enum(['checking', 'savings']),
  amounts: z.array(z.int().min(1).max(99)).length(2),
})

/** Has two deposits paid with the next file, once. @throws ProviderRefused where no file can hold them. */
export async function orderMicroDeposits(
  { commands, clock, vault }: Pick<FileApp, 'commands' | 'clock' | 'vault'>,
  { depositsId, achAccountId, account, amountsCents }: MicroDeposits,
): Promise<void> {
  const name = writtenName(account.holderName, 22)
  if (!isRoutingNumber(account.routingNumber)) {
    throw new ProviderRefused('The check digit of the routing number is wrong')
  }
  if (name === null) throw new ProviderRefused('The name of the account holder cannot be written')
  const vault_ref = `micro-deposits/${depositsId}`
  const { routingNumber: routing, accountNumber, accountType } = account
  const secret = kept.parse({
    name,
    routing,
    account: accountNumber,
    accountType,
    amounts: [...amountsCents],
  })
  const context: CommandContext = {
    ...{ actor: { type: 'system', id: 'bank-rail' }, tenantId: null, environment: null },
    ...{ correlationId: depositsId, commandId: derivedId(depositsId, 'micro-deposits'), mayRepeat: true },
  }
  const { state: before } = await commands.load(microDeposits, depositsId)
  if (before === null) await vault.getOrPut(vault_ref, () => JSON.stringify(secret))
  const data = { deposits_id: depositsId, ach_account_id: achAccountId, vault_ref }
  const ordered = await commands.execute(
    microDeposits,
    depositsId,
    { type: 'Order', data, at: clock.now() },
    context,
  )
  if (isRejection(ordered)) throw new Error(ordered.message)
  const { batch_closes_at } = ordered.state!
  const listed = await commands.execute(
    microDepositsOfBatch,
    batchIdOf(batch_closes_at),
    { type: 'List', depositsId, batchClosesAt: batch_closes_at, at: clock.now() },
    context,
  )
  if (isRejection(listed)) throw new Error(listed.message)
}

/** The deposits that go with a batch, as entries. One whose account cannot be read any more is left out. */
export async function* orderedDeposits(
  app: FileApp,
  closesAt: number,
  entryDate: string,
  context: CommandContext,
): AsyncGenerator<DraftEntry> {
  const { state } = await app.commands.load(microDepositsOfBatch, batchIdOf(new Date(closesAt).toISOString()))
  for (const depositsId of state.deposits) {
    const { state: order } = await app.commands.load(microDeposits, depositsId)
    if (order === null || order.file_id !== null || order.is_left_out) continue
    const secret = await app.vault.get(order.vault_ref)
    if (secret === null) {
      const note = 'The account cannot be read'
      await changed(app, depositsId, { type: 'LeaveOut', note, at: app.clock.now() }, context)
      continue
    }
    const { amounts, ...account } = kept.parse(JSON.parse(secret))
    for (const amountCents of amounts) {
      yield { ...account, kind: 'micro-deposit', id: depositsId, amountCents, entryDate }
    }
  }
}

/** Records that deposits stand in a file, and forgets their account. */
export async function putDepositsInFile(
  app: Pick<FileApp, 'commands' | 'clock' | 'vault'>,
  depositsId: string,
  fileId: string,
  context: CommandContext,
): Promise<void> {
  const { vault_ref } = await changed(
    app,
    depositsId,
    { type: 'PutInFile', fileId, at: app.clock.now() },
    context,
  )
  await app.vault.remove(vault_ref)
}

async function changed(
  { commands }: Pick<FileApp, 'commands'>,
  depositsId: string,
  command: MicroDepositsCommand,
  context: CommandContext,
): Promise<OrderedMicroDeposits> {
  const outcome = await commands.execute(microDeposits, depositsId, command, context)
  if (isRejection(outcome)) throw new Error(outcome.message)
  return outcome.state!
}

function batchIdOf(batchClosesAt: string): string {
  return derivedId('micro-deposits', batchClosesAt)
}
