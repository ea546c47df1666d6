import { OF_TENANT, operatorRows } from '../../queries/lists.ts'

/** Records of the legacy service as the ledger has them. Amounts are cents. */
export const listLegacyCollections = operatorRows({
  projection: 'legacy-collections',
  table: 'legacy_collections',
  by: [...OF_TENANT, 'employer_id', 'carrier_id', 'policy_id', 'status'],
})
