import {
  bankFiles as files,
  bankReports as reports,
  traceBlock,
  bankFileTraces as traces,
} from '../../../application/banking/files/bank-files-table.ts'
import { HAD_BY_WHO_ANSWERS } from '../../../domain/banking/files/bank-file.ts'
import {
  BankFileAnswered,
  BankFileBegun,
  BankFileExposed,
  BankFileExposureRepeated,
  BankFileFetched,
  BankFileRecorded,
  BankFileRestaged,
  BankFileTreatedAsSent,
  BankFileUncertain,
} from '../../../domain/banking/files/bank-file-events.ts'
import {
  BankReportItemApplied,
  BankReportItemResolved,
  BankReportItemsParked,
  BankReportRead,
  BankReportReadAgain,
  BankReportReceived,
  BankReportRefused,
} from '../../../domain/banking/files/bank-report.ts'
import { projection } from '../../runtime/projection.ts'

const ofFile = ({ data }: { data: { file_id: string } }) => ({ bank_files: [[data.file_id]] }) as const
const ofReport = ({ data }: { data: { report_id: string } }) =>
  ({ bank_reports: [[data.report_id]] }) as const

/** Blocks of the trace numbers from the first to the last one: they begin with one bank, as all of a file do. */
function* blocksOf(first: string, last: string): Generator<string> {
  const [bank, from] = [first.slice(0, BANK_DIGITS), traceBlock(first).slice(BANK_DIGITS)]
  const to = Number(traceBlock(last).slice(BANK_DIGITS))
  for (let block = Number(from); block <= to; block += 1)
    yield bank + String(block).padStart(from.length, '0')
}
const BANK_DIGITS = 8

/** Files for banks and from them, as they are listed and found by the trace numbers in them. */
export const bankFiles = projection({
  name: 'bank-files',
  version: 6,
  tables: [files, traces, reports],
  handlers: (on) => [
    on(BankFileBegun, {
      apply({ data: { file_id, batch_closes_at, at }, position }, { bank_files }) {
        bank_files.put({
          file_id,
          batch_closes_at,
          recorded_at: at,
          seq: position,
          status: 'begun',
          answer: 'none',
          entries_id: '',
          name: '',
          outcomes: {},
          first_trace: '',
          last_trace: '',
          odfi: '',
          debit_cents: 0,
          credit_cents: 0,
        })
      },
    }),
    on(BankFileRecorded, {
      reads: ofFile,
      apply({ data, position }, { bank_files, bank_file_traces }) {
        const { file_id, entries_id, name, first_trace, last_trace, debit_cents, credit_cents, at } = data
        const outcomes = Object.fromEntries(data.batches.map(({ batch_number }) => [batch_number, null]))
        bank_files.change([file_id], {
          entries_id,
          name,
          first_trace,
          last_trace,
          debit_cents,
          credit_cents,
          outcomes,
          odfi: first_trace.slice(0, 8),
          ...data.originator,
          status: 'recorded',
          recorded_at: at,
          seq: position,
        })
        for (const block of blocksOf(first_trace, last_trace)) bank_file_traces.put({ block, file_id })
      },
    }),
    ...(
      [
        [BankFileExposed, 'exposed'],
        [BankFileFetched, 'fetched'],
        [BankFileUncertain, 'uncertain'],
        [BankFileExposureRepeated, 'repeating'],
        [BankFileRestaged, 'recorded'],
        [BankFileTreatedAsSent, 'sent'],
      ] as const
    ).map(([type, status]) =>
      on(type, {
        reads: ofFile,
        apply: ({ data }, { bank_files }) => bank_files.change([data.file_id], { status }),
      }),
    ),
    on(BankFileAnswered, {
      reads: ofFile,
      apply({ data: { file_id, batch_numbers, outcome } }, { bank_files }) {
        const before = bank_files.get(file_id)!
        const outcomes = { ...before.outcomes, ...Object.fromEntries(batch_numbers.map((n) => [n, outcome])) }
        const isWhole = Object.values(outcomes).every((one) => one === outcome)
        bank_files.change([file_id], {
          outcomes,
          answer: isWhole ? outcome : 'partly',
          // an answer proves that the bank has it, however it was fetched
          ...(HAD_BY_WHO_ANSWERS.has(before.status) && { status: 'sent' as const }),
        })
      },
    }),
    on(BankReportReceived, {
      apply({ data: { report_id, name, at }, position }, { bank_reports }) {
        const none = { items: 0, applied: 0, repeated: 0, parked: 0 }
        bank_reports.put({ report_id, name, status: 'received', ...none, received_at: at, seq: position })
      },
    }),
    on(BankReportRefused, {
      reads: ofReport,
      apply: ({ data: { report_id, reason: refusal } }, { bank_reports }) =>
        bank_reports.change([report_id], { status: 'refused', refusal }),
    }),
    on(BankReportRead, {
      reads: ofReport,
      apply({ data: { report_id, format, items, applied, repeated, parked } }, { bank_reports }) {
        bank_reports.change([report_id], { status: 'read', format, items, applied, repeated, parked })
      },
    }),
    // what is parked while the file is read is counted once it is read; what was applied is parked again
    on(BankReportItemsParked, {
      reads: ofReport,
      apply({ data: { report_id, items } }, { bank_reports }) {
        const { status, applied, parked } = bank_reports.get(report_id)!
        if (status !== 'read') return
        const again = items.length
        bank_reports.change([report_id], { applied: applied - again, parked: parked + again })
      },
    }),
    on(BankReportReadAgain, {
      reads: ofReport,
      apply: ({ data }, { bank_reports }) =>
        bank_reports.change([data.report_id], { status: 'received', refusal: null, parked: 0 }),
    }),
    on(BankReportItemResolved, {
      reads: ofReport,
      apply({ data: { report_id } }, { bank_reports }) {
        bank_reports.change([report_id], { parked: bank_reports.get(report_id)!.parked - 1 })
      },
    }),
    on(BankReportItemApplied, {
      reads: ofReport,
      apply({ data: { report_id, was_resolved } }, { bank_reports }) {
        const { applied, parked } = bank_reports.get(report_id)!
        bank_reports.change([report_id], { applied: applied + 1, parked: was_resolved ? parked : parked - 1 })
      },
    }),
  ],
})
