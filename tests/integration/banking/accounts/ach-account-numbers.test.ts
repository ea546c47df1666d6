import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { RETURNABLE_MS, removeNumbers } from '../../../../application/banking/accounts/account-numbers.ts'
import {
  changeAchAccount,
  correctAchAccount,
  createAchAccount,
  debitableAccount,
  deleteAchAccount,
  disableNumbers,
  enableNumbers,
  type NewAchAccount,
  persistentOf,
  primaryAchAccount,
  readNumbers,
} from '../../../../application/banking/accounts/ach-accounts.ts'
import {
  changeBankAccount,
  createBankAccount,
  shownBankAccount,
} from '../../../../application/banking/accounts/bank-accounts.ts'
import { bankAccounts } from '../../../../application/banking/accounts/bank-accounts-process-manager.ts'
import { recordDisabled } from '../../../../application/banking/accounts/disabled-numbers.ts'
import {
  ofBankAccount,
  primaryIdOf,
  primaryOf,
} from '../../../../application/banking/accounts/primary-accounts.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { type CommandContext, createdId } from '../../../../application/commands/command-context.ts'
import { employerSubject } from '../../../../application/commands/sealing.ts'
import type { ProcessManager, WorkItem } from '../../../../application/followers/process-manager.ts'
import { achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { bankAccount } from '../../../../domain/banking/accounts/bank-account.ts'
import { primaryAccount } from '../../../../domain/banking/accounts/primary-account.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { startOf } from '../../../../domain/kernel/new-york.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  moveClock,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerEmployer,
  registerInsured,
  waitingBefore,
} from '../../../support/registrations.ts'
import { newFein } from '../../../support/seed.ts'
import { newId } from '../../../support/webhooks.ts'

const NUMBERS = { routingNumber: '021000021', accountNumber: '000123456789' }
let process: RegistrationProcess
let app: Application
let insured: Awaited<ReturnType<typeof registerInsured>>
/** What read models answer, by the name of the statement. */
let rows: Record<string, readonly object[]> = {}

beforeAll(async () => {
  process = await openRegistrationProcess()
  app = {
    ...process.app,
    read: { query: async ({ name }: { name: string }) => rows[name] ?? [] } as never,
  }
})
afterAll(() => process?.bench.close())
beforeEach(async () => {
  rows = {}
  insured = await registerInsured(app)
})

const client = () =>
  ({
    ...({ tenant_id: insured.tenantId, environment: 'live' } as const),
    ...({ carrier_ids: 'all', employer_ids: 'all', client_id: 'client' } as const),
  }) as const
const asked = (overrides: Partial<NewAchAccount> = {}): NewAchAccount => ({
  routing_number: NUMBERS.routingNumber,
  account_number: NUMBERS.accountNumber,
  owner_type: 'employer',
  owner_id: insured.employerId,
  account_type: 'checking',
  bank_name: 'First Bank',
  nickname: null,
  is_primary: false,
  linked: null,
  ...overrides,
})
/** Of a request of the client; the same one again with the same id. */
const context = (commandId: string = randomUUID()): CommandContext => ({
  ...operatorContext(commandId),
  tenantId: insured.tenantId,
  environment: 'live',
})
const create = async (overrides: Partial<NewAchAccount> = {}) =>
  accepted(await createAchAccount(app, client(), asked(overrides), context()))
const chooseOf = (key: string) =>
  ({
    processManager: 'bank-accounts',
    kind: 'choose-primary',
    key,
    payload: {},
    correlationId: 'test',
    causationId: 'test',
    commandId: randomUUID(),
    tenantId: insured.tenantId,
    environment: 'live',
  }) as WorkItem<Record<string, never>>
const typesOf = async (id: string) =>
  (await app.log.readStream(`achAccount-${id}`)).map(({ type }) => type.replace('AchAccount', ''))
