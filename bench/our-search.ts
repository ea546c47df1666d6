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

/** Streams that are stored at the same time. */
const AT_ONCE = 64
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

/** Stores debits and the files that they went in, evenly, straight into the log of a service that is stopped. */
export async function storeDebitsAndFiles(
  url: string,
  debits: number,
  files: number,
  { tenantId: tenant_id, employerId: employer_id, carrierId: carrier_id, policyId: policy_id }: Participants,
): Promise<void> {
  const { log, close } = await openOurLog({ url }, { isExclusive: true })
  const registry = new EventRegistry(aggregates)
  try {
    await throughput(debits, AT_ONCE, async (n) => {
      const created = BankDebitCreated.of({
        leg_id: debitOf(n),
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
      await log.append(streamOf(bankDebit, debitOf(n)), -1, [registry.encode(created, METADATA)])
    })
    const each = debits / files
    await throughput(files, AT_ONCE, async (n) => {
      const [file_id, entries_id] = [idOf(7, n), idOf(8, n)]
      const ids = Array.from({ length: each }, (_, index) => debitOf(n * each + index))
      const [first_trace, last_trace] = [traceOf(n * each), traceOf((n + 1) * each - 1)]
      const total = each * 12_345
      const begun = BankFileBegun.of({
        file_id,
        batch_closes_at: AT,
        part: n,
        file_date: '2026-11-02',
        file_time: '1200',
        modifier: 'A',
        first_sequence: n * each + 1,
        count: each,
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
            entries: each,
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
