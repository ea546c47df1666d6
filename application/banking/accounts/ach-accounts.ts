import {
  type AchAccount,
  type AchAccountChange,
  type AchAccountCommand,
  achAccount,
  noAchAccount,
  refuseNumbersIn,
} from '../../../domain/banking/accounts/ach-account.ts'
import type { AchAccountData } from '../../../domain/banking/accounts/ach-account-events.ts'
import { bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import { type DebitedAccount, isSameAccount } from '../../../domain/banking/debits/debited-account.ts'
import type { BankConnection } from '../../../domain/banking/linking/bank-connection.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { type Environment, isId } from '../../../domain/kernel/ids.ts'
import { isRejection, orThrow, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { isOf, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { changed, readable, within } from '../../commands/verbs.ts'
import type { LinkedAccount } from '../../ports/bank-link.ts'
import type { BankAccount } from '../../ports/bank-rail.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { type AchAccountOwner, associationOf, isInScope, ownersName, type Scope } from './account-owners.ts'
import { accountsWith, disabledBy, recordDisabled, recordEnabled } from './disabled-numbers.ts'
import { keepAchAccount, keptAccount } from './payer-accounts.ts'
import { choosePrimary, clearPrimary, isPrimary, ofAchAccount, primaryOf } from './primary-accounts.ts'

/** An ACH account, and whether it is its owner's primary one. */
export interface ShownAchAccount {
  readonly account: AchAccount
  readonly isPrimary: boolean
}

export interface NewAchAccount extends AchAccountOwner {
  readonly routing_number: string
  readonly account_number: string
  readonly account_type: BankAccount['accountType']
  readonly bank_name: string
  readonly nickname: string | null
  readonly is_primary: boolean
  /** The item that it is linked by; null: the account was entered by hand. */
  readonly linked: {
    /** The metadata account that is the same one; null: another ACH account is tied to that already. */
    readonly bankAccountId: string | null
    readonly unverifiedReason: LinkedAccount['unverifiedReason']
    readonly persistentFingerprint?: string
  } | null
}

/** What tells an account of a bank link from others, whichever connection and numbers it has. */
export function persistentOf(
  { personalData }: Pick<Application, 'personalData'>,
  { provider }: Pick<BankConnection, 'provider'>,
  persistentId: LinkedAccount['persistentId'],
): { readonly persistentFingerprint?: string } {
  if (persistentId === undefined) return {}
  return { persistentFingerprint: personalData.fingerprint('bank-account', `${provider}/${persistentId}`) }
}

/**
 * Creates an account, where the key reaches its owner. Its numbers go into the vault and nowhere else. One whose numbers are
 * disabled is disabled at once, and answered as it began.
 */
export async function createAchAccount(
  app: Application,
  client: Scope,
  input: NewAchAccount,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  const { owner_type, owner_id, bank_name, nickname, is_primary, linked } = input
  const { routing_number: routingNumber, account_number: accountNumber, account_type: accountType } = input
  const holderName = await ownersName(app, client, input)
  if (isRejection(holderName)) return holderName
  const routing_last4 = routingNumber.slice(-4)
  const names = { bank_name, nickname }
  // before the vault keeps the numbers
  const refusal = refuseNumbersIn(names, {
    routing_last4,
    account: { account_last4: accountNumber.slice(-4) },
  })
  if (refusal) return refusal
  const { tenant_id, environment } = client
  const ach_account_id = createdId(context, achAccount)
  const numbers = { holderName, routingNumber, accountNumber, accountType, bankName: bank_name }
  const data: AchAccountData<'AchAccountCreated'> = {
    ach_account_id,
    tenant_id,
    environment,
    owner_type,
    owner_id,
    account: await keepAchAccount(app, { achAccountId: ach_account_id, ownerId: owner_id }, numbers),
    routing_last4,
    ...names,
    is_primary,
    connection_type: linked === null ? 'manual' : 'bankconnect',
    bank_account_id: linked?.bankAccountId ?? null,
    verified: linked !== null && linked.unverifiedReason === null,
    ...(linked?.unverifiedReason && { unverified_reason: linked.unverifiedReason }),
    ...(linked?.persistentFingerprint && { persistent_fingerprint: linked.persistentFingerprint }),
    created_at: isoTime(app.clock.now()),
  }
  const command = { type: 'Create', data } as const
  const outcome = await app.commands.create(achAccount, ach_account_id, command, context)
  const account = await readable(app, achAccount, outcome)
  if (isRejection(account)) return account
  await disableIfNumbersAre(app, account, context)
  if (is_primary) await choosePrimary(app, ofAchAccount(account), context, true)
  return account
}

/** An account that a partner names. */
export async function achAccountOf(
  app: Application,
  client: Scope,
  achAccountId: string,
): Promise<AchAccount | Rejection> {
  const account = await stateOf(app, achAccount, achAccountId)
  return ownedBy(client, account, 'ACH account', (one) => isInScope(app, client, associationOf(one)))
}

export async function shownAchAccount(
  app: Pick<Application, 'commands'>,
  account: AchAccount,
): Promise<ShownAchAccount> {
  return { account, isPrimary: await isPrimary(app, ofAchAccount(account)) }
}

export async function changeAchAccount(
  app: Application,
  { ach_account_id }: Pick<AchAccount, 'ach_account_id'>,
  { is_primary, ...change }: AchAccountChange & { readonly is_primary?: boolean },
  context: CommandContext,
): Promise<ShownAchAccount | Rejection> {
  const after = await command(app, ach_account_id, { type: 'Change', change, at: app.clock.now() }, context)
  if (isRejection(after)) return after
  if (is_primary === true) await choosePrimary(app, ofAchAccount(after), context)
  if (is_primary === false) await clearPrimary(app, ofAchAccount(after), context)
  return shownAchAccount(app, after)
}

/**
 * Deletes an account: it is found no more, and nothing new is debited from it. Debits that were arranged go their way; the
 * vault keeps its numbers until none of them can be returned. No other becomes primary in its place.
 */
export async function deleteAchAccount(
  app: Application,
  { ach_account_id }: Pick<AchAccount, 'ach_account_id'>,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  const after = await command(app, ach_account_id, { type: 'Delete', at: app.clock.now() }, context)
  if (!isRejection(after)) await clearPrimary(app, ofAchAccount(after), context)
  return after
}

/** An operator attests that an account is its owner's: it is active. */
export function attestAchAccount(
  app: Application,
  achAccountId: string,
  note: string | null,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  return command(app, achAccountId, { type: 'Attest', note, at: app.clock.now() }, context)
}

/** What a bank returned: numbers, and the account that has them. */
export interface ReturnedAccount {
  readonly tenant_id: string
  readonly environment: Environment
  /** Null: a payer gave the numbers for a session, or the account has others by now. */
  readonly achAccountId: string | null
  readonly numbers: readonly Pick<DebitedAccount, 'fingerprint'>[]
}

/**
 * A return says that numbers take no debits any more: every account that has them is disabled, and whichever is given them
 * later. So is every one that the bank link says is the same account, whatever its numbers.
 * @throws ReadModelsLate when it cannot be told yet which accounts have them.
 */
export async function disableNumbers(
  app: Application,
  { achAccountId, numbers, ...place }: ReturnedAccount,
  returnCode: string,
  context: CommandContext,
): Promise<void> {
  const own = achAccountId === null ? [] : [achAccountId]
  const states = await app.commands.loadAll(achAccount, own)
  const has = (one: AchAccount) => numbers.some(({ fingerprint }) => fingerprint === one.account.fingerprint)
  // a deleted one is found nowhere else; of one that was corrected since nothing is said of what it has now
  const seeds = states.flatMap(({ state }) => (has(state!) ? [state!.ach_account_id] : []))
  const { accounts } = await sameAs(app, place, { accounts: seeds, numbers }, (found) =>
    // an account that is created with these numbers later is disabled at once
    recordDisabled(app, place, found, returnCode, context),
  )
  for (const id of new Set([...accounts, ...own])) await disableAchAccount(app, id, returnCode, context)
}

interface Same {
  readonly accounts: readonly string[]
  /** What they are known by. */
  readonly numbers: readonly Pick<DebitedAccount, 'fingerprint'>[]
}

/**
 * Accounts that are one with some: all that have the same numbers, or that the bank link says are the same.
 * @param asking awaited before it is looked for accounts with what was found.
 * @throws ReadModelsLate when it cannot be told yet which these are.
 */
async function sameAs(
  app: Application,
  place: Pick<AchAccount, 'tenant_id' | 'environment'>,
  { accounts, numbers }: Same,
  asking: (found: Same['numbers']) => Promise<void> = async () => undefined,
): Promise<Same> {
  const ids = new Set(accounts)
  const known = new Set<string>()
  for (let more = numbers.map(({ fingerprint }) => fingerprint); more.length > 0; ) {
    const found = more.map((fingerprint) => ({ fingerprint }))
    await asking(found)
    for (const fingerprint of more) known.add(fingerprint)
    for (const id of await accountsWith(app, place, found)) ids.add(id)
    const states = (await app.commands.loadAll(achAccount, [...ids])).map(({ state }) => state!)
    more = [...new Set(states.flatMap(identitiesOf))].filter((one) => !known.has(one))
  }
  return { accounts: [...ids], numbers: [...known].map((fingerprint) => ({ fingerprint })) }
}

/** Fingerprints of what an account is known by: its numbers, and what the bank link says that it is. */
function identitiesOf({ account, persistent_fingerprint: same }: AchAccount): readonly string[] {
  return [account.fingerprint, ...(same === undefined ? [] : [same])]
}

/**
 * An operator says that the numbers of an account may be debited again: every account that has them is enabled, and every
 * one that the bank link says is the same. Where a return said that there is no such account, one of them must have been
 * verified since: that one is to be named.
 * @throws ReadModelsLate when it cannot be told yet which accounts have them.
 */
export async function enableNumbers(
  app: Application,
  achAccountId: string,
  reason: string,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  const enable = { type: 'Enable', reason, isVerifiedByOther: false, at: app.clock.now() } as const
  const { state: named } = await app.commands.load(achAccount, achAccountId)
  const decided = achAccount.decide(enable, named)
  if (isRejection(decided)) return decided
  if (decided.length === 0) return named!
  const same = await sameAs(app, named!, { accounts: [achAccountId], numbers: [named!.account] })
  // a crash after this leaves the account disabled, and the operator asks again
  await recordEnabled(app, named!, same.numbers, reason, context)
  for (const id of same.accounts) {
    if (id === achAccountId) continue
    const enabled = await command(app, id, { ...enable, isVerifiedByOther: true }, context)
    // a return may have come meanwhile
    if (!isRejection(enabled)) await disableIfNumbersAre(app, enabled, context)
    // or it was deleted
    else if (enabled.kind !== 'not_found') throw new Error(enabled.message)
  }
  const after = await command(app, achAccountId, enable, context)
  if (!isRejection(after)) await disableIfNumbersAre(app, after, context)
  return after
}

/** Disables an account whose numbers are disabled. To be asked once the account has them. */
export async function disableIfNumbersAre(
  app: Application,
  account: AchAccount,
  context: CommandContext,
): Promise<void> {
  const known = identitiesOf(account).map((fingerprint) => ({ fingerprint }))
  const returnCode = await disabledBy(app, account, known)
  if (returnCode !== null) await disableAchAccount(app, account.ach_account_id, returnCode, context)
}

async function disableAchAccount(
  app: Application,
  achAccountId: string,
  returnCode: string,
  context: CommandContext,
): Promise<void> {
  const disable = { type: 'Disable', return_code: returnCode, at: app.clock.now() } as const
  orThrow(await command(app, achAccountId, disable, context))
}

/** What a bank says is right of an account; what is missing stays. */
export interface Correction {
  /** Of the notification, for example `C01`. */
  readonly changeCode: string
  readonly routingNumber?: string
  readonly accountNumber?: string
  readonly accountType?: BankAccount['accountType']
}

/**
 * Applies a bank's notification of change: debits that are arranged from now on carry the corrected numbers, those that
 * were keep theirs. What is so already changes nothing.
 * @returns a rejection where there is no such account any more, or its numbers cannot be read.
 */
export async function correctAchAccount(
  app: Application,
  achAccountId: string,
  { changeCode, ...correct }: Correction,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  for (;;) {
    const { state } = await app.commands.load(achAccount, achAccountId)
    if (state === null || state.deleted_at !== null) return noAchAccount()
    const before = await readNumbers(app, state, 'correction', context)
    if (before === null) {
      const why = 'The numbers of the ACH account cannot be read'
      return reject('conflict', 'ach_account_unreadable', why)
    }
    const numbers = { ...before, ...correct }
    const account = await keepAchAccount(app, { achAccountId, ownerId: state.owner_id }, numbers)
    const routingLast4 = numbers.routingNumber.slice(-4)
    const at = app.clock.now()
    const correction = { type: 'Correct', changeCode, of: state.account, account, routingLast4, at } as const
    const outcome = await app.commands.execute(achAccount, achAccountId, correction, within(context, state))
    const after = await readable(app, achAccount, outcome)
    if (isRejection(outcome) || isRejection(after)) return after
    // it is another than was read: what was changed meanwhile stays
    if (outcome.position === null && !isSameAccount(after.account, account)) continue
    await disableIfNumbersAre(app, after, context)
    return after
  }
}

/** Takes the full numbers of an account out of the vault, and records that before; null: they cannot be read. */
export async function readNumbers(
  app: Application,
  { ach_account_id, account }: Pick<AchAccount, 'ach_account_id' | 'account'>,
  purpose: AchAccountData<'AchAccountNumbersRead'>['purpose'],
  context: CommandContext,
): Promise<BankAccount | null> {
  orThrow(await command(app, ach_account_id, { type: 'RecordRead', purpose, at: app.clock.now() }, context))
  return keptAccount(app, account)
}

const TIED = statement(
  'ach-accounts-of-bank-account',
  (db, $: Parameter<{ readonly bankAccountId: string; readonly limit: number }>) =>
    db
      .selectFrom('ach_accounts')
      .select('ach_account_id')
      .where('bank_account_id', '=', $('bankAccountId'))
      .orderBy('seq')
      .limit($('limit')),
)

/**
 * The id of the account that is tied to a metadata account: of several that were created at once, the first; null: none is.
 * @throws ReadModelsLate
 */
export async function tiedTo(
  app: Pick<Application, 'log' | 'read' | 'readModels'>,
  bankAccountId: string,
): Promise<string | null> {
  await untilCurrent(app, 'bank-accounts')
  const [first] = await app.read.query(TIED, { bankAccountId, limit: 1 })
  return first?.ach_account_id ?? null
}

/**
 * The account that a debit names: an ACH account, or a metadata account that one is tied to. Whether it may be
 * debited is its `status`, where `disabled` counts for both.
 * @returns null for an id that names none in the tenant and environment.
 * @throws ReadModelsLate when it cannot be told what a metadata account is tied to.
 */
export async function debitableAccount(
  app: Pick<Application, 'commands' | 'log' | 'read' | 'readModels'>,
  place: { readonly tenant_id: string; readonly environment: Environment },
  bankAccountId: string,
): Promise<AchAccount | null> {
  const named = await present(app, place, bankAccountId)
  if (named !== null || !isId(bankAccountId)) return named
  const { state } = await app.commands.load(bankAccount, bankAccountId)
  if (!isOf(place, state)) return null
  const found = await tiedTo(app, bankAccountId)
  const tied = found === null ? null : await present(app, place, found)
  return tied !== null && state.status === 'disabled' ? { ...tied, status: 'disabled' } : tied
}

/** The primary ACH account of an employer; null: none is, or it was deleted. */
export async function primaryAchAccount(
  app: Pick<Application, 'commands'>,
  employerId: string,
): Promise<AchAccount | null> {
  const { state } = await app.commands.load(employer, employerId)
  if (state === null) return null
  const { tenant_id, environment } = state
  const whose = { owner_type: 'employer', owner_id: employerId } as const
  const id = await primaryOf(app, { tenant_id, environment, layer: 'ach_account', ...whose })
  return id === null ? null : present(app, state, id)
}

/** An account that was not deleted, in its tenant and environment. */
async function present(
  app: Pick<Application, 'commands'>,
  place: { readonly tenant_id: string; readonly environment: Environment },
  achAccountId: string,
): Promise<AchAccount | null> {
  const state = await stateOf(app, achAccount, achAccountId)
  return isOf(place, state) ? state : null
}

function command(
  app: Application,
  achAccountId: string,
  asked: AchAccountCommand,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  return changed(app, achAccount, achAccountId, asked, context)
}