const moveTo = (time: number) => moveClock(app, time)
const secrets = async (): Promise<number> => {
  const { rows: found } = await process.bench.database.pool.query(
    `SELECT count(*)::int AS n FROM runtime.secrets WHERE ref LIKE 'ach-account/%'`,
  )
  return found[0].n
}

test('numbers are kept once however often their request dies, and nobody else is told them', async () => {
  const before = await secrets()
  const again = context()
  const dying = crashingAt(app, { category: 'achAccount', at: 'before' })
  for (const _try of [1, 2]) {
    await expect(createAchAccount(dying, client(), asked(), again)).rejects.toThrow(Crashed)
  }
  const account = accepted(await createAchAccount(app, client(), asked(), again))
  expect(await secrets()).toBe(before + 1)
  const legalName = { holderName: 'Insured', accountType: 'checking', bankName: 'First Bank' }
  expect(await readNumbers(app, account, 'micro_deposits', context())).toEqual({ ...NUMBERS, ...legalName })
  expect(await typesOf(account.ach_account_id)).toEqual(['Created', 'NumbersRead'])

  const { personalData } = app
  await personalData.destroyKey(employerSubject(personalData, insured.employerId), 1)
  expect(await readNumbers(app, account, 'micro_deposits', context())).toBeNull()
  const correction = { changeCode: 'C01', accountNumber: '999888777' }
  const refused = await correctAchAccount(app, account.ach_account_id, correction, context())
  expect(refused).toMatchObject({ rejected: true, kind: 'conflict' })
})

test('an account that is given numbers that are disabled is disabled, a linked one as well', async () => {
  const first = await create()
  const place = { tenant_id: insured.tenantId, environment: 'live' } as const
  await recordDisabled(app, place, [first.account], 'R29', context())
  const linked = await create({ linked: { bankAccountId: null, unverifiedReason: null } })
  const corrected = await create({ account_number: '5557771' })
  expect([linked.status, corrected.status]).toEqual(['active', 'unverified'])
  const correction = { changeCode: 'C01', accountNumber: NUMBERS.accountNumber }
  accepted(await correctAchAccount(app, corrected.ach_account_id, correction, context()))
  for (const { ach_account_id } of [linked, corrected]) {
    const { state } = await app.commands.load(achAccount, ach_account_id)
    expect(state).toMatchObject({ status: 'disabled', return_code: 'R29' })
  }
})

test('an account is enabled with every other one that its bank link says is the same', async () => {
  const linked = (accountNumber: string) =>
    create({
      account_number: accountNumber,
      linked: {
        bankAccountId: null,
        unverifiedReason: null,
        ...persistentOf(app, { provider: 'plaid' }, 'one-account'),
      },
    })
  const [one, other] = [await linked('5557772'), await linked('5557773')]
  const standing = () =>
    Promise.all(
      [one, other].map(
        async (account) => (await app.commands.load(achAccount, account.ach_account_id)).state!.status,
      ),
    )
  rows = {
    'ach-accounts-with-numbers': [one, other].map(({ ach_account_id }, seq) => ({ ach_account_id, seq })),
  }
  const place = { tenant_id: insured.tenantId, environment: 'live' } as const
  const returned = { ...place, achAccountId: one.ach_account_id, numbers: [one.account] }
  await disableNumbers(app, returned, 'R10', context())
  expect(await standing()).toEqual(['disabled', 'disabled'])

  accepted(await enableNumbers(app, one.ach_account_id, 'The block was lifted', context()))
  expect(await standing()).toEqual(['active', 'active'])
})

