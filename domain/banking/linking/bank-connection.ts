import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import { maybeSealed, sealContext, secret } from '../../kernel/sealed.ts'

/**
 * A linked item: a user's log-in at a bank, with its accounts. What opens it at the bank link is in the vault; the
 * partner is given a handle of ours, of which a hash is kept. Times are ISO 8601.
 */
const connection = { connection_id: id() }
/** `login_required`: the bank link reads nothing before the user has logged in at the bank again. */
export const CONNECTION_STATUSES = ['active', 'login_required'] as const
export type ConnectionStatus = (typeof CONNECTION_STATUSES)[number]

const connectedAccount = z.object({
  /** The bank link's id. */
  bankconnect_account_id: z.string(),
  /** Of the account of the metadata layer. */
  bank_account_id: id(),
  type: z.enum(['checking', 'savings', 'other']),
  /** The last digits of its number, as far as the bank shows them. */
  mask: z
    .string()
    .regex(/^[0-9A-Za-z]{1,4}$/)
    .nullable(),
})
export type ConnectedAccount = z.output<typeof connectedAccount>

export const BankConnectionLinked = eventType('BankConnectionLinked', {
  ...connection,
  tenant_id: id(),
  environment: environment(),
  provider: z.enum(['simulated', 'plaid']),
  /** The bank link's id. */
  item_id: z.string(),
  /** The partner's own id of the user that linked it, which may be a name or an address. */
  user_id: maybeSealed({
    subject: 'employer',
    boundTo: ({ data }) =>
      sealContext(`bankConnection-${data.connection_id}`, 'BankConnectionLinked', 'user_id'),
  }),
  employer_id: id().nullable(),
  carrier_id: id().nullable(),
  /** The client that linked it; absent in events from before it was kept. */
  client_id: z.string().optional(),
  linked_at: time(),
})
/** An exchange handed out a handle; those of earlier exchanges serve, too. */
export const BankConnectionHandleIssued = eventType('BankConnectionHandleIssued', {
  ...connection,
  /** SHA-256 of the handle, hexadecimal. */
  handle_hash: secret(),
  /** Where the vault keeps what opens the item: the latest is the right one. */
  token_ref: secret(),
  at: time(),
})
/** The accounts of the item are other ones than before. */
export const BankConnectionAccountsFound = eventType('BankConnectionAccountsFound', {
  ...connection,
  institution_name: z.string().nullable(),
  accounts: z.array(connectedAccount),
  at: time(),
})
export const BankConnectionLoginRequired = eventType('BankConnectionLoginRequired', {
  ...connection,
  at: time(),
})
/** The bank link reads the item again. */
export const BankConnectionRestored = eventType('BankConnectionRestored', { ...connection, at: time() })

const events = [
  BankConnectionLinked,
  BankConnectionHandleIssued,
  BankConnectionAccountsFound,
  BankConnectionLoginRequired,
  BankConnectionRestored,
] as const
export type BankConnectionEvent = EventOf<(typeof events)[number]>
type Linked = z.output<typeof BankConnectionLinked.schema>

export interface BankConnection extends Linked {
  readonly status: ConnectionStatus
  readonly institution_name: string | null
  readonly accounts: readonly ConnectedAccount[]
  readonly token_ref: string | null
  /** The newest first. */
  readonly handle_hashes: readonly string[]
  readonly updated_at: string
}

/** Times are epoch milliseconds. */
export type BankConnectionCommand =
  | { readonly type: 'Link'; readonly data: Linked }
  | {
      readonly type: 'IssueHandle'
      readonly handleHash: string
      readonly tokenRef: string
      readonly at: number
    }
  | {
      readonly type: 'FindAccounts'
      readonly institutionName: string | null
      readonly accounts: readonly ConnectedAccount[]
      readonly at: number
    }
  | { readonly type: 'RequireLogin'; readonly at: number }
  | { readonly type: 'Restore'; readonly at: number }

/** Handles of a connection that serve: an eleventh takes the place of the oldest. */
const MOST_HANDLES = 10

export const bankConnection: Decider<BankConnection | null, BankConnectionCommand, BankConnectionEvent> = {
  category: 'bankConnection',
  events,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'BankConnectionLinked') {
      const nothing = { institution_name: null, accounts: [], token_ref: null, handle_hashes: [] }
      return { ...event.data, status: 'active', ...nothing, updated_at: event.data.linked_at }
    }
    const before = { ...state!, updated_at: event.data.at }
    switch (event.type) {
      case 'BankConnectionHandleIssued': {
        const { handle_hash, token_ref } = event.data
        const handle_hashes = [handle_hash, ...before.handle_hashes].slice(0, MOST_HANDLES)
        return { ...before, token_ref, handle_hashes }
      }
      case 'BankConnectionAccountsFound': {
        const { institution_name, accounts } = event.data
        return { ...before, institution_name, accounts }
      }
      case 'BankConnectionLoginRequired':
        return { ...before, status: 'login_required' }
      case 'BankConnectionRestored':
        return { ...before, status: 'active' }
    }
  },
  decide(command, state): readonly BankConnectionEvent[] | Rejection {
    if (command.type === 'Link') {
      if (!state) return [BankConnectionLinked.of(command.data)]
      // the same item again is the same connection
      return isOfSameOwner(state, command.data) ? [] : linkedForAnother()
    }
    if (!state) return noConnection()
    const { connection_id } = state
    const at = isoTime(command.at)
    switch (command.type) {
      case 'IssueHandle': {
        const { handleHash: handle_hash, tokenRef: token_ref } = command
        return [BankConnectionHandleIssued.of({ connection_id, handle_hash, token_ref, at })]
      }
      case 'FindAccounts': {
        const { institutionName: institution_name, accounts } = command
        const found = { institution_name, accounts: [...accounts] }
        const known = { institution_name: state.institution_name, accounts: state.accounts }
        if (JSON.stringify(found) === JSON.stringify(known)) return []
        return [BankConnectionAccountsFound.of({ connection_id, ...found, at })]
      }
      case 'RequireLogin':
        return state.status === 'active' ? [BankConnectionLoginRequired.of({ connection_id, at })] : []
      case 'Restore':
        return state.status === 'active' ? [] : [BankConnectionRestored.of({ connection_id, at })]
    }
  },
}

export function noConnection(field?: string): Rejection {
  const message = field === undefined ? 'There is no such bank connection' : `${field} names no linked item`
  return reject('not_found', 'bank_connection_not_found', message, field)
}

/** Why a connection cannot be read: its user has to log in at the bank, by the widget. */
export function loginRequired(): Rejection {
  const why =
    'The bank asks its user to log in again: open the widget with a token of /bankconnect/link-token/update'
  return reject('conflict', 'bank_login_required', why)
}

function isOfSameOwner(one: Linked, other: Linked): boolean {
  return one.employer_id === other.employer_id && one.carrier_id === other.carrier_id
}

function linkedForAnother(): Rejection {
  const why = 'public_token stands for an item that is linked for another employer or carrier'
  return reject('conflict', 'item_linked', why, 'public_token')
}
