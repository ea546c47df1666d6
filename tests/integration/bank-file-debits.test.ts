import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Application } from '../../application/application.ts'
import { tellAnswer, tellInFile } from '../../application/banking/bank-files/tell-debits.ts'
import { UnreadableEvent } from '../../application/event-registry.ts'
import { type BankDebitCommand, bankDebit } from '../../domain/banking/bank-debit.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { recordBankFile } from '../support/bank-files.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../support/registrations.ts'
import { newId } from '../support/webhooks.ts'

/** What debits are told of the file that their entries stand in. */

const DAY = 86_400_000
let database: TestDatabase
let process: RegistrationProcess
let app: Application

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  app = process.app
})
afterAll(async () => {
  await process?.bench.close()
  await database?.drop()
})

const { signal } = new AbortController()
const stateOf = async (leg: string) => (await app.commands.load(bankDebit, leg)).state!
const tell = async (leg: string, ...commands: readonly BankDebitCommand[]) => {
  for (const command of commands) {
    accepted(await app.commands.execute(bankDebit, leg, command, operatorContext()))
  }
  return stateOf(leg)
}

/** A debit in a batch. */
async function scheduled(): Promise<string> {
  const leg_id = newId()
  const at = app.clock.now()
  const account = { account_ref: 'x', fingerprint: leg_id, account_last4: '6789' }
  const data = {
    ...({ leg_id, tenant_id: leg_id, environment: 'live', employer_id: leg_id, carrier_id: leg_id } as const),
    ...({ policy_id: leg_id, source: 'api', payment_purpose: 'paygo', amount_cents: 500 } as const),
    ...{ payment_session_id: null, installment_number: null, collection_id: null, file_id: null },
    ...{ check_date: null, period: null, description: null, bank_account_id: newId(), effective_date: null },
    account: { ...account, account_type: 'checking' as const },
    ...{ metadata: {}, settlement_type: null, cancellation_deadline: null },
    ...{ ingested_at: isoTime(at), created_at: isoTime(at) },
  }
  await tell(leg_id, { type: 'Create', data }, { type: 'Schedule', at })
  return leg_id
}

/** A file with the entries of debits, of the batch that they are in. */
async function fileOf(legs: readonly [string, ...string[]]): Promise<string> {
  const { batch_closes_at } = await stateOf(legs[0])
  const file = { file_id: newId(), batch_closes_at: batch_closes_at! }
  await recordBankFile(app, file, legs)
  return file.file_id
}
const answered = (file_id: string, outcome: 'accepted' | 'rejected', on = app) =>
  tellAnswer(on, { file_id, batch_numbers: [1], outcome, reason: null }, operatorContext(), signal)

test('one that came back and was presented again is told nothing more of its first file', async () => {
  const leg = await scheduled()
  const file = await fileOf([leg])
  const at = app.clock.now()
  const again = await tell(
    leg,
    { type: 'Return', returnCode: 'R01', at },
    { type: 'Represent', note: null, at: at + 7 * DAY },
  )
  await tellInFile(app, file, operatorContext(), signal)
  for (const outcome of ['accepted', 'rejected'] as const) await answered(file, outcome)
  expect(await stateOf(leg)).toEqual(again)
})

test('one that hears of the answer first goes with the day and the number in its file', async () => {
  const leg = await scheduled()
  const file = await fileOf([leg])
  await answered(file, 'accepted')
  await tellInFile(app, file, operatorContext(), signal)
  const entry = { in_file: { file_id: file, trace_number: '021000020000001' }, entry_date: '2026-12-02' }
  expect(await stateOf(leg)).toMatchObject({ status: 'submitted', ...entry })
  const stored = await app.log.readStream(`bankDebit-${leg}`)
  expect(stored.slice(2).map(({ type }) => type)).toEqual(['BankDebitInFile', 'BankDebitSubmitted'])
  expect(JSON.parse(stored.at(-1)!.data)).toMatchObject({ effective_date: '2026-12-02' })
})

test('one that cannot be read holds up no other of its file', async () => {
  const [first, broken, last] = [await scheduled(), newId(), await scheduled()]
  await app.log.append(`bankDebit-${broken}`, -1, [
    { type: 'NoSuchEvent', data: '{}', metadata: '{"schema_version":1}' },
  ])
  const file = await fileOf([first, broken, last])
  await expect(tellInFile(app, file, operatorContext(), signal)).rejects.toThrow(UnreadableEvent)
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