test('numbers that come back while they are enabled are disabled of every account that has them', async () => {
  const accounts = [await create(), await create()]
  rows = {
    'ach-accounts-with-numbers': accounts.map(({ ach_account_id }, seq) => ({ ach_account_id, seq })),
  }
  const [{ ach_account_id: named, account }] = accounts as [(typeof accounts)[0]]
  const place = { tenant_id: insured.tenantId, environment: 'live' } as const
  const comeBack = () =>
    disableNumbers(app, { ...place, achAccountId: named, numbers: [account] }, 'R10', context())
  await comeBack()
  const slow = waitingBefore(app, 'achAccount')
  const enabling = enableNumbers(slow.app, named, 'The block was lifted', context())
  await slow.arrived
  await comeBack()
  slow.goOn()
  accepted(await enabling)
  const states = await app.commands.loadAll(
    achAccount,
    accounts.map(({ ach_account_id }) => ach_account_id),
  )
  expect(states.map(({ state }) => state!.status)).toEqual(['disabled', 'disabled'])
})

/** Does what follows from the last event of an account. */
async function follow(id: string): Promise<void> {
  const stored = (await app.log.readStream(`achAccount-${id}`)).at(-1)!
  const manager: ProcessManager = bankAccounts(app)
  for (const { type, react } of manager.on) {
    if (type.name !== stored.type) continue
    for (const { kind, key } of react(app.registry.decode(stored), undefined as never)) {
      await manager.work[kind]!.run({ ...chooseOf(key), kind })
    }
  }
}

test('one whose creation or correction died before it was disabled is disabled after that', async () => {
  const { account } = await create()
  const disable = (numbers: typeof account) =>
    recordDisabled(app, { tenant_id: insured.tenantId, environment: 'live' }, [numbers], 'R29', context())
  await disable(account)
  const again = context()
  const dying = crashingAt(app, { category: 'achAccount', at: 'after' })
  await expect(createAchAccount(dying, client(), asked(), again)).rejects.toThrow(Crashed)
  const id = createdId(again, achAccount)
  expect(await typesOf(id)).toEqual(['Created'])
  await follow(id)
  expect(await typesOf(id)).toEqual(['Created', 'Disabled'])

  const { ach_account_id: other } = await create({ account_number: '5557772' })
  const correction = { changeCode: 'C01', accountNumber: '5557773' }
  const corrected = accepted(await correctAchAccount(app, other, correction, context()))
  await disable(corrected.account)
  await follow(other)
  expect((await typesOf(other)).slice(-2)).toEqual(['Corrected', 'Disabled'])
})

test('a correction is for debits from then on', async () => {
  const { ach_account_id: id, account: before } = await create()
  const correction = { changeCode: 'C06', accountNumber: '99988877', accountType: 'savings' } as const
  for (const _again of [1, 2]) accepted(await correctAchAccount(app, id, correction, context()))
  const { state } = await app.commands.load(achAccount, id)
  expect(state!.account).toMatchObject({ account_last4: '8877', account_type: 'savings' })
  expect(await readNumbers(app, state!, 'correction', context())).toMatchObject({
    routingNumber: NUMBERS.routingNumber,
    accountNumber: '99988877',
    accountType: 'savings',
  })
  const arranged = await readNumbers(app, { ach_account_id: id, account: before }, 'correction', context())
  expect(arranged).toMatchObject(NUMBERS)
  expect((await typesOf(id)).filter((type) => type === 'Corrected')).toHaveLength(1)
})

test('a correction leaves what was changed of the account since it was read', async () => {
  const { ach_account_id: id } = await create()
  const slow = waitingBefore(app, 'achAccount')
  const later = correctAchAccount(slow.app, id, { changeCode: 'C01', accountNumber: '99988877' }, context())
  await slow.arrived
  const routing = { changeCode: 'C02', routingNumber: '011000015' }
  accepted(await correctAchAccount(app, id, routing, context()))
  const savings = { account_type: 'savings' } as const
  accepted(await changeAchAccount(app, { ach_account_id: id }, savings, context()))
  slow.goOn()
  const corrected = accepted(await later)
  expect(await readNumbers(app, corrected, 'correction', context())).toMatchObject({
    routingNumber: '011000015',
    accountNumber: '99988877',
    accountType: 'savings',
  })
})

