import { bankConnection } from '../../../domain/banking/linking/bank-connection.ts'
import { OF_TENANT, operatorList } from '../../queries/lists.ts'

/** Bank connections. */
export const listAllConnections = operatorList(bankConnection, {
  projection: 'bank-connections',
  table: 'bank_connections',
  id: 'connection_id',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'status'],
})
