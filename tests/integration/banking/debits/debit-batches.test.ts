import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { recordDisabled } from '../../../../application/banking/accounts/disabled-numbers.ts'
import { keepAccount } from '../../../../application/banking/accounts/payer-accounts.ts'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { raiseBatchHeldUp, submitBatch } from '../../../../application/banking/debits/debit-batches.ts'
import { representDebit } from '../../../../application/banking/files/bank-rail.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { UnreadableEvent } from '../../../../application/commands/event-registry.ts'
import type { BankAccount, BankRail } from '../../../../application/ports/bank-rail.ts'
import { ProviderRefused } from '../../../../application/ports/provider.ts'
import { bankDebit, processedFrom } from '../../../../domain/banking/debits/bank-debit.ts'
import type { BankDebitData } from '../../../../domain/banking/debits/bank-debit-events.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { paymentSession } from '../../../../domain/payments/sessions/payment-session.ts'
import { SimulatedBankRail } from '../../../../infrastructure/providers/bank/simulated.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { expectAlertedOnce, workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../../../support/registrations.ts'
import { sessionData } from '../../../support/session-data.ts'
import { newId } from '../../../support/webhooks.ts'

const { signal } = new AbortController()
let database: TestDatabase
let process: RegistrationProcess
let app: Application
/** What the read model finds in the batch, and what the bank is handed. */
const found: { leg_id: string; tenant_id: string; seq: number }[] = []
const handedOver: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  app = {
    ...process.app,
    read: { query: async () => found as never } as Application['read'],
    bankRails: both({
      kind: 'simulated',
      async submit({ entries, refuse }) {
        handedOver.length = 0
        for await (const page of entries) {
          for (const entry of page) {
            if (entry.refusal === null) handedOver.push(entry.debitId)
            else await refuse(entry, entry.refusal)
          }
        }
      },
      sendMicroDeposits: async () => undefined,
    }),
  }
})
afterAll(async () => {
  await process?.bench.close()
  await database?.drop()
})

beforeEach(() => {
  found.length = 0
})

const both = (rail: BankRail) => ({ live: rail, sandbox: rail })
const typesOf = async (debitId: string) =>
  (await app.log.readStream(`bankDebit-${debitId}`)).map(({ type }) => type)

const account: BankAccount = {
  holderName: 'Tidewater Joinery LLC',
  routingNumber: '021000021',
  accountNumber: '000123456789',
  accountType: 'checking',
  bankName: null,
}

/** A debit in a batch. @returns when that closes, epoch milliseconds. */
async function scheduled(
  debitId: string,
  isKept: boolean,
  of: Partial<BankDebitData<'BankDebitCreated'>> = {},
): Promise<number> {
  const owner = newId()
  const kept = await keepAccount(app, { payment_session_id: debitId, employer_id: owner }, account)
  const data = debitData(app.clock.now(), {
    leg_id: debitId,
    tenant_id: owner,
    source: 'session',
    employer_id: owner,
    payment_session_id: owner,
    payment_purpose: 'extra_payment',
    settlement_type: 'direct',
    account: isKept ? kept : { ...kept, account_ref: `${kept.account_ref}-lost` },
    bank_account_id: null,
    ...of,
  })
  accepted(await app.commands.execute(bankDebit, debitId, { type: 'Create', data }, operatorContext()))
  const schedule = { type: 'Schedule', at: app.clock.now() } as const
  const { state } = accepted(await app.commands.execute(bankDebit, debitId, schedule, operatorContext()))
  found.push({ leg_id: debitId, tenant_id: owner, seq: found.length + 1 })
  return Date.parse(state!.batch_closes_at!)
}

test('a debit whose account cannot be read has failed, once, and the others of its batch go', async () => {
  const [first, lost, last] = [newId(), newId(), newId()]
  const closesAt = await scheduled(first, true)
  await scheduled(lost, false)
  await scheduled(last, true)
  for (const _again of [1, 2]) {
    await submitBatch(app, closesAt, operatorContext(), new AbortController().signal)
    expect(handedOver).toEqual([first, last])
  }
  handedOver.length = 0
  const late = AbortSignal.abort(new Error('the time is up'))
  await expect(submitBatch(app, closesAt, operatorContext(), late)).rejects.toThrow('the time is up')
  expect(handedOver).toEqual([])
  const begun = ['BankDebitCreated', 'BankDebitScheduled']
  expect(await typesOf(lost)).toEqual([...begun, 'BankDebitLeftOut', 'BankDebitFailed'])
  expect(await typesOf(first)).toEqual(begun)
})

