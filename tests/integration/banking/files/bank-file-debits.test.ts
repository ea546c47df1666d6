import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { disabledBy } from '../../../../application/banking/accounts/disabled-numbers.ts'
import { keepAchAccount } from '../../../../application/banking/accounts/payer-accounts.ts'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { applyByHand, returnByHand } from '../../../../application/banking/files/apply-by-hand.ts'
import { archivedReport } from '../../../../application/banking/files/file-references.ts'
import { readReport } from '../../../../application/banking/files/read-reports.ts'
import { reportAnswer, reportInFile } from '../../../../application/banking/files/report-to-debits.ts'
import { reportIdOf } from '../../../../application/banking/files/take-reports.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { UnreadableEvent } from '../../../../application/commands/event-registry.ts'
import { achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { type BankDebitCommand, bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { BankDebitReturned } from '../../../../domain/banking/debits/bank-debit-events.ts'
import { bankFile } from '../../../../domain/banking/files/bank-file.ts'
import type { BankFileData } from '../../../../domain/banking/files/bank-file-events.ts'
import { bankReport } from '../../../../domain/banking/files/bank-report.ts'
import { LIMITS } from '../../../../domain/banking/files/nacha/draft.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { EncryptedBankArchive } from '../../../../infrastructure/providers/bank/nacha/archive.ts'
import { NachaFolders } from '../../../../infrastructure/providers/bank/nacha/folders.ts'
import { bankAccounts } from '../../../../projections/banking/accounts/bank-accounts.ts'
import { bankFiles } from '../../../../projections/banking/files/bank-files.ts'
import type { Projections } from '../../../../projections/runtime/projections.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import { recordBankFile } from '../../../support/bank-files.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { gate } from '../../../support/gate.ts'
import { answersFile, ORIGINATOR, reportFile } from '../../../support/nacha-files.ts'
import { workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  waitingBefore,
  withReadModels,
} from '../../../support/registrations.ts'
import { newId } from '../../../support/webhooks.ts'

/** What debits hear of the file that their entries stand in. */

const DAY = 86_400_000
let database: TestDatabase
let process: RegistrationProcess
let projections: Projections
let app: Application

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  ;({ app, projections } = await withReadModels(process, [bankFiles, bankAccounts]))
})
afterAll(async () => {
  await projections?.stop()
  await process?.bench.close()
  await database?.drop()
})

const { signal } = new AbortController()
const stateOf = async (debitId: string) => (await app.commands.load(bankDebit, debitId)).state!
const carryOut = async (debitId: string, ...commands: readonly BankDebitCommand[]) => {
  for (const command of commands) {
    accepted(await app.commands.execute(bankDebit, debitId, command, operatorContext()))
  }
  return stateOf(debitId)
}

/** A debit in a batch. */
async function scheduled(): Promise<string> {
  const at = app.clock.now()
  const data = debitData(at)
  await carryOut(data.leg_id, { type: 'Create', data }, { type: 'Schedule', at })
  return data.leg_id
}

/** A file with the entries of debits, of the batch that they are in. */
async function fileOf(
  debitIds: readonly [string, ...string[]],
  originator?: BankFileData<'BankFileRecorded'>['originator'],
): Promise<string> {
  const { batch_closes_at } = await stateOf(debitIds[0])
  const file = { file_id: newId(), batch_closes_at: batch_closes_at! }
  await recordBankFile(app, file, debitIds, originator && { originator })
  return file.file_id
}
const answered = (file_id: string, outcome: 'accepted' | 'rejected', on = app) =>
  reportAnswer(on, { file_id, batch_numbers: [1], outcome, reason: null }, operatorContext(), signal)

