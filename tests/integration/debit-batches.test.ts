import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Application } from '../../application/application.ts'
import { submitBatch } from '../../application/banking/debit-batches.ts'
import { keepAccount } from '../../application/banking/payer-accounts.ts'
import type { BankAccount } from '../../application/ports/bank-rail.ts'
import { isMovable } from '../../application/ports/clock.ts'
import { bankDebits } from '../../application/process-managers/bank-debits.ts'
import type { WorkItem } from '../../application/process-managers/runtime/process-manager.ts'
import { bankDebit } from '../../domain/banking/bank-debit.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { SimulatedBankRail } from '../../infrastructure/providers/bank/simulated.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../support/registrations.ts'
import { newId } from '../support/webhooks.ts'

const HOUR = 3_600_000
let database: TestDatabase
let process: RegistrationProcess
let app: Application
/** What the read model finds in the batch, and what the bank is handed. */
const found: { leg_id: string; seq: number }[] = []
const handedOver: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  app = {
    ...process.app,
    read: { query: async () => found as never } as Application['read'],
    bankRail: {
      kind: 'simulated',
      async submit({ entries }) {
        handedOver.length = 0
        for await (const page of entries) handedOver.push(...page.map(({ legId }) => legId))
      },
    },
  }
})
afterAll(async () => {
  await process?.bench.close()
  await database?.drop()
})

beforeEach(() => {
  found.length = 0
})

const typesOf = async (legId: string) =>
  (await app.log.readStream(`bankDebit-${legId}`)).map(({ type }) => type)

const account: BankAccount = {
  ...{ holderName: 'Tidewater Joinery LLC', routingNumber: '021000021', accountNumber: '000123456789' },
  ...{ accountType: 'checking', bankName: null },
}

/** A debit in a batch. @returns when that closes, epoch milliseconds. */
async function scheduled(legId: string, isKept: boolean): Promise<number> {
  const owner = newId()
  const kept = await keepAccount(app, { payment_session_id: legId, employer_id: owner }, account)
  const data = {
    ...({ leg_id: legId, tenant_id: owner, environment: 'live', source: 'session' } as const),
    ...{ employer_id: owner, carrier_id: owner, policy_id: owner, payment_session_id: owner },
    ...({ installment_number: null, amount_cents: 500, payment_purpose: 'extra_payment' } as const),
    ...({ description: null, settlement_type: 'direct', cancellation_deadline: null } as const),
    account: isKept ? kept : { ...kept, account_ref: `${kept.account_ref}-lost` },
    created_at: isoTime(app.clock.now()),
  }
  accepted(await app.commands.execute(bankDebit, legId, { type: 'Create', data }, operatorContext()))
  const schedule = { type: 'Schedule', at: app.clock.now() } as const
  const { state } = accepted(await app.commands.execute(bankDebit, legId, schedule, operatorContext()))
  found.push({ leg_id: legId, seq: found.length + 1 })
  return Date.parse(state!.batch_closes_at!)
}

test('a debit whose account cannot be read is left out of its batch, once, and the others go', async () => {
  const [first, lost, last] = [newId(), newId(), newId()]
  const closesAt = await scheduled(first, true)
  await scheduled(lost, false)
  await scheduled(last, true)
  for (const _again of [1, 2]) {
    await submitBatch(app, closesAt, operatorContext())
    expect(handedOver).toEqual([first, last])
  }
  expect(await typesOf(lost)).toEqual(['BankDebitCreated', 'BankDebitScheduled', 'BankDebitLeftOut'])
  expect(await typesOf(first)).toEqual(['BankDebitCreated', 'BankDebitScheduled'])
})

test('a batch whose bank is away for hours is told of once, by its oldest debit, and goes when it is back', async () => {
  const { clock, faults } = app
  if (!isMovable(clock)) throw new Error('the test moves the clock')
  const [oldest, other] = [newId(), newId()]
  const closesAt = await scheduled(oldest, true)
  await scheduled(other, true)
  const begun = ['BankDebitCreated', 'BankDebitScheduled']
  type Payload = { away_since?: number | undefined }
  const item = (payload: Payload): WorkItem<Payload> => ({
    ...{ processManager: 'bank-debits', kind: 'submit-batch', key: isoTime(closesAt), payload },
    ...{ attempt: 1, isLastTry: true, dueAt: closesAt, correlationId: 'test', causationId: 'test' },
    ...{ commandId: randomUUID(), tenantId: null, environment: null, signal: new AbortController().signal },
    freeKey: () => undefined,
  })
  const away = { ...app, bankRail: new SimulatedBankRail({ faults }) }
  const submit = bankDebits(away, 60_000).work['submit-batch']
  await faults.inject('bank-rail', 'unreachable', 100)
  let payload: Payload = {}
  for (const [hours, told] of [
    [0, 0],
    [3.9, 0],
    [4, 1],
    [5, 1],
  ] as const) {
    clock.moveTo(closesAt + hours * HOUR)
    const outcome = await submit.run(item(payload))
    expect(outcome).toMatchObject({ outcome: 'again', payload: { away_since: closesAt } })
    payload = (outcome as { payload: Payload }).payload
    expect([hours, await typesOf(oldest)]).toEqual([
      hours,
      [...begun, ...Array(told).fill('BankDebitHeldUp')],
    ])
  }
  await faults.inject('bank-rail', 'unreachable', 0)
  expect(await submit.run(item(payload))).toEqual({ outcome: 'done' })
  expect(await typesOf(other)).toEqual(begun)
})
