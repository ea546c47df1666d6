import type { AchAccount } from '../../domain/banking/ach-account.ts'
import { type BankAccountRecord, userOf } from '../../domain/banking/bank-account.ts'
import { type PrimaryOwner, primaryAccount } from '../../domain/banking/primary-account.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable, within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'

/** An account that can be its owner's primary one. */
interface Candidate {
  readonly accountId: string
  readonly owner: PrimaryOwner
}

/** A metadata account: its owner is the employer, else the carrier, else the user. */
export function ofBankAccount(account: BankAccountRecord): Candidate {
  const { bank_account_id: accountId, tenant_id, environment, employer_id, carrier_id } = account
  const whose =
    employer_id !== null
      ? ({ owner_type: 'employer', owner_id: employer_id } as const)
      : carrier_id !== null
        ? ({ owner_type: 'carrier', owner_id: carrier_id } as const)
        : ({ owner_type: 'user', owner_id: userOf(account) } as const)
  return { accountId, owner: { tenant_id, environment, layer: 'bank_account', ...whose } }
}

export function ofAchAccount(
  account: Pick<AchAccount, 'ach_account_id' | 'tenant_id' | 'environment' | 'owner_type' | 'owner_id'>,
): Candidate {
  const { ach_account_id: accountId, tenant_id, environment, owner_type, owner_id } = account
  return { accountId, owner: { tenant_id, environment, layer: 'ach_account', owner_type, owner_id } }
}

/** The id of the stream that says which account of an owner is primary. */
export function primaryIdOf({ tenant_id, environment, layer, owner_type, owner_id }: PrimaryOwner): string {
  return derivedId(tenant_id, `primary/${environment}/${layer}/${owner_type}/${owner_id}`)
}

/** The primary account of an owner; null: none is. */
export async function primaryOf(
  { commands }: Pick<Application, 'commands'>,
  owner: PrimaryOwner,
): Promise<string | null> {
  return (await commands.load(primaryAccount, primaryIdOf(owner))).state.account_id
}

export async function isPrimary(
  app: Pick<Application, 'commands'>,
  { accountId, owner }: Candidate,
): Promise<boolean> {
  return (await primaryOf(app, owner)) === accountId
}

/** Makes an account its owner's primary one. @param isOfCreation asked for at its creation, and done once. */
export function choosePrimary(
  app: Pick<Application, 'commands' | 'clock' | 'readModels'>,
  candidate: Candidate,
  context: CommandContext,
  isOfCreation = false,
): Promise<void> {
  return decide(app, candidate, { type: 'Choose', isOfCreation }, context)
}

/** An account is not its owner's primary one any more, and no other is. */
export function clearPrimary(
  app: Pick<Application, 'commands' | 'clock' | 'readModels'>,
  candidate: Candidate,
  context: CommandContext,
): Promise<void> {
  return decide(app, candidate, { type: 'Clear' }, context)
}

async function decide(
  app: Pick<Application, 'commands' | 'clock' | 'readModels'>,
  { accountId, owner }: Candidate,
  wanted: { readonly type: 'Choose'; readonly isOfCreation: boolean } | { readonly type: 'Clear' },
  context: CommandContext,
): Promise<void> {
  const primaryId = primaryIdOf(owner)
  const command = { ...wanted, primaryId, owner, accountId, at: app.clock.now() }
  // the key of a creation is the account's
  const { keyedRequest: _, ...ofPrimary } = within(context, owner)
  const outcome = await app.commands.execute(primaryAccount, primaryId, command, ofPrimary)
  if (isRejection(await readable(app, primaryAccount, outcome))) throw new Error('It cannot be refused')
}
