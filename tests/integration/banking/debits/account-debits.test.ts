import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordDisabled } from '../../../../application/banking/accounts/disabled-numbers.ts'
import { keepAchAccount } from '../../../../application/banking/accounts/payer-accounts.ts'
import { createAccountDebit, failDebitsOf } from '../../../../application/banking/debits/account-debits.ts'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { submitBatch } from '../../../../application/banking/debits/debit-batches.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { SimulatedBankRail } from '../../../../infrastructure/providers/bank/simulated.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import { workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../../../support/registrations.ts'
import { newId } from '../../../support/webhooks.ts'

/** What becomes of debits whose account is disabled. */

let process: RegistrationProcess
let app: Application
/** What the read model finds. */
let found: readonly { leg_id: string; seq: number }[] = []

beforeAll(async () => {
  process = await openRegistrationProcess()
  app = { ...process.app, read: { query: async () => found as never } as Application['read'] }
})
afterAll(() => process?.bench.close())

async function account(): Promise<string> {
  const id = newId()
  const data = {
    ...({ ach_account_id: id, tenant_id: id, environment: 'live', owner_type: 'employer' } as const),
    owner_id: id,
    routing_last4: '0021',
    bank_name: 'First Bank',
    nickname: null,
    is_primary: false,
    ...({ connection_type: 'manual', bank_account_id: null, verified: false } as const),
    account: await keepAchAccount(
      app,
      { achAccountId: id, ownerId: id },
      {
        holderName: 'Tidewater Joinery LLC',
        routingNumber: '021000021',
        accountNumber: '000123456789',
        ...({ accountType: 'checking', bankName: null } as const),
      },
    ),
    created_at: isoTime(app.clock.now()),
  }
  accepted(await app.commands.execute(achAccount, id, { type: 'Create', data }, operatorContext()))
  return id
}
const disable = async (id: string) => {
  const { state } = await app.commands.load(achAccount, id)
  const { tenant_id, environment, account } = state!
  await recordDisabled(app, { tenant_id, environment }, [account], 'R02', operatorContext())
}

async function debit(bank_account_id: string, legId = newId()): Promise<string> {
  const {
    account: _,
    settlement_type: _type,
    ingested_at: _at,
    created_at: _created,
    ...data
  } = debitData(app.clock.now(), { leg_id: legId, tenant_id: bank_account_id, bank_account_id })
  await createAccountDebit(app, { ...data, bank_account_id }, operatorContext())
  return legId
}
const statusOf = async (legId: string) => (await app.commands.load(bankDebit, legId)).state?.status
const change = async (legId: string, command: Parameters<typeof bankDebit.decide>[0]) => {
  const { state } = accepted(await app.commands.execute(bankDebit, legId, command, operatorContext()))
  return state!
}
/** Hands a batch over a minute after its close. */
async function handOver(closesAt: number): Promise<void> {
  const rail = new SimulatedBankRail({ faults: { take: async () => null } })
  const clock = { ...app.clock, now: () => closesAt + 60_000 }
  const later = { ...app, bankRails: { live: rail, sandbox: rail }, clock }
  await submitBatch(later, closesAt, operatorContext(), new AbortController().signal)
}

test('those that no bank can have yet fail, and one that cannot be read holds up no other', async () => {
  const id = await account()
  const legs = [await debit(id), await debit(id), await debit(id), await debit(id)] as const
  const [waiting, scheduled, sent, last] = legs
  const at = app.clock.now()
  for (const leg of [scheduled, sent]) await change(leg, { type: 'Schedule', at })
  await change(sent, { type: 'Acknowledge', at })
  const broken = newId()
  await app.log.append(`bankDebit-${broken}`, -1, [
    { type: 'NoSuchEvent', data: '{}', metadata: '{"schema_version":1}' },
  ])
  found = [waiting, scheduled, broken, sent, last].map((leg_id, seq) => ({ leg_id, seq }))

  await disable(id)
  const failing = failDebitsOf(app, { accountId: id, returnCode: 'R02' }, operatorContext())
  await expect(failing).rejects.toThrow()
  expect(await Promise.all(legs.map(statusOf))).toEqual(['failed', 'failed', 'submitted', 'failed'])
  const [, failed] = await app.log.readStream(`bankDebit-${waiting}`)
  expect(failed!.data).toContain('R02')

  found = []
  await failDebitsOf(app, { accountId: id, returnCode: 'R02' }, operatorContext())
})

test('those of an account that was enabled meanwhile go on', async () => {
  const id = await account()
  const leg = await debit(id)
  found = [{ leg_id: leg, seq: 1 }]
  const failDebits = () =>
    bankDebits(app, 60_000).work['fail-debits'].run(workItem({ key: id, payload: { return_code: 'R10' } }))
  const at = app.clock.now()
  const tell = async (command: Parameters<typeof achAccount.decide>[0]) =>
    accepted(await app.commands.execute(achAccount, id, command, operatorContext()))
  await tell({ type: 'Disable', returnCode: 'R10', at })
  await tell({ type: 'Enable', reason: 'agreed with the bank', isVerifiedByOther: false, at })
  expect(await failDebits()).toEqual({ outcome: 'done' })
  expect(await statusOf(leg)).toBe('pending')
  await tell({ type: 'Disable', returnCode: 'R10', at })
  await failDebits()
  expect(await statusOf(leg)).toBe('failed')
})

test('one that went with a batch that has closed is left to its bank', async () => {
  const id = await account()
  const leg = await debit(id)
  const { batch_closes_at } = await change(leg, { type: 'Schedule', at: app.clock.now() })
  found = [{ leg_id: leg, seq: 1 }]
  const later = { ...app, clock: { ...app.clock, now: () => Date.parse(batch_closes_at!) } }
  await failDebitsOf(later, { accountId: id, returnCode: 'R02' }, operatorContext())
  expect(await statusOf(leg)).toBe('Scheduled')
})

test('one that went with a batch that has closed is not handed over any more, unless it was', async () => {
  const id = await account()
  const [leg, sent] = [await debit(id), await debit(id)]
  const [closesAt] = await Promise.all(
    [leg, sent].map(async (one) => {
      const { batch_closes_at } = await change(one, { type: 'Schedule', at: app.clock.now() })
      return Date.parse(batch_closes_at!)
    }),
  )
  await change(sent, { type: 'Acknowledge', at: closesAt! })
  await disable(id)
  found = [{ leg_id: leg, seq: 1 }]
  await handOver(closesAt!)
  expect([await statusOf(leg), await statusOf(sent)]).toEqual(['failed', 'submitted'])
})

test('one of an account that an earlier version disabled is not handed over either', async () => {
  const id = await account()
  const leg = await debit(id)
  const { batch_closes_at } = await change(leg, { type: 'Schedule', at: app.clock.now() })
  const closesAt = Date.parse(batch_closes_at!)
  const command = { type: 'Disable', returnCode: 'R02', at: app.clock.now() } as const
  accepted(await app.commands.execute(achAccount, id, command, operatorContext()))
  found = [{ leg_id: leg, seq: 1 }]
  await handOver(closesAt)
  expect(await statusOf(leg)).toBe('failed')
})
