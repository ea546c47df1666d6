import { legacyCollections as table } from '../../../application/banking/legacy/legacy-collections-table.ts'
import {
  datedAt,
  LegacyCollectionAcknowledged,
  LegacyCollectionCorrected,
  LegacyCollectionRecorded,
  LegacyCollectionReturned,
} from '../../../domain/banking/legacy/legacy-collection.ts'
import {
  CHUNK_ROWS,
  importedId,
  LegacyCollectionsImported,
} from '../../../domain/banking/legacy/legacy-import.ts'
import { changing, projection } from '../../runtime/projection.ts'

const ofRecord = changing(table)

/** Records of the legacy service, as the ledger lists them and as duplicates are looked for. */
export const legacyCollections = projection({
  name: 'legacy-collections',
  version: 4,
  tables: [table],
  handlers: (on) => [
    on(LegacyCollectionsImported, {
      apply({ data, position, revision }, { legacy_collections }) {
        const { import_id, tenant_id, environment, rows } = data
        const first = position * BigInt(CHUNK_ROWS)
        for (let index = 0; index < rows.length; index += 1) {
          const row = rows[index]!
          const seq = Number(first) + index
          // one literal, and no objects spread into it: there are millions
          legacy_collections.put({
            transaction_id: importedId(import_id, row.line),
            tenant_id,
            environment,
            employer_id: row.employer_id,
            carrier_id: row.carrier_id,
            policy_id: row.policy_id,
            status: row.status,
            return_code: null,
            amount_cents: row.premium_cents,
            period_start: row.period_start,
            period_end: row.period_end,
            effective_date: row.period_end,
            created_at: datedAt(row.period_end),
            updated_at: datedAt(row.period_end),
            seq: Number.isSafeInteger(seq) ? seq : first + BigInt(index),
            import_revision: revision,
          })
        }
      },
    }),
    on(LegacyCollectionRecorded, {
      apply({ data, position }, { legacy_collections }) {
        // its import has reported it
        if (data.import !== null) return
        const { transaction_id, tenant_id, environment, employer_id, carrier_id, policy_id } = data
        const { status, premium_cents: amount_cents, period_start, period_end } = data
        const created_at = datedAt(period_end)
        legacy_collections.put({
          transaction_id,
          tenant_id,
          environment,
          employer_id,
          carrier_id,
          policy_id,
          status,
          amount_cents,
          period_start,
          period_end,
          effective_date: period_end,
          created_at,
          updated_at: created_at,
          seq: position * BigInt(CHUNK_ROWS),
        })
      },
    }),
    ofRecord(LegacyCollectionAcknowledged, ({ data }) => ({ status: 'sb_remit', updated_at: data.at })),
    ofRecord(LegacyCollectionCorrected, ({ data: { status, at } }) => ({
      status,
      return_code: null,
      updated_at: at,
    })),
    ofRecord(LegacyCollectionReturned, ({ data: { return_code, at } }) => ({
      status: 'returned',
      return_code,
      updated_at: at,
    })),
  ],
})
