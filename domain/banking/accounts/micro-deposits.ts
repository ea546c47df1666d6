import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { id } from '../../kernel/ids.ts'
import { nextClose } from '../debits/banking-days.ts'

/** Two small credits that wait for the next file; their account is the payee's. Times are ISO 8601. */

export const MicroDepositsOrdered = eventType('MicroDepositsOrdered', {
  deposits_id: id(),
  ach_account_id: id(),
  batch_closes_at: time(),
  at: time(),
})
export const MicroDepositsInFile = eventType('MicroDepositsInFile', {
  deposits_id: id(),
  file_id: id(),
  at: time(),
})
/** The deposits are not sent, and their verification ended: the account's numbers cannot be read, or no file holds them. */
export const MicroDepositsLeftOut = eventType('MicroDepositsLeftOut', {
  deposits_id: id(),
  note: z.string(),
  at: time(),
})

const events = [MicroDepositsOrdered, MicroDepositsInFile, MicroDepositsLeftOut] as const
export type MicroDepositsEvent = EventOf<(typeof events)[number]>

type Ordered = EventOf<typeof MicroDepositsOrdered>['data']

export interface OrderedMicroDeposits extends Ordered {
  readonly file_id: string | null
  readonly is_left_out: boolean
}

/** Times are epoch milliseconds. */
export type MicroDepositsCommand =
  | {
      readonly type: 'Order'
      readonly data: Omit<Ordered, 'batch_closes_at' | 'at'>
      readonly at: number
    }
  | { readonly type: 'PutInFile'; readonly fileId: string; readonly at: number }
  | { readonly type: 'LeaveOut'; readonly note: string; readonly at: number }

export const microDeposits: Decider<OrderedMicroDeposits | null, MicroDepositsCommand, MicroDepositsEvent> = {
  category: 'microDeposits',
  events,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'MicroDepositsOrdered') return { ...event.data, file_id: null, is_left_out: false }
    if (event.type === 'MicroDepositsLeftOut') return { ...state!, is_left_out: true }
    return { ...state!, file_id: event.data.file_id }
  },
  decide(command, state) {
    const at = isoTime(command.at)
    if (command.type === 'Order') {
      // the same order again is the same one
      if (state) return []
      return [
        MicroDepositsOrdered.of({ ...command.data, batch_closes_at: isoTime(nextClose(command.at)), at }),
      ]
    }
    if (!state) throw new Error('There is no such order of micro-deposits')
    const { deposits_id } = state
    if (state.file_id !== null || state.is_left_out) return []
    return command.type === 'PutInFile'
      ? [MicroDepositsInFile.of({ deposits_id, file_id: command.fileId, at })]
      : [MicroDepositsLeftOut.of({ deposits_id, note: command.note, at })]
  },
}

/** The deposits go with this batch. */
export const MicroDepositsListed = eventType('MicroDepositsListed', {
  deposits_id: id(),
  batch_closes_at: time(),
  at: time(),
})

export interface ListMicroDeposits {
  readonly type: 'List'
  readonly depositsId: string
  readonly batchClosesAt: string
  /** Epoch milliseconds. */
  readonly at: number
}

/** The orders that go with one batch. */
export const microDepositsOfBatch: Decider<
  { readonly deposits: readonly string[] },
  ListMicroDeposits,
  EventOf<typeof MicroDepositsListed>
> = {
  category: 'microDepositsOfBatch',
  events: [MicroDepositsListed],
  initialState: { deposits: [] },
  evolve: ({ deposits }, { data }) => ({ deposits: [...deposits, data.deposits_id] }),
  decide({ depositsId: deposits_id, batchClosesAt: batch_closes_at, at }, { deposits }) {
    if (deposits.includes(deposits_id)) return []
    return [MicroDepositsListed.of({ deposits_id, batch_closes_at, at: isoTime(at) })]
  },
}