test('one whose numbers were disabled is refused at its hand-over, whoever gave them, but for other tenants', async () => {
  const [payers, installment, elsewhere] = [newId(), newId(), newId()]
  const tenant_id = newId()
  const closesAt = await scheduled(payers, true, { tenant_id })
  await scheduled(installment, true, { tenant_id, source: 'instalment' })
  await scheduled(elsewhere, true)
  const refusals = async () => {
    const got: (string | null)[] = []
    const rail: BankRail = {
      kind: 'simulated',
      async submit({ entries }) {
        got.length = 0
        for await (const page of entries) got.push(...page.map(({ refusal }) => refusal))
      },
      sendMicroDeposits: async () => undefined,
    }
    await submitBatch({ ...app, bankRails: both(rail) }, closesAt, operatorContext(), signal)
    return got
  }
  expect(await refusals()).toEqual([null, null, null])
  const { state } = await app.commands.load(bankDebit, payers)
  const place = { tenant_id, environment: 'live' } as const
  await recordDisabled(app, place, [state!.account], 'R10', operatorContext())
  const why = 'Its account is disabled (R10)'
  expect(await refusals()).toEqual([why, why, null])
})

test('an installment is refused at its hand-over, too, where an earlier version disabled its plan alone', async () => {
  const [debitId, id] = [newId(), newId()]
  const plan = { total_installments: 2, down_payment_cents: 0, per_installment_cents: 250 }
  const data = sessionData(app, id, { amount_cents: 0, plan: { ...plan, last_installment_cents: 250 } })
  const at = app.clock.now()
  const change = async (command: Parameters<typeof paymentSession.decide>[0]) =>
    accepted(await app.commands.execute(paymentSession, id, command, operatorContext()))
  await change({ type: 'Create', data, checkout: null })
  const kept = await keepAccount(app, data, account)
  await change({ type: 'ArrangeDebit', debitId: newId(), account: kept, at })
  const closesAt = await scheduled(debitId, true, { source: 'instalment', payment_session_id: id })
  await change({ type: 'RecordDebitReturned', debitId: newId(), return_code: 'R10', disables: true, at })
  await submitBatch(app, closesAt, operatorContext(), signal)
  expect([handedOver, (await typesOf(debitId)).at(-1)]).toEqual([[], 'BankDebitFailed'])
})

test('a batch whose bank is away for hours raises one alert, by its oldest debit, and goes when it is back', async () => {
  const [oldest, other] = [newId(), newId()]
  const closesAt = await scheduled(oldest, true)
  await scheduled(other, true)
  const begun = await typesOf(other)
  const away = { ...app, bankRails: both(new SimulatedBankRail({ faults: app.faults })) }
  const submit = bankDebits(away, 60_000).work['submit-batch']
  await expectAlertedOnce(app, {
    provider: 'bank-rail',
    since: closesAt,
    alert: {
      kind: 'debit_batch_held_up',
      about: { leg_id: oldest, batch_closes_at: isoTime(closesAt) },
    },
    // that its debits pass the gates once more is another test's
    attempt: (awaySince) =>
      submit.run(workItem({ key: isoTime(closesAt), payload: { is_gated: true }, awaySince })),
    types: () => typesOf(oldest),
  })
  expect(await typesOf(other)).toEqual(begun)
})

test('one that cannot be read holds up no other, nor does the sandbox', async () => {
  const [first, broken, last] = [newId(), newId(), newId()]
  const closesAt = await scheduled(first, true)
  await app.log.append(`bankDebit-${broken}`, -1, [
    { type: 'NoSuchEvent', data: '{}', metadata: '{"schema_version":1}' },
  ])
  found.unshift({ leg_id: broken, tenant_id: newId(), seq: 0 })
  await scheduled(last, true)
  const { live } = app.bankRails
  const refusing = new ProviderRefused('The bank refused the batch')
  const sandbox: BankRail = { ...live, submit: () => Promise.reject(refusing) }
  const submitting = submitBatch(
    { ...app, bankRails: { live, sandbox } },
    closesAt,
    operatorContext(),
    signal,
  )
  await expect(submitting).rejects.toThrow(UnreadableEvent)
  expect(handedOver).toEqual([first, last])

  const before = await app.log.head()
  await raiseBatchHeldUp(app, { closesAt, since: closesAt }, operatorContext())
  const [raised] = (await app.log.readAll({ after: before, maxCount: 1, types: ['AlertRaised'] })).events
  expect(JSON.parse(raised!.data)).toMatchObject({ about: { leg_id: broken } })
})

