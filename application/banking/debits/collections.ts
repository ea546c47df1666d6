import { mayActFor, mayUseCarrier } from '../../../domain/access/api-client.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { type DebitCollection, debitCollection } from '../../../domain/banking/debits/debit-collection.ts'
import { debitKey } from '../../../domain/banking/debits/debit-key.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { type Policy, policy } from '../../../domain/policies/policy.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { within } from '../../commands/verbs.ts'
import type { Scope } from '../accounts/account-owners.ts'
import { debitableAccount } from '../accounts/ach-accounts.ts'
import { noAccount, refuseDisabled, refuseOwner, scopeFirst } from './api-debits.ts'
import { createAccountDebit } from './create-debit.ts'
import {
  claimKey,
  existingDebit,
  keyOf,
  keyTaken,
  type NamedDebit,
  namedDebit,
  outside,
} from './debit-keys.ts'

/** A batch collection as it is asked for. */
export interface AskedCollection {
  readonly employerId: string
  readonly bankAccountId: string
  readonly entries: readonly {
    readonly policyId: string
    readonly amountCents: number
    readonly description: string
    readonly key: string
  }[]
}

/** A collection that was accepted, and whether this request was the one. */
export interface Collected {
  readonly collection: DebitCollection
  readonly isNew: boolean
}

/** A collection that may be accepted, or was. */
export type PreparedCollection =
  | { readonly collection: DebitCollection; readonly fresh: null }
  | {
      readonly collection: Omit<DebitCollection, 'accepted_at'>
      /** Keys of the entries that have no debit yet. */
      readonly fresh: readonly NamedDebit[]
    }

/**
 * Accepts a batch collection: all its entries by one append, or none; then its debits are created. What dies in between is
 * finished by a process manager. The same again is the same collection, and an entry whose key is known is its debit.
 */
export async function collect(
  app: Application,
  client: Scope,
  asked: AskedCollection,
  { collection, fresh }: PreparedCollection,
  context: CommandContext,
): Promise<Collected | Rejection> {
  const scoped = within(context, client)
  if (fresh === null) {
    // the process that accepted it may have died since
    await createDebitsOf(app, collection, scoped)
    return { collection, isNew: false }
  }
  const again = async () => {
    const prepared = await prepareCollection(app, client, asked, context)
    return isRejection(prepared) ? prepared : collect(app, client, asked, prepared, context)
  }
  const { collection_id } = collection
  const refusal = await claimAll(app, client, fresh, context, collection_id)
  if (refusal) return (await giveUp(app, collection_id, scoped)) ? refusal : again()
  const accept = { type: 'Accept', data: { ...collection, accepted_at: isoTime(app.clock.now()) } } as const
  const accepted = await app.commands.execute(debitCollection, collection_id, accept, scoped)
  // the same one at the same moment lost a key
  if (isRejection(accepted)) return again()
  const made = accepted.state as DebitCollection
  const last = await createDebitsOf(app, made, scoped)
  if (last !== null) await app.readModels.awaitProjections(bankDebit, last)
  return { collection: made, isNew: accepted.events.length > 0 }
}

/**
 * Creates the debits of a collection that are not there yet.
 * @returns where in the log the last one is; null where there is nothing new.
 */
export async function createDebitsOf(
  app: Pick<Application, 'commands' | 'clock'>,
  { collection_id, tenant_id, environment, employer_id, bank_account_id, ...collection }: DebitCollection,
  context: CommandContext,
): Promise<bigint | null> {
  const positions = await Promise.all(
    collection.entries.map(async ({ transaction_id: leg_id, ...entry }) => {
      if ((await app.commands.load(bankDebit, leg_id)).state !== null) return null
      const created = await createAccountDebit(
        app,
        {
          leg_id,
          tenant_id,
          environment,
          employer_id,
          bank_account_id,
          collection_id,
          ...entry,
          source: 'collection',
          payment_purpose: 'paygo',
          ingested_at: collection.accepted_at,
        },
        context,
      )
      return created.position
    }),
  )
  return positions.reduce((last, one) => (one !== null && (last === null || one > last) ? one : last), null)
}

/**
 * Looks at what is asked for: refuses it, or finds what it comes to. An earlier attempt that died may have claimed keys: what
 * is refused gives them back.
 */
export async function prepareCollection(
  app: Application,
  client: Scope,
  asked: AskedCollection,
  context: CommandContext,
): Promise<PreparedCollection | Rejection> {
  const { tenant_id, environment } = client
  const { employerId: employer_id, bankAccountId } = asked
  const place = `${tenant_id}|${environment}|${employer_id}|${bankAccountId}`
  const contents = asked.entries.map((one) => [one.policyId, one.amountCents, one.description, one.key])
  let collection_id = app.personalData.fingerprint('debit_collection', `${place}|${JSON.stringify(contents)}`)
  let known = (await app.commands.load(debitCollection, collection_id)).state
  // what was refused is sent anew
  while (known === 'refused') {
    collection_id = derivedId(collection_id, 'again')
    known = (await app.commands.load(debitCollection, collection_id)).state
  }
  if (known) {
    const carriers = known.entries.map(({ carrier_id }) => carrier_id)
    return outsideKey(client, known.employer_id, carriers) ?? { collection: known, fresh: null }
  }
  const examined = await examineNew(app, client, asked, collection_id)
  // whose key does not reach it frees nothing
  if (!isRejection(examined) || examined.kind === 'forbidden') return examined
  if (!(await hasClaimed(app, client, asked, collection_id))) return examined
  const isGivenUp = await giveUp(app, collection_id, within(context, client))
  return isGivenUp ? examined : prepareCollection(app, client, asked, context)
}