test('one that came back and was presented again is told nothing more of its first file', async () => {
  const debitId = await scheduled()
  const file = await fileOf([debitId])
  const at = app.clock.now()
  const again = await carryOut(
    debitId,
    { type: 'Return', return_code: 'R01', at },
    { type: 'Represent', note: null, at: at + 7 * DAY },
  )
  await reportInFile(app, file, operatorContext(), signal)
  for (const outcome of ['accepted', 'rejected'] as const) await answered(file, outcome)
  expect(await stateOf(debitId)).toEqual(again)
})

test('one that hears of the answer first goes with the day and the number in its file', async () => {
  const debitId = await scheduled()
  const file = await fileOf([debitId])
  await answered(file, 'accepted')
  await reportInFile(app, file, operatorContext(), signal)
  const entry = { in_file: { file_id: file, trace_number: '021000020000001' }, entry_date: '2026-12-02' }
  expect(await stateOf(debitId)).toMatchObject({ status: 'submitted', ...entry })
  const stored = await app.log.readStream(`bankDebit-${debitId}`)
  expect(stored.slice(2).map(({ type }) => type)).toEqual(['BankDebitInFile', 'BankDebitSubmitted'])
  expect(JSON.parse(stored.at(-1)!.data)).toMatchObject({ effective_date: '2026-12-02' })
})

test('one that cannot be read holds up no other of its file', async () => {
  const [first, broken, last] = [await scheduled(), newId(), await scheduled()]
  await app.log.append(`bankDebit-${broken}`, -1, [
    { type: 'NoSuchEvent', data: '{}', metadata: '{"schema_version":1}' },
  ])
  const file = await fileOf([first, broken, last])
  await expect(reportInFile(app, file, operatorContext(), signal)).rejects.toThrow(UnreadableEvent)
  expect(await Promise.all([first, last].map(stateOf))).toMatchObject([
    { in_file: { trace_number: '021000020000001' } },
    { in_file: { trace_number: '021000020000003' } },
  ])
  await expect(answered(file, 'accepted')).rejects.toThrow(UnreadableEvent)
  expect(await Promise.all([first, last].map(stateOf))).toMatchObject([
    { status: 'submitted' },
    { status: 'submitted' },
  ])
})

/** Has reports read as an originator's. */
function reading(originator: typeof ORIGINATOR, commands = app.commands) {
  const archive = new EncryptedBankArchive(process.bench.database.pool, app.vault)
  const folders = new NachaFolders({ outboxDir: '/nowhere', inboxDir: '/nowhere' })
  const on = { ...app, commands, bankFiles: { folders, archive, originator, limits: LIMITS } }
  return async (text: string) => {
    const content = Buffer.from(text)
    const sha256 = createHash('sha256').update(content).digest('hex')
    const report_id = reportIdOf(sha256)
    await archive.write(
      archivedReport(report_id),
      (async function* () {
        yield content
      })(),
    )
    const data = { report_id, name: 'report', sha256, bytes: content.length }
    const receive = { type: 'Receive', data, at: app.clock.now() } as const
    accepted(await app.commands.execute(bankReport, report_id, receive, operatorContext()))
    await readReport(on, report_id, operatorContext(), signal)
    return (await app.commands.load(bankReport, report_id)).state!
  }
}

test('what a bank reports is of whom and for whom its file was written, whatever is set since', async () => {
  const debitId = await scheduled()
  const written = { destination_routing: '021000021', origin_id: '1234567890', company_id: '1234567890' }
  const file_id = await fileOf([debitId], written)
  accepted(await app.commands.execute(bankFile, file_id, { type: 'RecordExposed', at: 0 }, operatorContext()))
  const originator = {
    ...ORIGINATOR,
    destinationRouting: '091000019',
    odfi: '09100001',
    originId: '9999999999',
    companyId: '9999999999',
  }
  const read = reading(originator)
  const back = { code: 'R01', originalTrace: '021000020000001', amountCents: 500 }
  const answer = { file: 'a.ach', outcome: 'accepted' }
  const refused = (refusal: string) => ({ status: 'refused', refusal: expect.stringContaining(refusal) })
  expect(await read(reportFile([back], { origin: '011000015' }))).toMatchObject(refused('of another bank'))
  expect(await read(reportFile([back], { destination: '011000015' }))).toMatchObject(refused('somebody else'))
  expect(await read(answersFile([answer], '011000015'))).toMatchObject(refused('of another bank'))
  const { parked } = await read(reportFile([back], { companyId: '5555555555' }))
  expect(parked).toMatchObject([{ reason: 'Its batch is of another company' }])
  expect(await stateOf(debitId)).toMatchObject({ status: 'Scheduled' })
  const applied = { status: 'read', parked: [], counts: { items: 1, applied: 1 } }
  expect(await read(reportFile([back]))).toMatchObject(applied)
  expect(await stateOf(debitId)).toMatchObject({ status: 'returned' })
})

