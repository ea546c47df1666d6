import type { ConnectionStatus } from '../../../domain/banking/linking/bank-connection.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import { bigint, boolean, orNull, type RowOf, table, text } from '../../queries/table.ts'

/** What bank connections are found by; what they are stands in the log. */
export const bankConnections = table('bank_connections', {
  key: ['connection_id'],
  columns: {
    connection_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: orNull(text()),
    carrier_id: orNull(text()),
    /** The client that created it, which also owns what belongs to no employer. */
    client_id: orNull(text()),
    status: text<ConnectionStatus>(),
    /** Order of linking. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'environment', 'seq desc'], ['employer_id', 'seq desc'], ['seq desc']],
})

/** Transactions of linked accounts, as the bank link tells of them. */
export const bankTransactions = table('bank_transactions', {
  key: ['transaction_id'],
  columns: {
    transaction_id: text(),
    connection_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: orNull(text()),
    carrier_id: orNull(text()),
    /** The client that created it, which also owns what belongs to no employer. */
    client_id: orNull(text()),
    item_id: text(),
    account_id: text(),
    /** YYYY-MM-DD. */
    date: text(),
    amount_cents: bigint(),
    direction: text<'debit' | 'credit'>(),
    currency: orNull(text()),
    pending: boolean(),
    description: text<Sealed>(),
    /** What `description` is bound to in the stream of the connection's transactions. */
    description_field: text(),
  },
  indexes: [
    ['tenant_id', 'environment', 'date desc', 'transaction_id'],
    ['employer_id', 'date desc', 'transaction_id'],
    ['item_id', 'date desc', 'transaction_id'],
  ],
  personal: ['description'],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    bank_connections: RowOf<typeof bankConnections>
    bank_transactions: RowOf<typeof bankTransactions>
  }
}
