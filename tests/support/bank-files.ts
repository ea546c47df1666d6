import type { Application } from '../../application/commands/application.ts'
import { type BankFileCommand, bankFile, bankFileEntries } from '../../domain/banking/files/bank-file.ts'
import type { BankFileData } from '../../domain/banking/files/bank-file-events.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { accepted, operatorContext } from './registrations.ts'
import { newId } from './webhooks.ts'

/**
 * Has a file recorded that nobody wrote, with entries of 5 dollars that take effect on 2026-12-02.
 * @param others debits of a second batch.
 */
export async function recordBankFile(
  app: Pick<Application, 'commands' | 'clock'>,
  { file_id, batch_closes_at }: Pick<BankFileData<'BankFileBegun'>, 'file_id' | 'batch_closes_at'>,
  debitIds: readonly string[],
  {
    originator,
    others = [],
    name = 'a.ach',
  }: {
    readonly originator?: BankFileData<'BankFileRecorded'>['originator']
    readonly others?: readonly string[]
    readonly name?: string
  } = {},
): Promise<void> {
  const [at, sha256, first_trace, entries_id] = [
    ...[isoTime(app.clock.now()), '0'.repeat(64), '021000020000001', newId()],
  ] as [string, string, string, string]
  const numbers = { modifier: 'A', first_sequence: 1, count: Math.max(debitIds.length, 1) }
  const dated = { part: 0, file_date: '2026-12-01', file_time: '1701' }
  const begin = { type: 'Begin' as const, data: { file_id, batch_closes_at, ...dated, ...numbers, at } }
  const of = { batch_number: 1, entry_date: '2026-12-02' }
  const batch = { ...of, description: 'PREMIUM', service_class: 225, entries: numbers.count }
  const cents = { debit_cents: 500 * debitIds.length, credit_cents: 0 }
  const content = { name, sha256, bytes: 94, first_trace, last_trace: first_trace, entries_id, at }
  const batches = [
    { ...batch, ...cents },
    ...(others.length === 0 ? [] : [{ ...batch, ...cents, batch_number: 2 }]),
  ]
  const data = { file_id, ...content, batches, ...cents, ...(originator && { originator }) }
  const commands: readonly BankFileCommand[] = [begin, { type: 'Record', data }]
  accepted(await app.commands.execute(bankFile, file_id, commands, operatorContext()))
  if (debitIds.length === 0) return
  const chunk = { entries_id, file_id, sha256, ...of, kind: 'debit' as const, first_trace }
  const chunkOf = (ids: readonly string[]) => ({ ...chunk, ids: [...ids], amounts_cents: ids.map(() => 500) })
  const second = { ...chunkOf(others), batch_number: 2, first_trace: '021000020000002' }
  const chunks = [chunkOf(debitIds), ...(others.length === 0 ? [] : [second])]
  const entries = { type: 'RecordEntries' as const, chunks }
  accepted(await app.commands.execute(bankFileEntries, entries_id, entries, operatorContext()))
}
