import type { AchAccount } from '../../../domain/banking/accounts/ach-account.ts'
import type { BankAccountRecord } from '../../../domain/banking/accounts/bank-account.ts'
import {
  type PrimaryAccountCommand,
  type PrimaryOwner,
  primaryAccount,
} from '../../../domain/banking/accounts/primary-account.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { readable, within } from '../../commands/verbs.ts'
import { userFingerprint, withUser } from './users.ts'

/** An account that can be its owner's primary one. */
interface Candidate {
  readonly accountId: string
  readonly owner: PrimaryOwner
  /** The stream in which earlier versions chose for a user, known by its plain name; null: the owner is no user. */
  readonly formerId: string | null
}

/** A metadata account: its owner is the employer, else the carrier, else the user, known by its fingerprint. */
export async function ofBankAccount(
  app: Pick<Application, 'personalData'>,
  account: BankAccountRecord,
): Promise<Candidate> {
  const { bank_account_id: accountId, tenant_id, environment, employer_id, carrier_id } = account
  const whose = { tenant_id, environment, layer: 'bank_account' } as const
  if (employer_id !== null) {
    return { accountId, owner: { ...whose, owner_type: 'employer', owner_id: employer_id }, formerId: null }
  }
  if (carrier_id !== null) {
    return { accountId, owner: { ...whose, owner_type: 'carrier', owner_id: carrier_id }, formerId: null }
  }
  const { user_id, user_fingerprint } = await withUser(app, account)
  const known = user_fingerprint ?? userFingerprint(app, { tenant_id, environment, user_id })
  const ofUser = { ...whose, owner_type: 'user' } as const
  const formerId = primaryIdOf({ ...ofUser, owner_id: user_id })
  return { accountId, owner: { ...ofUser, owner_id: known }, formerId }
}

export function ofAchAccount(
  account: Pick<AchAccount, 'ach_account_id' | 'tenant_id' | 'environment' | 'owner_type' | 'owner_id'>,
): Candidate {
  const { ach_account_id: accountId, tenant_id, environment, owner_type, owner_id } = account
  const owner = { tenant_id, environment, layer: 'ach_account', owner_type, owner_id } as const
  return { accountId, owner, formerId: null }
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
  { commands }: Pick<Application, 'commands'>,
  { accountId, owner, formerId }: Candidate,
): Promise<boolean> {
  const { state } = await commands.load(primaryAccount, primaryIdOf(owner))
  if (state.account_id !== null || formerId === null) return state.account_id === accountId
  return (await commands.load(primaryAccount, formerId)).state.account_id === accountId
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

type Wanted = { readonly type: 'Choose'; readonly isOfCreation: boolean } | { readonly type: 'Clear' }

async function decide(
  app: Pick<Application, 'commands' | 'clock' | 'readModels'>,
  { accountId, owner, formerId }: Candidate,
  wanted: Wanted,
  context: CommandContext,
): Promise<void> {
  const at = app.clock.now()
  const former = formerId === null ? null : (await app.commands.load(primaryAccount, formerId)).state
  const wasPrimary = (await app.commands.load(primaryAccount, primaryIdOf(owner))).state.account_id
  if (wanted.type === 'Choose' && wanted.isOfCreation && former?.chosen.includes(accountId)) return
  await execute(app, { ...wanted, primaryId: primaryIdOf(owner), owner, accountId, at }, context)
  // whichever is primary there ends to be it: the choice stands in the stream of the fingerprint from now on
  const ends = wanted.type === 'Choose' || wasPrimary === accountId ? former?.account_id : accountId
  if (formerId !== null && ends && ends === former!.account_id) {
    await execute(app, { type: 'Clear', primaryId: formerId, owner, accountId: ends, at }, context)
  }
}

async function execute(
  app: Pick<Application, 'commands' | 'readModels'>,
  command: PrimaryAccountCommand,
  context: CommandContext,
): Promise<void> {
  // the key of a creation is the account's
  const { keyedRequest: _, ...ofPrimary } = within(context, command.owner)
  const outcome = await app.commands.execute(primaryAccount, command.primaryId, command, ofPrimary)
  if (isRejection(await readable(app, primaryAccount, outcome)))
    throw new Error('The decision cannot be refused')
}
