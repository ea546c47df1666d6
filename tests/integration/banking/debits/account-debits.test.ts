import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordDisabled } from '../../../../application/banking/accounts/disabled-numbers.ts'
import { keepAchAccount } from '../../../../application/banking/accounts/payer-accounts.ts'
import { failDebitsOf } from '../../../../application/banking/debits/account-debits.ts'
import { createApiDebit, prepareApiDebit } from '../../../../application/banking/debits/api-debits.ts'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { collect, prepareCollection } from '../../../../application/banking/debits/collections.ts'
import { createAccountDebit } from '../../../../application/banking/debits/create-debit.ts'
import { submitBatch } from '../../../../application/banking/debits/debit-batches.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { SimulatedBankRail } from '../../../../infrastructure/providers/bank/simulated.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import { workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  issuePolicy,
  newPolicy,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerInsured,
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

async function account(owner?: { readonly tenant_id: string; readonly owner_id: string }): Promise<string> {
  const id = newId()
  const data = {
    ...({ ach_account_id: id, tenant_id: id, environment: 'live', owner_type: 'employer' } as const),
    owner_id: id,
    ...owner,
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

async function debit(bank_account_id: string, debitId = newId()): Promise<string> {
  const {
    account: _,
    settlement_type: _type,
    ingested_at: _at,
    created_at: _created,
    ...data
  } = debitData(app.clock.now(), { leg_id: debitId, tenant_id: bank_account_id, bank_account_id })
  await createAccountDebit(app, { ...data, bank_account_id }, operatorContext())
  return debitId
}
const statusOf = async (debitId: string) => (await app.commands.load(bankDebit, debitId)).state?.status
const change = async (debitId: string, command: Parameters<typeof bankDebit.decide>[0]) => {
  const { state } = accepted(await app.commands.execute(bankDebit, debitId, command, operatorContext()))
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
  const debitIds = [await debit(id), await debit(id), await debit(id), await debit(id)] as const
  const [waiting, scheduled, sent, last] = debitIds
  const at = app.clock.now()
  for (const debitId of [scheduled, sent]) await change(debitId, { type: 'Schedule', at })
  await change(sent, { type: 'Acknowledge', at })
  const broken = newId()
  await app.log.append(`bankDebit-${broken}`, -1, [
    { type: 'NoSuchEvent', data: '{}', metadata: '{"schema_version":1}' },
  ])
  found = [waiting, scheduled, broken, sent, last].map((leg_id, seq) => ({ leg_id, seq }))

  await disable(id)
  const failing = failDebitsOf(app, { accountId: id, return_code: 'R02' }, operatorContext())
  await expect(failing).rejects.toThrow()
  expect(await Promise.all(debitIds.map(statusOf))).toEqual(['failed', 'failed', 'submitted', 'failed'])
  const [, failed] = await app.log.readStream(`bankDebit-${waiting}`)
  expect(failed!.data).toContain('R02')

  found = []
  await failDebitsOf(app, { accountId: id, return_code: 'R02' }, operatorContext())
})

test('those of an account that was enabled meanwhile go on', async () => {
  const id = await account()
  const debitId = await debit(id)
  found = [{ leg_id: debitId, seq: 1 }]
  const failDebits = () =>
    bankDebits(app, 60_000).work['fail-debits'].run(workItem({ key: id, payload: { return_code: 'R10' } }))
  const at = app.clock.now()
  const carryOut = async (command: Parameters<typeof achAccount.decide>[0]) =>
    accepted(await app.commands.execute(achAccount, id, command, operatorContext()))
  await carryOut({ type: 'Disable', return_code: 'R10', at })
  await carryOut({ type: 'Enable', reason: 'agreed with the bank', isVerifiedByOther: false, at })
  expect(await failDebits()).toEqual({ outcome: 'done' })
  expect(await statusOf(debitId)).toBe('pending')
  await carryOut({ type: 'Disable', return_code: 'R10', at })
  await failDebits()
  expect(await statusOf(debitId)).toBe('failed')
})

test('one that went with a batch that has closed is left to its bank', async () => {
  const id = await account()
  const debitId = await debit(id)
  const { batch_closes_at } = await change(debitId, { type: 'Schedule', at: app.clock.now() })
  found = [{ leg_id: debitId, seq: 1 }]
  const later = { ...app, clock: { ...app.clock, now: () => Date.parse(batch_closes_at!) } }
  await failDebitsOf(later, { accountId: id, return_code: 'R02' }, operatorContext())
  expect(await statusOf(debitId)).toBe('Scheduled')
})

test('one that went with a batch that has closed is not handed over any more, unless it was', async () => {
  const id = await account()
  const [debitId, sent] = [await debit(id), await debit(id)]
  const [closesAt] = await Promise.all(
    [debitId, sent].map(async (one) => {
      const { batch_closes_at } = await change(one, { type: 'Schedule', at: app.clock.now() })
      return Date.parse(batch_closes_at!)
    }),
  )
  await change(sent, { type: 'Acknowledge', at: closesAt! })
  await disable(id)
  found = [{ leg_id: debitId, seq: 1 }]
  await handOver(closesAt!)
  expect([await statusOf(debitId), await statusOf(sent)]).toEqual(['failed', 'submitted'])
})

test('one of an account that an earlier version disabled is not handed over either', async () => {
  const id = await account()
  const debitId = await debit(id)
  const { batch_closes_at } = await change(debitId, { type: 'Schedule', at: app.clock.now() })
  const closesAt = Date.parse(batch_closes_at!)
  const command = { type: 'Disable', return_code: 'R02', at: app.clock.now() } as const
  accepted(await app.commands.execute(achAccount, id, command, operatorContext()))
  found = [{ leg_id: debitId, seq: 1 }]
  await handOver(closesAt)
  expect(await statusOf(debitId)).toBe('failed')
})

/** A partner with an account of an employer that has two policies. */
async function partner() {
  const { tenantId: tenant_id, carrierId: carrier_id, employerId: employer_id } = await registerInsured(app)
  const policy = async (policy_number: string) => {
    const input = newPolicy({ employer_id, carrier_id, policy_number })
    return accepted(await issuePolicy(app, input, operatorContext())).policy_id
  }
  const policyIds = [await policy('WC-1'), await policy('WC-2')] as const
  const accountId = await account({ tenant_id, owner_id: employer_id })
  const client = {
    client_id: 'client',
    tenant_id,
    environment: 'live',
    carrier_ids: 'all',
    employer_ids: 'all',
  } as const
  const collection = {
    employerId: employer_id,
    bankAccountId: accountId,
    entries: policyIds.map((policyId) => ({ policyId, amountCents: 100, description: 'May', key: policyId })),
  }
  const single = {
    employer_id,
    carrier_id,
    policy_id: policyIds[0],
    bank_account_id: accountId,
    amount_cents: 200,
    payment_purpose: 'paygo' as const,
    description: 'June',
    effective_date: null,
    metadata: {},
    idempotency_key: policyIds[0],
  }
  const carryOut = async (command: Parameters<typeof achAccount.decide>[0]) =>
    accepted(await app.commands.execute(achAccount, accountId, command, operatorContext()))
  return {
    client,
    collection,
    single,
    async collect(by = app) {
      const context = operatorContext()
      const prepared = await prepareCollection(by, client, collection, context)
      return isRejection(prepared) ? prepared : collect(by, client, collection, prepared, context)
    },
    async debit(by = app, asked = single) {
      const context = operatorContext()
      const prepared = await prepareApiDebit(by, client, asked, context)
      return isRejection(prepared) ? prepared : createApiDebit(by, client, asked, prepared, context)
    },
    disable: () => carryOut({ type: 'Disable', return_code: 'R02', at: app.clock.now() }),
    enable: () =>
      carryOut({ type: 'Enable', reason: 'agreed', isVerifiedByOther: true, at: app.clock.now() }),
    remove: () => carryOut({ type: 'Delete', at: app.clock.now() }),
  }
}

test.each(['itself', 'a check of its key'])(
  'a collection that died with its keys and is refused by %s leaves them to whatever is asked for next',
  async (by) => {
    const { client, collection, ...one } = await partner()
    await expect(one.collect(crashingAt(app, { category: 'debitCollection', at: 'before' }))).rejects.toThrow(
      Crashed,
    )
    // until the same is sent again, they stand for it
    expect(await one.debit()).toMatchObject({ code: 'debit_key_reused' })
    await one.disable()
    const again = () =>
      by === 'itself' ? one.collect() : prepareCollection(app, client, collection, operatorContext())
    expect(await again()).toMatchObject({ code: 'account_disabled' })
    const head = await app.log.head()
    expect(await again()).toMatchObject({ code: 'account_disabled' })
    expect(await app.log.head()).toBe(head)
    await one.enable()
    const { debit } = accepted(await one.debit())
    expect(debit).toMatchObject({ amount_cents: 200, status: 'pending' })
    expect(await one.collect()).toMatchObject({ code: 'debit_key_reused', ids: { id: debit.leg_id } })
  },
)

test('a collection that died with one of its keys and lost the other leaves both to what is asked for next', async () => {
  const { collection, single, ...one } = await partner()
  await expect(one.collect(crashingAt(app, { category: 'debitKey', at: 'after' }))).rejects.toThrow(Crashed)
  const use = ({ key }: { readonly key: string }) => one.debit(app, { ...single, idempotency_key: key })
  const used = await Promise.all(collection.entries.map(use))
  expect(used.filter(isRejection)).toMatchObject([{ code: 'debit_key_reused' }])
  expect(await one.collect()).toMatchObject({ code: 'debit_key_reused' })
  expect((await Promise.all(collection.entries.map(use))).filter(isRejection)).toEqual([])
})

test('a collection that died with its keys and was refused is accepted when it is sent again', async () => {
  const { disable, enable, ...one } = await partner()
  await expect(one.collect(crashingAt(app, { category: 'debitCollection', at: 'before' }))).rejects.toThrow(
    Crashed,
  )
  await disable()
  expect(await one.collect()).toMatchObject({ code: 'account_disabled' })
  await enable()
  const { collection, isNew } = accepted(await one.collect())
  expect([isNew, collection.entries.length]).toEqual([true, 2])
  for (const { transaction_id } of collection.entries) expect(await statusOf(transaction_id)).toBe('pending')
  expect(await one.collect()).toMatchObject({ collection, isNew: false })
})

test.each([
  ['disabled', 'failed'],
  ['deleted', 'failed'],
  ['left as it was', 'pending'],
] as const)(
  'a debit whose request died with its key, and whose account is %s, is %s when it is sent again',
  async (become, status) => {
    const { disable, remove, single, ...one } = await partner()
    await expect(one.debit(crashingAt(app, { category: 'bankDebit', at: 'before' }))).rejects.toThrow(Crashed)
    if (become === 'disabled') await disable()
    if (become === 'deleted') await remove()
    const { debit, isNew } = accepted(await one.debit())
    expect([isNew, debit.status, debit.amount_cents]).toEqual([true, status, 200])
    expect(await one.debit()).toMatchObject({ isNew: false, debit: { leg_id: debit.leg_id } })
    const changed = { ...single, amount_cents: 300 }
    // what the account is comes before what the key stands for
    const code = become === 'deleted' ? 'ach_account_not_found' : 'debit_key_reused'
    expect(await one.debit(app, changed)).toMatchObject({ code })
  },
)
