import { bankConnection } from '../../../domain/banking/linking/bank-connection.ts'
import { operatorList } from '../../queries/lists.ts'

/** Bank connections. */
export const listAllConnections = operatorList(bankConnection, {
  projection: 'bank-connections',
  table: 'bank_connections',
  id: 'connection_id',
  by: ['employer_id', 'carrier_id', 'status'],
})