/** Whether a collection that was not accepted holds any of its keys. */
async function hasClaimed(
  { commands, personalData }: Application,
  client: Scope,
  { entries }: AskedCollection,
  collectionId: string,
): Promise<boolean> {
  const keys = entries.map(({ key }) => keyOf(personalData, client, key))
  return (await commands.loadAll(debitKey, keys)).some(({ state }) => state.claims.includes(collectionId))
}

/** Refuses a collection for good: its claims count no more. @returns false where the same one got through meanwhile. */
async function giveUp(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  collectionId: string,
  context: CommandContext,
): Promise<boolean> {
  const refuse = { type: 'Refuse', collectionId, at: clock.now() } as const
  const outcome = await commands.execute(debitCollection, collectionId, refuse, context)
  return !isRejection(outcome) && outcome.state === 'refused'
}

async function examineNew(
  app: Application,
  client: Scope,
  asked: AskedCollection,
  collection_id: string,
): Promise<PreparedCollection | Rejection> {
  const { tenant_id, environment } = client
  const { employerId: employer_id, bankAccountId } = asked
  const policies = await policiesOf(app, client, asked)
  if (isRejection(policies)) return policies
  const named = asked.entries.map(({ amountCents, description, key }, index) => {
    const { policy_id, carrier_id } = policies[index]!
    const sent = { key, field: `policyCollections[${index}].idempotencyKey` }
    return namedDebit(app.personalData, client, sent, {
      employer_id,
      carrier_id,
      policy_id,
      bank_account_id: bankAccountId,
      amount_cents: amountCents,
      payment_purpose: 'paygo',
      description,
      effective_date: null,
      metadata: {},
    })
  })
  const existing = await Promise.all(named.map((one) => existingDebit(app, one)))
  const account = await debitableAccount(app, client, bankAccountId)
  const debits = existing.filter((one): one is BankDebit => typeof one === 'object' && one !== null)
  const areAllKnown = debits.length === named.length
  if (account === null && !areAllKnown) return noAccount('bankAccountId')

  const carriers = policies.map(({ carrier_id }) => carrier_id)
  const refusal = scopeFirst([
    outsideKey(client, employer_id, carriers),
    refusePolicies(client, policies, employer_id),
    account && (await refuseOwner(app, client, account, employer_id, 'bankAccountId')),
  ])
  if (refusal) return refusal
  const reused = existing.indexOf('other')
  if (reused >= 0) return keyTaken(app, client, named[reused]!)
  const disabled = areAllKnown ? null : refuseDisabled(account!, 'bankAccountId')
  if (disabled) return disabled
  return {
    collection: {
      collection_id,
      tenant_id,
      environment,
      employer_id,
      bank_account_id: account?.ach_account_id ?? debits[0]!.bank_account_id!,
      entries: asked.entries.map(({ amountCents: amount_cents, description }, index) => {
        const { policy_id, carrier_id } = policies[index]!
        const { transactionId: transaction_id } = named[index]!
        return { transaction_id, policy_id, carrier_id, amount_cents, description }
      }),
    },
    fresh: named.filter((_, index) => existing[index] === null || existing[index] === 'accepted'),
  }
}

/** The policies of a collection, in its order; employer and policies must be there. */
async function policiesOf(
  { commands }: Application,
  { tenant_id, environment }: Scope,
  { employerId, entries }: AskedCollection,
): Promise<readonly Policy[] | Rejection> {
  const isHere = (one: { readonly tenant_id: string; readonly environment: string } | null) =>
    one?.tenant_id === tenant_id && one.environment === environment
  const insured = await stateOf({ commands }, employer, employerId)
  if (!isHere(insured)) return missing('employer', 'employerId')
  const policies: Policy[] = []
  for (const [index, { policyId }] of entries.entries()) {
    const state = await stateOf({ commands }, policy, policyId)
    if (state === null || !isHere(state)) return missing('policy', `policyCollections[${index}].policyId`)
    policies.push(state)
  }
  return policies
}

/**
 * Claims the keys of new entries in one order, whatever theirs is: of collections at once that have keys in common one gets
 * through.
 */
async function claimAll(
  app: Application,
  client: Scope,
  fresh: readonly NamedDebit[],
  context: CommandContext,
  collectionId: string,
): Promise<Rejection | null> {
  for (const one of fresh.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    const refusal = await claimKey(app, client, one, context, collectionId)
    if (refusal) return refusal
  }
  return null
}

function outsideKey(client: Scope, employerId: string, carrierIds: readonly string[]): Rejection | null {
  if (!mayActFor(client, employerId)) return outside('employerId')
  const index = carrierIds.findIndex((one) => !mayUseCarrier(client, one))
  return index < 0 ? null : outside(`policyCollections[${index}].policyId`)
}

function refusePolicies(client: Scope, policies: readonly Policy[], employerId: string): Rejection | null {
  const hidden = policies.findIndex(({ employer_id }) => !mayActFor(client, employer_id))
  if (hidden >= 0) return outside(`policyCollections[${hidden}].policyId`)
  const index = policies.findIndex(({ employer_id }) => employer_id !== employerId)
  if (index < 0) return null
  const field = `policyCollections[${index}].policyId`
  return reject('invalid', 'policy_mismatch', `${field} names a policy of another employer`, field)
}

function missing(what: 'employer' | 'policy', field: string): Rejection {
  return reject('not_found', `${what}_not_found`, `${field} names no ${what} of this account`, field)
}
