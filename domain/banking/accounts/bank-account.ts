import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import { maybeSealed, sealContext } from '../../kernel/sealed.ts'

/**
 * A bank account as it is displayed and associated: names, owner, how it is connected. It holds no numbers;
 * money is moved by ACH accounts. Times are ISO 8601.
 */
export const CONNECTION_TYPES = ['manual', 'bankconnect'] as const
export const BANK_ACCOUNT_STATUSES = ['active', 'disabled'] as const
const details = z.object({
  /** Shown to people. */
  name: z.string(),
  bank_name: z.string(),
  employer_id: id().nullable(),
  carrier_id: id().nullable(),
  connection_type: z.enum(CONNECTION_TYPES),
})

export const BankAccountCreated = eventType(
  'BankAccountCreated',
  details.extend({
    bank_account_id: id(),
    tenant_id: id(),
    environment: environment(),
    /** The partner's own id of the user that manages it, which may be a name or an address. */
    user_id: maybeSealed({
      subject: 'employer',
      boundTo: ({ data }) =>
        sealContext(`bankAccount-${data.bank_account_id}`, 'BankAccountCreated', 'user_id'),
    }),
    /** Keyed fingerprint of the same, by which accounts of one user are known; absent where `user_id` is in plain text. */
    user_fingerprint: z.string().optional(),
    /** The client that created it; absent in events from before it was kept. */
    client_id: z.string().optional(),
    /** The account was asked to be its owner's primary one. */
    primary: z.boolean(),
    created_at: time(),
  }),
)
export const BankAccountChanged = eventType(
  'BankAccountChanged',
  details
    .extend({ status: z.enum(BANK_ACCOUNT_STATUSES) })
    .partial()
    .extend({ bank_account_id: id(), at: time() }),
)
export const BankAccountDeleted = eventType('BankAccountDeleted', { bank_account_id: id(), at: time() })

const events = [BankAccountCreated, BankAccountChanged, BankAccountDeleted] as const
export type BankAccountEvent = EventOf<(typeof events)[number]>
export type BankAccountCreation = z.output<typeof BankAccountCreated.schema>
export interface BankAccountRecord extends BankAccountCreation {
  readonly status: (typeof BANK_ACCOUNT_STATUSES)[number]
  readonly updated_at: string
  /** Null: it is there. */
  readonly deleted_at: string | null
}
/** What of it can be changed. */
export type BankAccountChange = Partial<
  Pick<BankAccountRecord, 'name' | 'bank_name' | 'employer_id' | 'carrier_id' | 'connection_type' | 'status'>
>

/** Times are epoch milliseconds. */
export type BankAccountCommand =
  | { readonly type: 'Create'; readonly data: BankAccountCreation }
  | { readonly type: 'Change'; readonly change: BankAccountChange; readonly at: number }
  | { readonly type: 'Delete'; readonly at: number }

export const bankAccount: Decider<BankAccountRecord | null, BankAccountCommand, BankAccountEvent> = {
  category: 'bankAccount',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'BankAccountCreated':
        return { ...event.data, status: 'active', updated_at: event.data.created_at, deleted_at: null }
      case 'BankAccountChanged': {
        const { at, ...change } = event.data
        return { ...state!, ...change, updated_at: at }
      }
      case 'BankAccountDeleted':
        return { ...state!, updated_at: event.data.at, deleted_at: event.data.at }
    }
  },
  decide(command, state): readonly BankAccountEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'bank_account_exists', 'The bank account exists already')
      return [BankAccountCreated.of(command.data)]
    }
    if (!state) return noBankAccount()
    const { bank_account_id } = state
    const at = isoTime(command.at)
    if (command.type === 'Delete') {
      // of many at once, each has deleted it
      return state.deleted_at === null ? [BankAccountDeleted.of({ bank_account_id, at })] : []
    }
    if (state.deleted_at !== null) return noBankAccount()
    const change = differing(state, command.change)
    return change === null ? [] : [BankAccountChanged.of({ bank_account_id, ...change, at })]
  },
}

export function noBankAccount(): Rejection {
  return reject('not_found', 'bank_account_not_found', 'There is no such bank account')
}

/** What of a change is not so already; null where all of it is. */
export function differing<State extends object, Change extends Partial<State>>(
  state: State,
  change: Change,
): Partial<Change> | null {
  const pairs = Object.entries(change).filter(
    ([name, value]) => value !== undefined && state[name as keyof State] !== value,
  )
  return pairs.length === 0 ? null : (Object.fromEntries(pairs) as Partial<Change>)
}
