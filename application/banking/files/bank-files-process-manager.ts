import { closeOf } from '../../../domain/banking/debits/banking-days.ts'
import { bankFile, firstDayOf } from '../../../domain/banking/files/bank-file.ts'
import {
  BankFileAnswered,
  BankFileExposureRepeated,
  BankFileRecorded,
} from '../../../domain/banking/files/bank-file-events.ts'
import {
  BankReportItemApplied,
  BankReportReadAgain,
  BankReportReceived,
} from '../../../domain/banking/files/bank-report.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { ProviderUnavailable } from '../../ports/provider.ts'
import { returnByHand } from './apply-by-hand.ts'
import { exposeFile } from './expose-files.ts'
import type { FileApp } from './file-app.ts'
import { readReport } from './read-reports.ts'
import { reportAnswer, reportInFile } from './report-to-debits.ts'

/** A file may have a hundred thousand entries. */
const LONG_MS = 600_000

/**
 * What follows from what happens to files for banks and from them: debits hear of their file and of the bank's answer, a
 * file is exposed again, a report is carried out, an item that was applied by hand returns its debit; a file that nobody
 * fetches or answers in time is overdue. One piece of each at a time, so that reports count in their order.
 */
export function bankFiles(app: Application) {
  const kind = { ...ofProvider, slots: 1, timeLimitMs: LONG_MS }
  return processManager({
    name: 'bank-files',
    startAt: 'beginning',
    on: [
      on(BankFileRecorded, ({ data: { file_id, batches } }) => {
        return [
          // also where it is never seen in its place: no debit of it may go another way
          perform('tell-debits', file_id, {}),
          perform('find-overdue', file_id, {}, { at: closeOf(firstDayOf({ batches })) }),
        ]
      }),
      on(BankFileExposureRepeated, ({ data }) => [perform('expose', data.file_id, {})]),
      on(BankFileAnswered, ({ data: { file_id, batch_numbers, outcome, reason } }) => [
        // a batch is answered once
        perform('tell-answer', `${file_id}/${batch_numbers[0]}`, { file_id, batch_numbers, outcome, reason }),
      ]),
      on(BankReportReceived, ({ data }) => [perform('read-report', data.report_id, {})]),
      on(BankReportReadAgain, ({ data }) => [perform('read-report', data.report_id, {})]),
      on(BankReportItemApplied, ({ data: { report_id, line, transaction_id, return_code } }) => [
        perform('return-debit', `${report_id}/${line}`, { report_id, line, transaction_id, return_code }),
      ]),
    ],
    work: {
      'find-overdue': work({}, async (item) => {
        const command = { type: 'RecordOverdue', at: app.clock.now() } as const
        const outcome = await app.commands.execute(bankFile, item.key, command, contextOf(item))
        if (isRejection(outcome)) return { outcome: 'stop', why: outcome.message }
      }),
      'tell-debits': work(kind, async (item) => {
        await reportInFile(app, item.key, contextOf(item), item.signal)
      }),
      'tell-answer': work(
        {
          ...kind,
          payload: BankFileAnswered.schema.pick({
            file_id: true,
            batch_numbers: true,
            outcome: true,
            reason: true,
          }),
        },
        async (item) => {
          await reportAnswer(app, item.payload, contextOf(item), item.signal)
        },
      ),
      expose: work(kind, (item) =>
        throughOutages(app, item, () => exposeFile(withFiles(app), item.key, contextOf(item))),
      ),
      // the call that applied the item returns its debit; this does it where that call died
      'return-debit': work(
        {
          payload: BankReportItemApplied.schema.pick({
            report_id: true,
            line: true,
            transaction_id: true,
            return_code: true,
          }),
        },
        async (item) => {
          const { report_id, line, transaction_id, return_code } = item.payload
          const applied = { line, transaction_id, return_code }
          // where the debit cannot come back any more, the item is parked again
          await returnByHand(app, report_id, applied, contextOf(item))
        },
      ),
      'read-report': work(kind, (item) =>
        throughOutages(app, item, () => readReport(withFiles(app), item.key, contextOf(item), item.signal)),
      ),
    },
  })
}

/** @throws ProviderUnavailable where files are not written any more: what is left of them waits. */
function withFiles(app: Application): Application & FileApp {
  const { bankFiles: files } = app
  if (files === null) throw new ProviderUnavailable('BANK_RAIL is not nacha', { nothingHappened: true })
  return { ...app, bankFiles: files }
}
