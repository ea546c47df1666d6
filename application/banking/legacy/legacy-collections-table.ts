import type { LegacyStatus } from '../../../domain/banking/legacy/legacy-collection.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { bigint, integer, orNull, type RowOf, table, text } from '../../queries/table.ts'

/**
 * Records of the legacy service as the ledger lists them, and as duplicates are looked for. What happened to one stands
 * in the log.
 */
export const legacyCollections = table('legacy_collections', {
  key: ['transaction_id'],
  columns: {
    transaction_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: orNull(text()),
    policy_id: orNull(text()),
    status: text<LegacyStatus>(),
    return_code: orNull(text()),
    amount_cents: bigint(),
    period_start: text(),
    period_end: text(),
    /** As of which it is dated: the last day of its period, at whose beginning it counts as created. */
    effective_date: text(),
    created_at: text(),
    updated_at: text(),
    /** Order in the log, no two alike. */
    seq: bigint(),
    /** Where its import's stream has it; null: it has a stream of its own. */
    import_revision: orNull(integer()),
  },
  // without the order within a day, which makes each a tenth as large and an import twice as fast: many rows share a key;
  // statuses and carriers stand behind it, so that filters by them are answered by the index
  indexes: [
    ['tenant_id', 'environment', 'created_at'],
    ['tenant_id', 'environment', 'status', 'created_at', 'carrier_id'],
    ['tenant_id', 'environment', 'amount_cents', 'status', 'carrier_id'],
    ['tenant_id', 'environment', 'carrier_id', 'created_at', 'status'],
    ['policy_id'],
    // of an employer, and what a debit of the same amount would collect again
    ['employer_id', 'amount_cents'],
    // newest first, read backwards: rows come in its order, which fills its pages; those of one that descends stay half empty
    ['seq'],
  ],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    legacy_collections: RowOf<typeof legacyCollections>
  }
}
