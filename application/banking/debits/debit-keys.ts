import { type ApiClient, mayActFor, mayUseCarrier } from '../../../domain/access/api-client.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { debitCollection } from '../../../domain/banking/debits/debit-collection.ts'
import { type DebitKey, debitKey, debitKeyReused } from '../../../domain/banking/debits/debit-key.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { findable } from '../../commands/found-by.ts'
import { within } from '../../commands/verbs.ts'
import type { PersonalData } from '../../ports/personal-data.ts'

/** What of a debit a partner asks for. Amounts are cents. */
export interface AskedDebit
  extends Pick<
    BankDebit,
    | 'employer_id'
    | 'carrier_id'
    | 'policy_id'
    | 'amount_cents'
    | 'payment_purpose'
    | 'description'
    | 'effective_date'
    | 'metadata'
  > {
  /** As it was sent: of an ACH account, or of the metadata account that is tied to it. */
  readonly bank_account_id: string
}

/** Whose a key is. */
interface Place {
  readonly tenant_id: string
  readonly environment: Environment
}

/** A key that names a debit, with what it is asked to stand for. */
export interface NamedDebit {
  /** Id of the key's stream. */
  readonly key: string
  readonly transactionId: string
  /** Keyed fingerprint of what is debited. */
  readonly content: string
  /** The key as it was sent. */
  readonly sent: string
  /** The field that carries the key. */
  readonly field: string
  readonly place: Place
}

/** Id of a key's stream. @param sent the key as partners send it. */
export function keyOf(
  personalData: Pick<PersonalData, 'fingerprint'>,
  { tenant_id, environment }: Place,
  sent: string,
): string {
  return personalData.fingerprint('debit_key', `${tenant_id}|${environment}|${sent}`)
}

/** The debit that a key names: one per key, tenant and environment, whether it is sent with a debit or in a collection. */
export function namedDebit(
  personalData: Pick<PersonalData, 'fingerprint'>,
  { tenant_id, environment }: Place,
  { key: sent, field }: { readonly key: string; readonly field: string },
  asked: AskedDebit,
): NamedDebit {
  const key = keyOf(personalData, { tenant_id, environment }, sent)
  const { employer_id, carrier_id, policy_id, bank_account_id, amount_cents } = asked
  const text = JSON.stringify([
    ...[employer_id, carrier_id, policy_id, bank_account_id, amount_cents],
    ...[asked.payment_purpose, asked.description, asked.effective_date],
    Object.entries(asked.metadata).sort(([a], [b]) => (a < b ? -1 : 1)),
  ])
  return {
    key,
    sent,
    field,
    transactionId: derivedId(key, bankDebit.category),
    content: personalData.fingerprint('debit_content', `${key}|${text}`),
    place: { tenant_id, environment },
  }
}

/**
 * How a key stands: its debit; `accepted` where it was claimed for good and the request died before its debit; `other` where
 * it stands for another debit; null where there is no debit yet.
 */
export async function existingDebit(
  { commands }: Reads,
  { key, content, transactionId }: NamedDebit,
): Promise<BankDebit | 'accepted' | 'other' | null> {
  const { content: standsFor, claims } = (await commands.load(debitKey, key)).state
  if ((await givenBackOf({ commands }, claims)).length === claims.length) return null
  if (standsFor !== content) return 'other'
  const { state } = await commands.load(bankDebit, transactionId)
  return state ?? (claims.includes(null) ? 'accepted' : null)
}

/** The claims of collections that were refused: they do not count. */
async function givenBackOf({ commands }: Reads, claims: DebitKey['claims']): Promise<readonly string[]> {
  const givenBack: string[] = []
  for (const claim of claims) {
    if (claim !== null && (await commands.load(debitCollection, claim)).state === 'refused')
      givenBack.push(claim)
  }
  return givenBack
}

/** Why a client may not hear of a debit: its key does not reach whose it is. Null: it may. */
export function outsideKey(
  client: Pick<ApiClient, 'carrier_ids' | 'employer_ids'>,
  { employer_id, carrier_id }: Pick<BankDebit, 'employer_id' | 'carrier_id'>,
): Rejection | null {
  if (!mayActFor(client, employer_id)) return outside('employer_id')
  return mayUseCarrier(client, carrier_id) ? null : outside('carrier_id')
}

export function outside(field: string): Rejection {
  return reject('forbidden', 'out_of_scope', `${field} lies outside the scope of the key`, field)
}

/** Why a key cannot be used: it stands for another debit, which is named where the client's key reaches it. */
export async function keyTaken(
  { commands }: Pick<Application, 'commands'>,
  client: Pick<ApiClient, 'carrier_ids' | 'employer_ids'>,
  { transactionId, field }: NamedDebit,
): Promise<Rejection> {
  const { state } = await commands.load(bankDebit, transactionId)
  const isReached = state !== null && outsideKey(client, state) === null
  return debitKeyReused(field, isReached ? transactionId : null)
}

/**
 * Claims a key for its debit. Of concurrent requests for the same the first one claims it for all.
 * @param collectionId whose entry it is: the claim counts unless that is refused. Absent: it counts for good.
 * @returns why not: it stands for another debit.
 */
export async function claimKey(
  app: Pick<Application, 'commands' | 'personalData'>,
  client: Pick<ApiClient, 'carrier_ids' | 'employer_ids'>,
  named: NamedDebit,
  context: CommandContext,
  collectionId?: string,
): Promise<Rejection | null> {
  const { key, sent, content, place } = named
  const commandId = derivedId(context.commandId, `claim/${collectionId ?? ''}`)
  const found = findable(app, context, { idempotency_key: sent })
  const claim = (givenBack: readonly string[]) => {
    const ofCollection = collectionId !== undefined && { claimId: collectionId }
    const command = { type: 'Claim', key, content, givenBack, ...ofCollection } as const
    return app.commands.execute(debitKey, key, command, within({ ...found, commandId }, place))
  }
  if (!isRejection(await claim([]))) return null
  const { claims } = (await app.commands.load(debitKey, key)).state
  return isRejection(await claim(await givenBackOf(app, claims))) ? keyTaken(app, client, named) : null
}
