import { type ApiClient, mayActFor, mayUseCarrier } from '../../../domain/access/api-client.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { debitCollection } from '../../../domain/banking/debits/debit-collection.ts'
import { type DebitKeyCommand, debitKey, debitKeyReused } from '../../../domain/banking/debits/debit-key.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { derivedId } from '../../commands/event-registry.ts'
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
    field,
    transactionId: derivedId(key, bankDebit.category),
    content: personalData.fingerprint('debit_content', `${key}|${text}`),
    place: { tenant_id, environment },
  }
}

/** How a key stands: its debit; `other` where it is used for another one; null where there is no debit yet. */
export async function standingOf(
  { commands }: Reads,
  { key, content, transactionId }: NamedDebit,
): Promise<BankDebit | 'other' | null> {
  const standsFor = await contentOf({ commands }, key)
  if (standsFor === null) return null
  if (standsFor !== content) return 'other'
  return (await commands.load(bankDebit, transactionId)).state
}

/** Whether a key was claimed for its debit for good: that was accepted, whether it is there or its request died. */
export async function isAccepted({ commands }: Reads, { key, content }: NamedDebit): Promise<boolean> {
  const { content: standsFor, claims } = (await commands.load(debitKey, key)).state
  return standsFor === content && claims.includes(null)
}

/** What a key stands for: a claim of a collection that was refused does not count. */
async function contentOf({ commands }: Reads, key: string): Promise<string | null> {
  const { content, claims } = (await commands.load(debitKey, key)).state
  for (const claim of claims) if (!(await isGivenBack({ commands }, claim))) return content
  return null
}

/** Whether a claim is that of a collection that was refused; null: of none. */
async function isGivenBack({ commands }: Reads, claim: string | null): Promise<boolean> {
  return claim !== null && (await commands.load(debitCollection, claim)).state === 'refused'
}

/** Why a client may not be told of a debit: its key does not reach whose it is. Null: it may. */
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
 * Claims a key for its debit. Of many who ask for the same at once the first one claims it for all.
 * @param collectionId whose entry it is: the claim counts unless that is refused. Absent: it counts for good.
 * @returns why not: it stands for another debit.
 */
export async function claimKey(
  app: Pick<Application, 'commands'>,
  client: Pick<ApiClient, 'carrier_ids' | 'employer_ids'>,
  named: NamedDebit,
  context: CommandContext,
  collectionId?: string,
): Promise<Rejection | null> {
  const { key, content, place } = named
  const step = (command: DebitKeyCommand, name: string) => {
    const commandId = derivedId(context.commandId, `${name}/${collectionId ?? ''}`)
    return app.commands.execute(debitKey, key, command, within({ ...context, commandId }, place))
  }
  const claim = {
    type: 'Claim',
    key,
    content,
    ...(collectionId !== undefined && { claimId: collectionId }),
  } as const
  if (!isRejection(await step(claim, 'claim'))) return null
  if ((await contentOf(app, key)) !== null) return keyTaken(app, client, named)
  const { claims } = (await app.commands.load(debitKey, key)).state
  for (const claimId of claims) {
    // another one may have come meanwhile
    if (claimId === null || !(await isGivenBack(app, claimId))) continue
    await step({ type: 'Release', key, claimId }, `release/${claimId}`)
  }
  return isRejection(await step(claim, 'claim-again')) ? keyTaken(app, client, named) : null
}
