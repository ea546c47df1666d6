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
import { changing, projection } from '../../runtime/projection.ts'

const ofFile = changing(files)
const ofReport = changing(reports)

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
      reads: ({ data }) => ({ bank_files: [[data.file_id]] }),
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
    ).map(([type, status]) => ofFile(type, () => ({ status }))),
    ofFile(BankFileAnswered, ({ data: { batch_numbers, outcome } }, before) => {
      const outcomes = { ...before!.outcomes, ...Object.fromEntries(batch_numbers.map((n) => [n, outcome])) }
      const isWhole = Object.values(outcomes).every((one) => one === outcome)
      return {
        outcomes,
        answer: isWhole ? outcome : 'partly',
        // an answer proves that the bank has it, however it was fetched
        ...(HAD_BY_WHO_ANSWERS.has(before!.status) && { status: 'sent' as const }),
      }
    }),
    on(BankReportReceived, {
      apply({ data: { report_id, name, at }, position }, { bank_reports }) {
        const none = { items: 0, applied: 0, repeated: 0, parked: 0 }
        bank_reports.put({ report_id, name, status: 'received', ...none, received_at: at, seq: position })
      },
    }),
    ofReport(BankReportRefused, ({ data }) => ({ status: 'refused', refusal: data.reason })),
    ofReport(BankReportRead, ({ data: { format, items, applied, repeated, parked } }) => ({
      status: 'read',
      format,
      items,
      applied,
      repeated,
      parked,
    })),
    // what is parked while the file is read is counted once it is read; what was applied is parked again
    ofReport(BankReportItemsParked, ({ data: { items } }, row) => {
      const { status, applied, parked } = row!
      return status === 'read' ? { applied: applied - items.length, parked: parked + items.length } : null
    }),
    ofReport(BankReportReadAgain, () => ({ status: 'received', refusal: null, parked: 0 })),
    ofReport(BankReportItemResolved, (_event, row) => ({ parked: row!.parked - 1 })),
    ofReport(BankReportItemApplied, ({ data: { was_resolved } }, row) => {
      const { applied, parked } = row!
      return { applied: applied + 1, parked: was_resolved ? parked : parked - 1 }
    }),
  ],
})
