import pg from 'pg'
import { EventRegistry } from '../application/commands/event-registry.ts'
import { bankDebit } from '../domain/banking/debits/bank-debit.ts'
import { BankDebitCreated } from '../domain/banking/debits/bank-debit-events.ts'
import { bankFile, bankFileEntries } from '../domain/banking/files/bank-file.ts'
import {
  BankFileBegun,
  BankFileEntriesRecorded,
  BankFileRecorded,
} from '../domain/banking/files/bank-file-events.ts'
import { aggregates } from '../domain/catalogue.ts'
import { streamOf } from '../domain/kernel/decider.ts'
import { openOurLog } from './our-log.ts'
import type { Participants } from './servers.ts'
import { throughput } from './statistics.ts'
import { METADATA } from './timesheets.ts'

// All that the measurements know of the debits and files for banks that a search is measured among.

/** Streams that are stored at the same time: of many, appends share a transaction. */
const AT_ONCE = 1_024
const ODFI = '07100001'
const AT = '2026-11-02T12:00:00.000Z'
const SHA256 = 'a'.repeat(64)

const idOf = (kind: number, n: number) => (kind * 2 ** 40 + n).toString(16).padStart(24, '0')
/** Of a debit, by number. */
export const debitOf = (n: number) => idOf(6, n)
/** The trace number of its entry. */
export const traceOf = (n: number) => ODFI + String(n + 1).padStart(7, '0')
/** The name of a file, by number. */
export const fileNameOf = (n: number) => `ACH-BENCH-${String(n).padStart(7, '0')}.txt`

/** So many debits in each file. */
const EACH = 10

/**
 * Stores debits and the files that they went in, evenly, straight into the log of a service that is stopped.
 * @param from the first file. @param to behind the last one.
 */
export async function storeDebitsAndFiles(
  url: string,
  [from, to]: readonly [from: number, to: number],
  { tenantId: tenant_id, employerId: employer_id, carrierId: carrier_id, policyId: policy_id }: Participants,
): Promise<void> {
  const { log, close } = await openOurLog({ url }, { isExclusive: true })
  const registry = new EventRegistry(aggregates)
  try {
    await throughput((to - from) * EACH, AT_ONCE, async (index) => {
      const leg_id = debitOf(from * EACH + index)
      const created = BankDebitCreated.of({
        leg_id,
        tenant_id,
        environment: 'live',
        employer_id,
        carrier_id,
        policy_id,
        source: 'api',
        payment_session_id: null,
        installment_number: null,
        collection_id: null,
        file_id: null,
        check_date: null,
        period: null,
        amount_cents: 12_345,
        payment_purpose: 'paygo',
        description: 'Premium',
        bank_account_id: idOf(9, 0),
        account: {
          account_ref: 'ach-account/bench',
          fingerprint: idOf(9, 0),
          account_last4: '6789',
          account_type: 'checking',
        },
        effective_date: '2026-11-04',
        metadata: {},
        settlement_type: null,
        cancellation_deadline: null,
        ingested_at: AT,
        created_at: AT,
      })
      await log.append(streamOf(bankDebit, leg_id), -1, [registry.encode(created, METADATA)])
    })
    await throughput(to - from, AT_ONCE, async (index) => {
      const n = from + index
      const [file_id, entries_id] = [idOf(7, n), idOf(8, n)]
      const ids = Array.from({ length: EACH }, (_, nth) => debitOf(n * EACH + nth))
      const [first_trace, last_trace] = [traceOf(n * EACH), traceOf((n + 1) * EACH - 1)]
      const total = EACH * 12_345
      const begun = BankFileBegun.of({
        file_id,
        batch_closes_at: AT,
        part: n,
        file_date: '2026-11-02',
        file_time: '1200',
        modifier: 'A',
        first_sequence: n * EACH + 1,
        count: EACH,
        at: AT,
      })
      const recorded = BankFileRecorded.of({
        file_id,
        name: fileNameOf(n),
        sha256: SHA256,
        bytes: 940,
        first_trace,
        last_trace,
        batches: [
          {
            batch_number: 1,
            description: 'PREMIUM',
            entry_date: '2026-11-04',
            service_class: 225,
            entries: EACH,
            debit_cents: total,
            credit_cents: 0,
          },
        ],
        debit_cents: total,
        credit_cents: 0,
        entries_id,
        at: AT,
      })
      const entries = BankFileEntriesRecorded.of({
        entries_id,
        file_id,
        sha256: SHA256,
        batch_number: 1,
        kind: 'debit',
        entry_date: '2026-11-04',
        first_trace,
        ids,
        amounts_cents: ids.map(() => 12_345),
      })
      await log.append(streamOf(bankFileEntries, entries_id), -1, [registry.encode(entries, METADATA)])
      await log.append(
        streamOf(bankFile, file_id),
        -1,
        [begun, recorded].map((event) => registry.encode(event, METADATA)),
      )
    })
  } finally {
    await close()
  }
}

/**
 * Writes the rows that the projections would build from the debits and files behind the first file, as copies of its rows,
 * and has every read model be at the head of the log: applying a million events takes longer than all searches. The
 * service is stopped.
 * @param files with the first one.
 */
export async function fillReadModels(url: string, files: number): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(
      copiesSql('bank_debits', 'leg_id', `generate_series(${EACH}, ${files * EACH - 1}) AS n`, {
        leg_id: idSql(6),
        seq: 'n',
      }),
      [debitOf(0)],
    )
    await client.query(
      copiesSql('bank_files', 'file_id', `generate_series(1, ${files - 1}) AS n`, {
        file_id: idSql(7),
        entries_id: idSql(8),
        name: `'ACH-BENCH-' || lpad(n::text, 7, '0') || '.txt'`,
        first_trace: `'${ODFI}' || lpad((n * ${EACH} + 1)::text, 7, '0')`,
        last_trace: `'${ODFI}' || lpad(((n + 1) * ${EACH})::text, 7, '0')`,
        seq: 'n',
      }),
      [idOf(7, 0)],
    )
    await client.query(
      copiesSql(
        'bank_file_traces',
        'file_id',
        `generate_series(1, ${files - 1}) AS n,
         generate_series((n * ${EACH} + 1) / 1000, (n + 1) * ${EACH} / 1000) AS thousand`,
        { file_id: idSql(7), block: `'${ODFI}' || lpad(thousand::text, 4, '0')` },
      ),
      [idOf(7, 0)],
    )
    await client.query(
      copiesSql('search_names', 'id', `generate_series(1, ${files - 1}) AS n`, {
        id: idSql(7),
        name: `'ach-bench-' || lpad(n::text, 7, '0') || '.txt'`,
      }),
      [idOf(7, 0)],
    )
    await client.query(
      `UPDATE runtime.projections SET position = (SELECT max(position) FROM event_log.events) WHERE role = 'live'`,
    )
    await client.query('VACUUM (ANALYZE)')
  } finally {
    await client.end()
  }
}

/** Copies of the row with the key $1, for each `n`, with other values in some columns. */
function copiesSql(
  table: string,
  key: string,
  numbers: string,
  values: Readonly<Record<string, string>>,
): string {
  const changes = Object.entries(values).map(([column, value]) => `'${column}', ${value}`)
  return `INSERT INTO read_model.${table}
    SELECT copy.* FROM read_model.${table} AS original, ${numbers},
      jsonb_populate_record(original, jsonb_build_object(${changes.join(', ')})) AS copy
    WHERE original.${key} = $1`
}

/** {@link idOf} of `n`. */
function idSql(kind: number): string {
  return `lpad(to_hex(${kind * 2 ** 40} + n::bigint), 24, '0')`
}
