import { z } from 'zod'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import { sealContext, sealed } from '../../kernel/sealed.ts'

/**
 * The transactions of a bank connection, as the bank link tells of them: all that is new since a cursor, in chunks, of which
 * the last one names the next cursor. The stream id is that of the connection. What is told again is the same transaction,
 * by its id.
 */
const transaction = z.object({
  transaction_id: id(),
  /** The bank link's ids. */
  bankconnect_transaction_id: z.string(),
  bankconnect_account_id: z.string(),
  date: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  amount_cents: z.int().min(0),
  /** `debit`: money left the account. */
  direction: z.enum(['debit', 'credit']),
  /** ISO 4217, lower case. */
  currency: z.string().nullable(),
  pending: z.boolean(),
  /** May name people: sealed under the employer's data key, or one of the connection where it is of no employer. */
  description: sealed({
    subject: 'employer',
    boundTo: ({ data, path }) =>
      sealContext(
        `bankTransactions-${data.connection_id}`,
        'BankTransactionsReceived',
        descriptionField(Number(data.chunk), Number(path[1])),
      ),
  }),
})
export type BankTransaction = z.output<typeof transaction>

/** What the description of a transaction is bound to, by its chunk and its place in the chunk (both from 0). */
export function descriptionField(chunk: number, index: number): string {
  return `chunks.${chunk}.changed.${index}.description`
}

export const BankTransactionsReceived = eventType('BankTransactionsReceived', {
  connection_id: id(),
  tenant_id: id(),
  environment: environment(),
  item_id: z.string(),
  employer_id: id().nullable(),
  carrier_id: id().nullable(),
  /** The client that linked the item; absent in events from before it was kept. */
  client_id: z.string().optional(),
  chunk: z.int().min(0),
  /** New ones, and those that are another now. */
  changed: z.array(transaction),
  /** Those that are no more. */
  removed: z.array(id()),
  /** Where what comes next begins; null: more chunks follow. */
  cursor: z.string().nullable(),
  received_at: time(),
})

export type BankTransactionsEvent = EventOf<typeof BankTransactionsReceived>
type Received = z.output<typeof BankTransactionsReceived.schema>

export interface BankTransactions {
  readonly chunks: number
  /** What was received goes up to it; null: nothing was. */
  readonly cursor: string | null
  /** What chunks tell of whose last one is missing: it is told again, unless it is no more. */
  readonly unsettled: readonly string[]
}

export interface BankTransactionsCommand {
  readonly type: 'Receive'
  readonly data: Received
}

export const bankTransactions: Decider<BankTransactions, BankTransactionsCommand, BankTransactionsEvent> = {
  category: 'bankTransactions',
  events: [BankTransactionsReceived],
  initialState: { chunks: 0, cursor: null, unsettled: [] },
  sizeOf: ({ unsettled }) => 1_000 + unsettled.length * 100,
  evolve({ chunks, cursor, unsettled }, { data }) {
    const told = { chunks: chunks + 1, cursor: data.cursor ?? cursor }
    if (data.cursor !== null) return { ...told, unsettled: [] }
    return { ...told, unsettled: [...unsettled, ...data.changed.map((one) => one.transaction_id)] }
  },
  decide({ data }, { chunks, cursor }): readonly BankTransactionsEvent[] | Rejection {
    if (data.chunk !== chunks) {
      return reject('conflict', 'out_of_order', 'Another chunk was received meanwhile')
    }
    const isNews = data.changed.length > 0 || data.removed.length > 0 || data.cursor !== cursor
    return isNews ? [BankTransactionsReceived.of(data)] : []
  },
}
