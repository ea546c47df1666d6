import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'

/**
 * Which account of an owner is its primary one, in a layer: metadata (`bank_account`) or credentials (`ach_account`). One
 * stream for each owner and layer, so that of concurrent choices one is the last. No account follows one that
 * is deleted or is no longer to be primary.
 */
const primary = {
  primary_id: id(),
  layer: z.enum(['bank_account', 'ach_account']),
  owner_type: z.enum(['employer', 'carrier', 'user']),
  owner_id: z.string(),
  account_id: id(),
}

export const PrimaryAccountChosen = eventType('PrimaryAccountChosen', {
  ...primary,
  tenant_id: id(),
  environment: environment(),
  /** The account that was primary until then. */
  replaces: id().nullable(),
  at: time(),
})
export const PrimaryAccountCleared = eventType('PrimaryAccountCleared', { ...primary, at: time() })

export type PrimaryAccountEvent = EventOf<typeof PrimaryAccountChosen | typeof PrimaryAccountCleared>
/** Whose accounts are meant, and in which layer. */
export type PrimaryOwner = Pick<
  EventOf<typeof PrimaryAccountChosen>['data'],
  'tenant_id' | 'environment' | 'layer' | 'owner_type' | 'owner_id'
>

export interface PrimaryAccount {
  /** Null: none is. */
  readonly account_id: string | null
  /** Accounts that were chosen at some time. */
  readonly chosen: readonly string[]
}

/** Times are epoch milliseconds. */
export type PrimaryAccountCommand =
  | {
      readonly type: 'Choose'
      readonly primaryId: string
      readonly owner: PrimaryOwner
      readonly accountId: string
      /** Asked for when the account was created: done once, so that what was chosen since stays. */
      readonly isOfCreation: boolean
      readonly at: number
    }
  | {
      readonly type: 'Clear'
      readonly primaryId: string
      readonly owner: PrimaryOwner
      readonly accountId: string
      readonly at: number
    }

export const primaryAccount: Decider<PrimaryAccount, PrimaryAccountCommand, PrimaryAccountEvent> = {
  category: 'primaryAccount',
  events: [PrimaryAccountChosen, PrimaryAccountCleared],
  initialState: { account_id: null, chosen: [] },
  evolve({ chosen }, { type, data: { account_id } }) {
    if (type === 'PrimaryAccountCleared') return { account_id: null, chosen }
    return { account_id, chosen: chosen.includes(account_id) ? chosen : [...chosen, account_id] }
  },
  decide(command, state): readonly PrimaryAccountEvent[] {
    const { primaryId: primary_id, owner, accountId: account_id } = command
    const at = isoTime(command.at)
    if (command.type === 'Clear') {
      if (state.account_id !== account_id) return []
      const { layer, owner_type, owner_id } = owner
      return [PrimaryAccountCleared.of({ primary_id, layer, owner_type, owner_id, account_id, at })]
    }
    if (state.account_id === account_id) return []
    if (command.isOfCreation && state.chosen.includes(account_id)) return []
    const replaces = state.account_id
    return [PrimaryAccountChosen.of({ primary_id, ...owner, account_id, replaces, at })]
  },
}
