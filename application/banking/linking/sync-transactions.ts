import type { BankConnection } from '../../../domain/banking/linking/bank-connection.ts'
import {
  type BankTransactions,
  BankTransactionsReceived,
  bankTransactions,
} from '../../../domain/banking/linking/bank-transactions.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { connectionSubject, sealFields } from '../../commands/sealing.ts'
import { readable, within } from '../../commands/verbs.ts'
import type { BankLink, LinkedTransaction } from '../../ports/bank-link.ts'
import { ProviderUnavailable } from '../../ports/provider.ts'
import { askAbout, textOf } from './bank-links.ts'

/** Transactions in an event, and events in an append: both stay within their bytes, however long descriptions are. */
const PER_CHUNK = 100
const PER_APPEND = 5
/** Characters of a description that are kept. */
const LONGEST_DESCRIPTION = 200
/** Parts that one request asks for: what is left comes with the next one. */
const MOST_PARTS = 200
/** How often what another request or the bank link itself came in the way of is begun again. */
const ATTEMPTS = 5

/** How many came with a request. */
export interface TransactionCounts {
  readonly changed: number
  readonly removed: number
  /** There are more, for the next request. */
  readonly has_more: boolean
}

/** What the bank link tells since a cursor: the last word on each transaction. */
interface SyncedTransactions {
  readonly changed: ReadonlyMap<string, LinkedTransaction>
  readonly removed: ReadonlySet<string>
  readonly cursor: string | null
  readonly hasMore: boolean
}

/** Syncs that this process runs at present, by connection. */
type Running = Map<string, Promise<TransactionCounts | Rejection>>
const runningByTurns = new WeakMap<object, Running>()

/**
 * Stores what became of the transactions of a connection since they were asked for last. One sync of a connection is under
 * way in this process: a request for one meanwhile shares its result.
 * @throws ProviderUnavailable
 */
export async function syncTransactions(
  app: Application,
  connection: BankConnection,
  context: CommandContext,
): Promise<TransactionCounts | Rejection> {
  const { connection_id } = connection
  const running = runningByTurns.get(app.commands.turns) ?? (new Map() as Running)
  runningByTurns.set(app.commands.turns, running)
  const known = running.get(connection_id)
  if (known) return known
  const own = synced(app, connection, context)
  running.set(connection_id, own)
  try {
    return await own
  } finally {
    running.delete(connection_id)
  }
}

async function synced(
  app: Application,
  connection: BankConnection,
  context: CommandContext,
): Promise<TransactionCounts | Rejection> {
  const { connection_id } = connection
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const { state } = await app.commands.load(bankTransactions, connection_id)
    const told = await askAbout(app, connection, context, (link, token) =>
      allSince(link, token, state.cursor),
    )
    if (isRejection(told)) return told
    const isStored = await store(app, connection, state, told, context)
    if (isStored) return { changed: told.changed.size, removed: told.removed.size, has_more: told.hasMore }
  }
  return reject('conflict', 'sync_under_way', 'Another request is about to sync the same item')
}

/** Everything since a cursor; a change meanwhile makes it begin again. */
async function allSince(link: BankLink, token: string, since: string | null): Promise<SyncedTransactions> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const told = await once(link, token, since)
    if (told !== null) return told
  }
  throw new ProviderUnavailable('The bank link has other transactions each time that it is asked')
}

async function once(link: BankLink, token: string, since: string | null): Promise<SyncedTransactions | null> {
  const changed = new Map<string, LinkedTransaction>()
  const removed = new Set<string>()
  let cursor = since
  for (let part = 1; ; part += 1) {
    const page = await link.transactions(token, cursor)
    if (page === 'changed_meanwhile') return null
    for (const one of page.changed) {
      changed.set(one.providerId, one)
      removed.delete(one.providerId)
    }
    for (const id of page.removed) {
      changed.delete(id)
      removed.add(id)
    }
    const isAhead = page.cursor !== '' && page.cursor !== cursor
    // none are there yet
    if (page.cursor !== '') cursor = page.cursor
    if (!page.hasMore || !isAhead || part === MOST_PARTS) {
      return { changed, removed, cursor, hasMore: page.hasMore && isAhead }
    }
  }
}

/** @returns false where another request has stored something meanwhile. */
async function store(
  app: Application,
  connection: BankConnection,
  known: BankTransactions,
  { changed, removed, cursor }: SyncedTransactions,
  context: CommandContext,
): Promise<boolean> {
  const idOf = (providerId: string) => derivedId(connection.connection_id, `transaction/${providerId}`)
  const gone = new Set([...removed].map(idOf))
  const ids = new Set([...changed.keys()].map(idOf))
  // came in a sync that broke off, and went before this one
  for (const id of known.unsettled) if (!ids.has(id)) gone.add(id)
  const rows = [...changed.values()].map((one) => recordOf(idOf(one.providerId), one))
  const { connection_id, tenant_id, environment, item_id, employer_id, carrier_id, client_id } = connection
  const owner = { connection_id, tenant_id, environment, item_id, employer_id, carrier_id, client_id }
  const received_at = isoTime(app.clock.now())
  const chunks = Math.max(1, Math.ceil(rows.length / PER_CHUNK))
  for (let first = 0; first < chunks; first += PER_APPEND) {
    const commands = []
    for (let index = first; index < Math.min(first + PER_APPEND, chunks); index += 1) {
      const isLast = index === chunks - 1
      const data = await sealFields(
        app.personalData,
        BankTransactionsReceived,
        {
          ...owner,
          chunk: known.chunks + index,
          received_at,
          changed: rows.slice(index * PER_CHUNK, (index + 1) * PER_CHUNK),
          removed: isLast ? [...gone] : [],
          cursor: isLast ? cursor : null,
        },
        () => connectionSubject(app.personalData, connection),
      )
      commands.push({ type: 'Receive', data } as const)
    }
    const scoped = { ...within(context, connection), ordinal: known.chunks + first }
    const outcome = await app.commands.execute(bankTransactions, connection_id, commands, scoped)
    if (isRejection(await readable(app, bankTransactions, outcome))) return false
  }
  return true
}

function recordOf(transaction_id: string, one: LinkedTransaction) {
  const { providerId, accountId, date, outCents, currency, pending } = one
  return {
    transaction_id,
    bankconnect_transaction_id: providerId,
    bankconnect_account_id: accountId,
    date,
    amount_cents: Math.abs(outCents),
    currency,
    pending,
    direction: outCents < 0 ? ('credit' as const) : ('debit' as const),
    description: textOf(one.description, LONGEST_DESCRIPTION),
  }
}