test('one that came back disables the account of then, though a later report corrects it before anybody follows that', async () => {
  const [accountId, at] = [newId(), app.clock.now()]
  const place = { tenant_id: newId(), environment: 'live' } as const
  const numbers = { routingNumber: '021000021', accountNumber: '000123456789', bankName: null }
  const account = await keepAchAccount(
    app,
    { achAccountId: accountId, ownerId: accountId },
    { ...numbers, holderName: 'Tidewater Joinery LLC', accountType: 'checking' },
  )
  const owned = { owner_type: 'employer', owner_id: accountId, routing_last4: '0021' } as const
  const entered = { connection_type: 'manual', bank_account_id: null, verified: false } as const
  const named = { bank_name: 'First Bank', nickname: null, is_primary: false, created_at: isoTime(at) }
  const created = { ach_account_id: accountId, ...place, ...owned, ...entered, ...named, account }
  accepted(
    await app.commands.execute(achAccount, accountId, { type: 'Create', data: created }, operatorContext()),
  )
  const data = debitData(at, { ...place, bank_account_id: accountId, account })
  const { leg_id } = data
  const { batch_closes_at } = await carryOut(leg_id, { type: 'Create', data }, { type: 'Schedule', at })
  const fileId = await fileOf([leg_id])
  const { fingerprint } = account
  const entry = { fileId, traceNumber: '021000020000001', entryDate: '2026-12-02', fingerprint }
  await carryOut(leg_id, { type: 'PutInFile', ofBatch: batch_closes_at!, ...entry, at })

  const read = reading(ORIGINATOR)
  const originalTrace = entry.traceNumber
  await read(reportFile([{ code: 'R02', originalTrace, amountCents: 500 }]))
  await read(reportFile([{ code: 'C01', originalTrace, correctedData: '70700070799' }]))
  const returned = (await app.log.readStream(`bankDebit-${leg_id}`)).at(-1)!
  const payload = BankDebitReturned.schema.parse(JSON.parse(returned.data))
  await bankDebits(app, 60_000).work['disable-account'].run(workItem({ key: leg_id, payload }))
  const { state } = await app.commands.load(achAccount, accountId)
  expect(state).toMatchObject({ status: 'disabled', return_code: 'R02', account: { account_last4: '0799' } })
  // of what it has since the return says nothing
  expect(await disabledBy(app, place, [account])).toBe('R02')
  expect(await disabledBy(app, place, [state!.account])).toBeNull()
})