test('one that has left its batch since it was looked for is not handed over', async () => {
  const [gone, stays] = [newId(), newId()]
  const closesAt = await scheduled(gone, true)
  await scheduled(stays, true)
  const at = app.clock.now()
  const comeBack = { type: 'Return', return_code: 'R01', at } as const
  const represent = { type: 'Represent', note: null, at: closesAt } as const
  accepted(await app.commands.execute(bankDebit, gone, [comeBack, represent], operatorContext()))
  await submitBatch(app, closesAt, operatorContext(), signal)
  expect(handedOver).toEqual([stays])
})

test('one that was presented again is not processed at the time of its first entry, and waits for that of its second', async () => {
  const debitId = newId()
  const closesAt = await scheduled(debitId, true)
  const change = async (...commands: Parameters<typeof bankDebit.decide>[0][]) =>
    accepted(await app.commands.execute(bankDebit, debitId, commands, operatorContext())).state!
  const first = await change({ type: 'Acknowledge', at: closesAt })
  const again = await change(
    { type: 'Return', return_code: 'R01', at: closesAt },
    { type: 'Represent', note: null, at: closesAt },
    { type: 'Acknowledge', at: closesAt },
  )
  const [early, inTime] = [first, again].map(({ entry_date }) => processedFrom(entry_date!)) as [
    number,
    number,
  ]
  const { process } = bankDebits(app, 60_000).work
  const at = (dueAt: number) => process.run(workItem({ key: debitId, payload: {}, dueAt }))
  expect(await at(early)).toEqual({ outcome: 'again', at: inTime })
  expect((await typesOf(debitId)).at(-1)).toBe('BankDebitSubmitted')
  expect(await at(inTime)).toEqual({ outcome: 'done' })
  expect((await typesOf(debitId)).at(-1)).toBe('BankDebitProcessed')
})

test('one that came back for want of money is not presented again once its numbers are disabled', async () => {
  const debitId = newId()
  const at = await scheduled(debitId, true)
  const came: Parameters<typeof bankDebit.decide>[0][] = [
    { type: 'Acknowledge', at },
    { type: 'Return', return_code: 'R01', at },
  ]
  const { state } = accepted(await app.commands.execute(bankDebit, debitId, came, operatorContext()))
  await recordDisabled(app, state!, [state!.account], 'R02', operatorContext())
  expect(await representDebit(app, debitId, null, operatorContext())).toMatchObject({
    code: 'ach_account_disabled',
  })
})

test('what sandbox keys ask for goes to the rail of the sandbox alone', async () => {
  const debitIds = { live: newId(), sandbox: newId() }
  const closesAt = await scheduled(debitIds.live, true)
  await scheduled(debitIds.sandbox, true)
  const got: Record<string, string[]> = { live: [], sandbox: [] }
  const railOf = (environment: 'live' | 'sandbox'): BankRail => ({
    kind: 'simulated',
    async submit({ entries }) {
      for await (const page of entries) got[environment]!.push(...page.map(({ debitId }) => debitId))
    },
    sendMicroDeposits: async () => undefined,
  })
  const read = {
    // as the read model finds them, by their environment
    query: async (_statement: unknown, { environment }: { environment: 'live' | 'sandbox' }) => [
      { leg_id: debitIds[environment], seq: 1 },
    ],
  } as unknown as Application['read']
  const bankRails = { live: railOf('live'), sandbox: railOf('sandbox') }
  await submitBatch({ ...app, read, bankRails }, closesAt, operatorContext(), new AbortController().signal)
  expect(got).toEqual({ live: [debitIds.live], sandbox: [debitIds.sandbox] })
})
