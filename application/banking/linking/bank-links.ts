import { hash, timingSafeEqual } from 'node:crypto'
import {
  type BankConnection,
  bankConnection,
  loginRequired,
} from '../../../domain/banking/linking/bank-connection.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { isRejection, orThrow, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { connectionSubject } from '../../commands/sealing.ts'
import { storable } from '../../commands/storable-text.ts'
import { changed } from '../../commands/verbs.ts'
import type { BankLink, LinkedItem } from '../../ports/bank-link.ts'
import { ERASED } from '../../ports/personal-data.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'

/** Characters of a name at the most. */
const LONGEST_NAME = 200
/** Bytes of a handle that nobody can guess. */
const HANDLE_BYTES = 32
const HANDLE_PREFIX = 'bca_'

/** What opens a connection to its partner. Only its hash is kept. */
export function newHandle({ randomness }: Pick<Application, 'randomness'>): {
  readonly handle: string
  readonly hash: string
} {
  const handle = `${HANDLE_PREFIX}${randomness.hex(HANDLE_BYTES)}`
  return { handle, hash: hashOf(handle) }
}

/** Whether a text is one of the handles of a connection. */
export function isHandleOf({ handle_hashes }: BankConnection, text: string): boolean {
  const given = Buffer.from(hashOf(text))
  return handle_hashes.some((known) => timingSafeEqual(Buffer.from(known), given))
}

function hashOf(text: string): string {
  return hash('sha256', text, 'hex')
}

/**
 * The vault's entry of an item, by the public token that it was exchanged for: a repetition after a crash finds it there.
 * @returns null where there is none; a rejection where its user was erased.
 */
export async function keptItem(
  { vault, personalData }: Pick<Application, 'vault' | 'personalData'>,
  ref: string,
): Promise<LinkedItem | Rejection | null> {
  const kept = await vault.get(ref)
  return kept === null ? null : opened(personalData, ref, kept)
}

/**
 * Keeps an item under the data key of its employer, or, where it names none, one of its connection, so that an erasure closes
 * it as well. Of two requests that keep it at once, the first counts.
 */
export async function keepItem(
  { vault, personalData }: Pick<Application, 'vault' | 'personalData'>,
  ref: string,
  { itemId, token }: LinkedItem,
  owner: Pick<BankConnection, 'employer_id' | 'connection_id'>,
): Promise<LinkedItem | Rejection> {
  const subject = connectionSubject(personalData, owner)
  const plaintext = JSON.stringify({ itemId, token })
  const [sealed] = await personalData.seal([{ subject, context: ref, plaintext }])
  return opened(personalData, ref, await vault.getOrPut(ref, () => sealed!))
}

async function opened(
  personalData: Pick<Application['personalData'], 'open'>,
  ref: string,
  kept: string,
): Promise<LinkedItem | Rejection> {
  const [text] = await personalData.open([{ value: kept as Sealed, context: ref }])
  if (text !== ERASED) return JSON.parse(text!) as LinkedItem
  const why = 'What opens the item was erased: its bank is not asked about it any more'
  return reject('conflict', 'bank_connection_erased', why)
}

/** The bank link that a connection was made with. @throws ProviderUnavailable where it is no longer set. */
function linkOf(
  { bankLinks }: Pick<Application, 'bankLinks'>,
  { environment, provider }: { readonly environment: Environment; readonly provider: BankLink['kind'] },
): BankLink {
  if (bankLinks[environment].kind === provider) return bankLinks[environment]
  // the simulated one always goes on with its own
  if (provider === 'simulated') return bankLinks.sandbox
  throw new ProviderUnavailable('The bank link that this connection was made with is not set', {
    nothingHappened: true,
  })
}

/**
 * Asks the bank link about a connection. That its user has to log in at the bank again is recorded, and so is that it
 * answers again.
 * @returns a rejection for what it refuses; `product` where the bank or the user does not give what was asked.
 * @throws ProviderUnavailable
 */
export async function askAbout<Answer>(
  app: Application,
  connection: BankConnection,
  context: CommandContext,
  ask: (link: BankLink, token: string) => Promise<Answer>,
): Promise<Answer | Rejection> {
  if (connection.token_ref === null) {
    const why = 'The exchange of the item broke off: exchange its public token again'
    return reject('conflict', 'exchange_broken_off', why)
  }
  const link = linkOf(app, connection)
  const item = await keptItem(app, connection.token_ref)
  if (item === null) throw new Error('A connection without its item in the vault')
  if (isRejection(item)) return item
  const { connection_id } = connection
  const record = async (type: 'RequireLogin' | 'Restore') => {
    const command = { type, at: app.clock.now() } as const
    orThrow(await changed(app, bankConnection, connection_id, command, context))
  }
  try {
    const answer = await ask(link, item.token)
    if (connection.status !== 'active') await record('Restore')
    return answer
  } catch (error) {
    if (!(error instanceof ProviderRefused)) throw error
    if (error.about !== 'login') return refusedByLink(error)
    await record('RequireLogin')
    return loginRequired()
  }
}

const NO_PRODUCT = 'bank_link_product'

export function refusedByLink({ message, about }: ProviderRefused): Rejection {
  return reject('invalid', about === 'product' ? NO_PRODUCT : 'bank_link_refused', message)
}

/** Whether a rejection says that the bank or the user does not give what was asked. */
export function isWithoutProduct({ code }: Rejection): boolean {
  return code === NO_PRODUCT
}

/** A text of the bank link as it can be stored and shown. */
export function textOf(given: string, longest = LONGEST_NAME): string {
  const kept = JSON.parse(storable(JSON.stringify(given))) as string
  return [...kept.trim()].slice(0, longest).join('')
}