test('who is to be primary is chosen also when the request dies before', async () => {
  const again = context()
  const dying = crashingAt(app, { category: 'primaryAccount', at: 'before' })
  await expect(createAchAccount(dying, client(), asked({ is_primary: true }), again)).rejects.toThrow(Crashed)
  expect(await primaryAchAccount(app, insured.employerId)).toBeNull()
  const id = createdId(again, achAccount)
  const item = chooseOf(id)
  const choose = bankAccounts(app).work['choose-primary']
  expect(await choose.run(item)).toEqual({ outcome: 'done' })
  expect((await primaryAchAccount(app, insured.employerId))?.ach_account_id).toBe(id)
  const { ach_account_id: next } = await create({ is_primary: true })
  // heard once more, and late
  await choose.run({ ...item, commandId: randomUUID() })
  expect((await primaryAchAccount(app, insured.employerId))?.ach_account_id).toBe(next)
})

test('a metadata account that moved before it was chosen is primary of neither owner', async () => {
  const again = context()
  const { employer_id: other } = accepted(
    await registerEmployer(
      app,
      {
        ...({
          tenant_id: insured.tenantId,
          environment: 'live',
          legal_name: 'Other',
          fein: newFein(),
        } as const),
        address: null,
        contact_email: null,
        payroll_company_ids: [],
      },
      operatorContext(),
    ),
  )
  const bank = {
    user_id: 'u',
    name: 'Operating',
    bank_name: 'First Bank',
    primary: true,
    ...({ employer_id: insured.employerId, carrier_id: null, connection_type: 'manual' } as const),
  }
  const dying = crashingAt(app, { category: 'primaryAccount', at: 'before' })
  await expect(createBankAccount(dying, client(), bank, again)).rejects.toThrow(Crashed)
  const { state } = await app.commands.load(bankAccount, createdId(again, bankAccount))
  accepted(await changeBankAccount(app, client(), state!, { employer_id: other }, context()))
  expect(await bankAccounts(app).work['choose-primary'].run(chooseOf(state!.bank_account_id))).toEqual({
    outcome: 'done',
  })
  for (const employer_id of [insured.employerId, other]) {
    expect(await primaryOf(app, (await ofBankAccount(app, { ...state!, employer_id })).owner)).toBeNull()
  }
})

test('a user has one primary account also among accounts from before its name was sealed', async () => {
  const { tenantId: tenant_id } = insured
  const user_id = 'dispatcher-7'
  const bank = {
    ...{ user_id, name: 'Operating', bank_name: 'First Bank', employer_id: null, carrier_id: null },
    connection_type: 'manual',
  } as const
  const before = { bank_account_id: newId(), tenant_id, environment: 'live' } as const
  const stored = { ...bank, ...before, primary: true, created_at: isoTime(app.clock.now()) }
  const { bank_account_id: oldId } = before
  accepted(await app.commands.execute(bankAccount, oldId, { type: 'Create', data: stored }, context()))
  const whose = { tenant_id, environment: 'live', layer: 'bank_account', owner_type: 'user' } as const
  const owner = { ...whose, owner_id: user_id }
  const primaryId = primaryIdOf(owner)
  const chosen = { primaryId, owner, accountId: oldId, isOfCreation: true, at: app.clock.now() }
  accepted(await app.commands.execute(primaryAccount, primaryId, { type: 'Choose', ...chosen }, context()))
  const account = async (id: string) => (await app.commands.load(bankAccount, id)).state!
  const isPrimary = async (id: string) => (await shownBankAccount(app, await account(id))).isPrimary
  const choose = async (id: string, primary: boolean) =>
    accepted(await changeBankAccount(app, client(), await account(id), { primary }, context()))

  const { bank_account_id: newer } = accepted(
    await createBankAccount(app, client(), { ...bank, primary: false }, context()),
  )
  expect([await isPrimary(oldId), await isPrimary(newer)]).toEqual([true, false])
  await choose(newer, true)
  expect([await isPrimary(oldId), await isPrimary(newer)]).toEqual([false, true])
  // what its creation asked for was done before
  expect(await bankAccounts(app).work['choose-primary'].run(chooseOf(oldId))).toEqual({ outcome: 'done' })
  expect([await isPrimary(oldId), await isPrimary(newer)]).toEqual([false, true])
  await choose(oldId, true)
  expect([await isPrimary(oldId), await isPrimary(newer)]).toEqual([true, false])
  await choose(oldId, false)
  expect([await isPrimary(oldId), await isPrimary(newer)]).toEqual([false, false])
  // nor does the list find it: the stream of its plain name says so as well
  expect(await primaryOf(app, owner)).toBeNull()
})

