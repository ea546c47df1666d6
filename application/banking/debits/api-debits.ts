import { type AchAccount, achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { bankDebit, type EndedAtOnce } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { namedPolicy } from '../../access/named-policy.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { within } from '../../commands/verbs.ts'
import { associationOf, isInScope, type Scope } from '../accounts/account-owners.ts'
import { debitableAccount } from '../accounts/ach-accounts.ts'
import { createAccountDebit } from './create-debit.ts'
import {
  type AskedDebit,
  claimKey,
  existingDebit,
  keyTaken,
  type NamedDebit,
  namedDebit,
  outside,
  outsideKey,
} from './debit-keys.ts'

/** Entries of one debit, in cents: what a NACHA file holds. */
export const MOST_DEBIT_CENTS = 9_999_999_999

export interface NewApiDebit extends AskedDebit {
  /** Null: none was sent. */
  readonly idempotency_key: string | null
}

/** A debit that was asked for, and whether this request created it. */
export interface ArrangedDebit {
  readonly debit: BankDebit
  readonly isNew: boolean
}

/**
 * Creates a debit that is asked for by a call, once for its key. Whether it is collected is for the gates to say, later.
 * Requests with one key at the same time have the one debit.
 */
export async function createApiDebit(
  app: Application,
  client: Scope,
  asked: NewApiDebit,
  { debitId, named, begun, account, ending }: PreparedDebit,
  context: CommandContext,
): Promise<ArrangedDebit | Rejection> {
  // without a key of its own, an earlier attempt of this very request has created it
  if (begun) {
    await app.readModels.awaitProjections(bankDebit, (await app.commands.load(bankDebit, debitId)).position)
    return { debit: begun, isNew: named === null }
  }
  const refusal = named && (await claimKey(app, client, named, context))
  if (refusal) return refusal
  const { tenant_id, environment } = client
  const { idempotency_key: _key, ...debit } = asked
  const created = await createAccountDebit(
    app,
    {
      leg_id: debitId,
      tenant_id,
      environment,
      ...debit,
      bank_account_id: account!.ach_account_id,
      source: 'api',
    },
    within(context, client),
    ending,
  )
  if (created.position !== null) await app.readModels.awaitProjections(bankDebit, created.position)
  return { debit: created.debit, isNew: named === null || created.position !== null }
}

export interface PreparedDebit {
  readonly debitId: string
  readonly named: NamedDebit | null
  /** The debit, where it is there already; else the account that it is to be taken from. */
  readonly begun: BankDebit | null
  readonly account: AchAccount | null
  /** The debit was accepted when its account could be debited still. */
  readonly ending?: EndedAtOnce
}

/** Refuses a debit, or finds what it is taken from; nothing is stored. */
export async function prepareApiDebit(
  app: Application,
  client: Scope,
  asked: NewApiDebit,
  context: CommandContext,
): Promise<PreparedDebit | Rejection> {
  const named = nameOf(app, client, asked)
  const debitId = named?.transactionId ?? createdId(context, bankDebit)
  const existing = named || context.mayRepeat ? await standingUnder(app, named, debitId) : null
  // what was accepted once is not refused by what changed since
  if (typeof existing === 'object' && existing !== null) {
    return outsideKey(client, existing) ?? { debitId, named, begun: existing, account: null }
  }
  if (existing === 'accepted') {
    return outsideKey(client, asked) ?? acceptedDebit(app, client, asked, { debitId, named })
  }
  const account = await namedAccount(app, client, asked)
  if (isRejection(account)) return account
  if (existing === 'other') return keyTaken(app, client, named!)
  return refuseDisabled(account, 'bank_account_id') ?? { debitId, named, begun: null, account }
}

/** A debit that was accepted, and whose request died: one that cannot be carried out any more ends at once. */
async function acceptedDebit(
  app: Application,
  client: Scope,
  { bank_account_id }: AskedDebit,
  accepted: Pick<PreparedDebit, 'debitId' | 'named'>,
): Promise<PreparedDebit | Rejection> {
  const account = await debitableAccount(app, client, bank_account_id)
  // or it was deleted since
  const known = account ?? (await stateOf(app, achAccount, bank_account_id))
  const refusal = account ? refuseDisabled(account, 'bank_account_id') : noAccount('bank_account_id')
  if (known === null) return refusal!
  return { ...accepted, begun: null, account: known, ...(refusal && { ending: { note: refusal.message } }) }
}

/** The debit that a request was accepted as, by its id; null while it is not there. */
export async function debitOfRequest(
  app: Application,
  client: Scope,
  asked: NewApiDebit,
  debitId: string,
): Promise<BankDebit | null> {
  const existing = await standingUnder(app, nameOf(app, client, asked), debitId)
  return typeof existing === 'object' ? existing : null
}

function nameOf({ personalData }: Application, client: Scope, asked: NewApiDebit): NamedDebit | null {
  const { idempotency_key: key } = asked
  return key === null ? null : namedDebit(personalData, client, { key, field: 'idempotency_key' }, asked)
}

/** How a request stands: by the key in its body, or else by the id that it creates. */
async function standingUnder(app: Application, named: NamedDebit | null, debitId: string) {
  return named ? existingDebit(app, named) : (await app.commands.load(bankDebit, debitId)).state
}

/**
 * The account of a debit whose employer, carrier and policy belong together: ids that name nothing go first, then what lies
 * outside the key's scope, then what does not belong together.
 */
async function namedAccount(
  app: Application,
  client: Scope,
  asked: AskedDebit,
): Promise<AchAccount | Rejection> {
  const named = await namedPolicy(app, client, asked)
  if (isRejection(named) && named.kind === 'not_found') return named
  const account = await debitableAccount(app, client, asked.bank_account_id)
  if (account === null) return noAccount('bank_account_id')
  const refusal = await refuseOwner(app, client, account, asked.employer_id, 'bank_account_id')
  return scopeFirst([isRejection(named) ? named : null, refusal]) ?? account
}

/** The refusal to tell: what lies outside the scope of a key before what does not fit; null where there is none. */
export function scopeFirst(refusals: readonly (Rejection | null)[]): Rejection | null {
  return refusals.find((one) => one?.kind === 'forbidden') ?? refusals.find((one) => one !== null) ?? null
}

/** @param field that names the account. */
export function noAccount(field: string): Rejection {
  const why = `${field} names no ACH account of this account, nor a bank account that is tied to one`
  return reject('not_found', 'ach_account_not_found', why, field)
}

/** Refuses an account of another owner, also of one out of the key's reach. @throws ReadModelsLate */
export async function refuseOwner(
  app: Application,
  client: Scope,
  account: AchAccount,
  employerId: string,
  field: string,
): Promise<Rejection | null> {
  if (account.owner_type === 'employer' && account.owner_id === employerId) return null
  if (!(await isInScope(app, client, associationOf(account)))) return outside(field)
  return reject('invalid', 'account_mismatch', `${field} names an account of another owner`, field)
}

export function refuseDisabled({ status, unlisted }: AchAccount, field: string): Rejection | null {
  if (unlisted) {
    const why = `${field} names an account that its bank does not list any more: have its user link it again`
    return reject('conflict', 'account_unlisted', why, field)
  }
  if (status !== 'disabled') return null
  return reject('conflict', 'account_disabled', `${field} names an account that is disabled`, field)
}