test('of two answers about one batch the first in the report counts, however long its file takes to be read', async () => {
  const [first, second] = [await scheduled(), await scheduled()]
  const { batch_closes_at } = await stateOf(first)
  const file_id = newId()
  const name = `20261201-A-${file_id}.ach`
  await recordBankFile(app, { file_id, batch_closes_at: batch_closes_at! }, [first], {
    name,
    others: [second],
  })
  for (const type of ['RecordExposed', 'RecordFetched'] as const) {
    accepted(await app.commands.execute(bankFile, file_id, { type, at: 0 }, operatorContext()))
  }
  // the first look at the file ends when something has come of the second, if that is asked for beside it
  const slow: typeof app.commands = Object.create(app.commands)
  const { opened, open } = gate()
  let looks = 0
  slow.load = async (...asked) => {
    if ((asked[0] as unknown) === bankFile) {
      looks += 1
      const isFirst = looks === 1
      await Promise.resolve()
      if (isFirst && looks > 1) await opened
    }
    return app.commands.load(...asked)
  }
  slow.execute = async (...asked) => {
    const outcome = await app.commands.execute(...asked)
    if ((asked[0] as unknown) === bankFile) open()
    return outcome
  }
  const answers = [
    { file: name, outcome: 'accepted' },
    { file: name, batch: 2, outcome: 'rejected' },
  ]
  const { parked } = await reading(ORIGINATOR, slow)(answersFile(answers))
  expect(parked).toMatchObject([{ line: 3, reason: expect.stringContaining('was accepted before') }])
  const { state } = await app.commands.load(bankFile, file_id)
  expect(state!.batches.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted'])
})

test('of two items that are applied to one debit at the same time the slower one is parked again', async () => {
  const debitId = await scheduled()
  const file_id = await fileOf([debitId])
  await reportInFile(app, file_id, operatorContext(), signal)
  for (const type of ['RecordExposed', 'RecordFetched'] as const) {
    accepted(await app.commands.execute(bankFile, file_id, { type, at: 0 }, operatorContext()))
  }
  const unknown = { code: 'R02', originalTrace: '0'.repeat(15), amountCents: 500 }
  const { report_id, parked } = await reading(ORIGINATOR)(reportFile([unknown, { ...unknown, code: 'R03' }]))
  const [first, second] = parked.map(({ line, code }) => {
    return { line, transaction_id: debitId, return_code: code!, reason: 'its letter' }
  })
  const slow = waitingBefore(app, 'bankReport')
  const later = applyByHand(slow.app, report_id, second!, operatorContext())
  await slow.arrived
  accepted(await applyByHand(app, report_id, first!, operatorContext()))
  slow.goOn()
  expect(await later).toMatchObject({ kind: 'conflict', code: 'debit_returned' })
  // whoever finishes what a dead call began finds it done
  expect(await returnByHand(app, report_id, second!, operatorContext())).toMatchObject({ kind: 'conflict' })
  const { state } = await app.commands.load(bankReport, report_id)
  expect(state).toMatchObject({
    counts: { applied: 1 },
    applied: [{ line: first!.line }],
    parked: [{ line: second!.line, reason: expect.stringContaining('The debit is returned') }],
    calls_for_person: true,
  })
  expect(await stateOf(debitId)).toMatchObject({ return_code: 'R02' })
})

test('one whose file nobody has fetched is not returned by hand: it would go out all the same', async () => {
  const debitId = await scheduled()
  const file_id = await fileOf([debitId])
  await reportInFile(app, file_id, operatorContext(), signal)
  const unknown = { code: 'R02', originalTrace: '0'.repeat(15), amountCents: 500 }
  const { report_id, parked } = await reading(ORIGINATOR)(reportFile([unknown]))
  const item = { line: parked[0]!.line, transaction_id: debitId, return_code: 'R02', reason: 'its letter' }
  const apply = () => applyByHand(app, report_id, item, operatorContext())
  const changeFile = async (type: 'RecordExposed' | 'RecordFetched') =>
    accepted(await app.commands.execute(bankFile, file_id, { type, at: 0 }, operatorContext()))
  expect(await apply()).toMatchObject({ kind: 'conflict', code: 'bank_file_recorded' })
  await changeFile('RecordExposed')
  expect(await apply()).toMatchObject({ kind: 'conflict', code: 'bank_file_exposed' })
  expect(await stateOf(debitId)).toMatchObject({ status: 'Scheduled' })
  await changeFile('RecordFetched')
  expect(accepted(await apply()).applied).toMatchObject([{ transaction_id: debitId }])
  expect(await stateOf(debitId)).toMatchObject({ status: 'returned', return_code: 'R02' })
})