test('numbers of a deleted account go 180 days after the last debit that may come back', async () => {
  const { ach_account_id: id, account } = await create()
  accepted(await correctAchAccount(app, id, { changeCode: 'C01', accountNumber: '99988877' }, context()))
  expect(await removeNumbers(app, id, context())).toBeNull()
  accepted(await deleteAchAccount(app, { ach_account_id: id }, context()))
  const deletedAt = app.clock.now()
  const kept = await secrets()
  expect(await removeNumbers(app, id, context())).toBe(deletedAt + RETURNABLE_MS)

  moveTo(deletedAt + RETURNABLE_MS)
  rows['open-debits-of-ach-account'] = [{ leg_id: newId() }]
  expect(await removeNumbers(app, id, context())).toBe(app.clock.now() + RETURNABLE_MS)
  rows['open-debits-of-ach-account'] = []
  const day = isoTime(deletedAt + 86_400_000)
  rows['use-of-ach-account'] = [{ created: isoTime(deletedAt - 1), effective: day.slice(0, 10) }]
  const until = startOf(day.slice(0, 10)) + RETURNABLE_MS
  expect(await removeNumbers(app, id, context())).toBe(until > app.clock.now() ? until : null)
  moveTo(until)
  expect(await removeNumbers(app, id, context())).toBeNull()
  expect(await secrets()).toBe(kept - 2)
  expect(await app.vault.get(account.account_ref)).toBeNull()
  expect((await typesOf(id)).at(-1)).toBe('NumbersRemoved')
  expect(await removeNumbers(app, id, context())).toBeNull()
})

test('a debit names an ACH account, or a metadata account, which the first of its accounts is tied to', async () => {
  const bank = accepted(
    await createBankAccount(
      app,
      client(),
      {
        user_id: 'u',
        name: 'Operating',
        bank_name: 'First Bank',
        primary: false,
        ...({ employer_id: insured.employerId, carrier_id: null, connection_type: 'bankconnect' } as const),
      },
      context(),
    ),
  )
  const linked = { bankAccountId: bank.bank_account_id, unverifiedReason: null }
  const { ach_account_id: id, status } = await create({ linked })
  expect(status).toBe('active')
  const named = async (one: string, place = client()) =>
    (await debitableAccount(app, place, one))?.ach_account_id ?? null
  expect(await named(id)).toBe(id)
  expect(await named(bank.bank_account_id)).toBeNull()
  rows['ach-accounts-of-bank-account'] = [{ ach_account_id: id }]
  expect(await named(bank.bank_account_id)).toBe(id)
  expect(await named(bank.bank_account_id, { ...client(), environment: 'sandbox' } as never)).toBeNull()
  expect(await named('x')).toBeNull()
  accepted(await changeBankAccount(app, client(), bank, { status: 'disabled' }, context()))
  expect(await debitableAccount(app, client(), bank.bank_account_id)).toMatchObject({ status: 'disabled' })
  // two were created at once
  const { ach_account_id: second } = await create({ linked })
  rows['ach-accounts-of-bank-account'] = [{ ach_account_id: id }, { ach_account_id: second }]
  expect(await named(bank.bank_account_id)).toBe(id)
  accepted(await deleteAchAccount(app, { ach_account_id: id }, context()))
  expect(await named(id)).toBeNull()
})
