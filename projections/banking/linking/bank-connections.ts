import {
  bankConnections as connectionsTable,
  bankTransactions as transactionsTable,
} from '../../../application/banking/linking/bank-connections-table.ts'
import {
  BankConnectionLinked,
  BankConnectionLoginRequired,
  BankConnectionRestored,
} from '../../../domain/banking/linking/bank-connection.ts'
import {
  BankTransactionsReceived,
  descriptionField,
} from '../../../domain/banking/linking/bank-transactions.ts'
import { changing, projection } from '../../runtime/projection.ts'

const ofConnection = changing(connectionsTable)

/** Linked items as they are listed. */
export const bankConnections = projection({
  name: 'bank-connections',
  version: 3,
  tables: [connectionsTable],
  handlers: (on) => [
    on(BankConnectionLinked, {
      apply: ({ data, position }, { bank_connections }) =>
        bank_connections.put({ ...data, status: 'active', seq: position }),
    }),
    ofConnection(BankConnectionLoginRequired, () => ({ status: 'login_required' })),
    ofConnection(BankConnectionRestored, () => ({ status: 'active' })),
  ],
})

/** Transactions of linked accounts: the latest word of each. */
export const bankTransactions = projection({
  name: 'bank-transactions',
  version: 2,
  tables: [transactionsTable],
  handlers: (on) => [
    on(BankTransactionsReceived, {
      apply({ data }, { bank_transactions }) {
        const { connection_id, tenant_id, environment, item_id, employer_id, carrier_id, chunk } = data
        for (const [index, one] of data.changed.entries()) {
          const { transaction_id, bankconnect_account_id: account_id, date, amount_cents } = one
          bank_transactions.put({
            transaction_id,
            connection_id,
            tenant_id,
            environment,
            employer_id,
            carrier_id,
            client_id: data.client_id ?? null,
            item_id,
            account_id,
            date,
            amount_cents,
            direction: one.direction,
            currency: one.currency,
            pending: one.pending,
            description: one.description,
            description_field: descriptionField(chunk, index),
          })
        }
        for (const transactionId of data.removed) bank_transactions.remove(transactionId)
      },
    }),
  ],
})
