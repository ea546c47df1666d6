import { carrier } from '../../domain/parties/carrier.ts'
import { operatorList } from '../queries/lists.ts'

/** Carriers. */
export const listCarriers = operatorList(carrier, {
  projection: 'policies',
  table: 'carriers',
  id: 'carrier_id',
  by: ['tenant_id'],
})
