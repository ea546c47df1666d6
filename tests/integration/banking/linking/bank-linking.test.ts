import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAchAccount } from '../../../../application/banking/accounts/ach-accounts.ts'
import { exchange } from '../../../../application/banking/linking/link-bank.ts'
import { syncTransactions } from '../../../../application/banking/linking/sync-transactions.ts'
import type { Application } from '../../../../application/commands/application.ts'
import type { BankLink } from '../../../../application/ports/bank-link.ts'
import { type AchAccount, achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { bankAccount } from '../../../../domain/banking/accounts/bank-account.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { SimulatedBankLink } from '../../../../infrastructure/providers/bank-link/simulated.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerInsured,
} from '../../../support/registrations.ts'

/** Connections of an item that requests come to at once, or after one of them died. */
let process: RegistrationProcess
let app: Application
let insured: Awaited<ReturnType<typeof registerInsured>>
let tokens = 0
let token: string
/** Parts of transactions that the bank link was asked for, and what holds it up before it answers. */
let parts: number
let held: Promise<void>
/** Whether the bank lists the accounts of items. */
let isListing = true
/** What read models tell of ACH accounts, which all have the same numbers. */
let achAccounts: AchAccount[] = []

beforeAll(async () => {
  process = await openRegistrationProcess()
  const simulated = new SimulatedBankLink(process.app.faults)
  const link: BankLink = {
    kind: 'simulated',
    createLinkToken: (asked) => simulated.createLinkToken(asked),
    // the same item, whoever links it
    exchange: (publicToken) => simulated.exchange(publicToken, 'anybody'),
    async accounts(of) {
      const said = await simulated.accounts(of)
      return isListing ? said : { ...said, accounts: [] }
    },
    balances: (of) => simulated.balances(of),
    numbers: (of, accountId) => simulated.numbers(of, accountId),
    async transactions(of, cursor) {
      parts += 1
      await held
      return simulated.transactions(of, cursor)
    },
  }
  const rows = ({ bankAccountId }: { bankAccountId?: string }) =>
    achAccounts
      .filter(({ bank_account_id }) => bankAccountId === undefined || bank_account_id === bankAccountId)
      .map(({ ach_account_id }, seq) => ({ ach_account_id, seq }))
  const read = { query: async (_statement: unknown, parameters: object) => rows(parameters) } as never
  app = { ...process.app, read, bankLinks: { live: link, sandbox: link } }
})
afterAll(() => process?.bench.close())
beforeEach(async () => {
  insured = await registerInsured(app)
  tokens += 1
  token = `public-sandbox-${tokens}`
  parts = 0
  held = Promise.resolve()
  isListing = true
  achAccounts = []
})

const client = () =>
  ({
    ...({ tenant_id: insured.tenantId, environment: 'live' } as const),
    ...({ carrier_ids: 'all', employer_ids: 'all', client_id: 'client' } as const),
  }) as const
const linked = (
  owner: { employer_id: string | null; carrier_id: string | null },
  on = app,
  publicToken = token,
) => exchange(on, client(), { publicToken, user_id: 'u', ...owner }, operatorContext())

test.each(['before', 'after'] as const)(
  'an item is whose exchange claimed it, which died %s it made an account',
  async (at) => {
    const employers = { employer_id: insured.employerId, carrier_id: null }
    const dying = crashingAt(app, { category: 'bankAccount', at })
    await expect(linked(employers, dying)).rejects.toThrow(Crashed)
    const others = await linked({ employer_id: null, carrier_id: insured.carrierId })
    expect(others).toMatchObject({ rejected: true, code: 'item_linked' })
    const { connection, accounts } = accepted(await linked(employers))
    expect(connection).toMatchObject({ ...employers, status: 'active' })
    for (const { bank_account_id } of accounts) {
      expect((await app.commands.load(bankAccount, bank_account_id)).state).toMatchObject(employers)
    }
  },
)

test('syncs of an item that are asked for at once are one', async () => {
  const { connection } = accepted(await linked({ employer_id: null, carrier_id: null }))
  let release = () => {}
  held = new Promise((resolve) => {
    release = resolve
  })
  parts = 0
  const syncs = [1, 2, 3, 4].map(() => syncTransactions(app, connection, operatorContext()))
  release()
  const counts = await Promise.all(syncs)
  expect([parts, counts.filter(isRejection)]).toEqual([1, []])
  await syncTransactions(app, connection, operatorContext())
  expect(parts).toBe(2)
})

describe('an ACH account', () => {
  const nobodys = { employer_id: null, carrier_id: null }
  /** One of the metadata account that it is tied to. */
  const tied = async (bankAccountId: string | null) => {
    const account = await createAchAccount(
      app,
      client(),
      {
        owner_type: 'employer',
        owner_id: insured.employerId,
        routing_number: '021000021',
        account_number: '000123456789',
        account_type: 'checking',
        bank_name: 'First Bank',
        nickname: null,
        is_primary: false,
        linked: { bankAccountId, unverifiedReason: null },
      },
      { ...operatorContext(), tenantId: insured.tenantId, environment: 'live' },
    )
    achAccounts.push(accepted(account))
  }
  const unlisted = () =>
    Promise.all(
      achAccounts.map(async ({ ach_account_id }) => {
        return (await app.commands.load(achAccount, ach_account_id)).state!.unlisted
      }),
    )

  test('that its bank lists again is listed once its item is linked again', async () => {
    const { accounts } = accepted(await linked(nobodys))
    await tied(accounts[0]!.bank_account_id)
    for (const isThere of [false, true]) {
      isListing = isThere
      accepted(await linked(nobodys))
      expect(await unlisted()).toEqual([!isThere])
    }
  })

  test('that is tied to no connection is listed while one of those with its numbers lists them', async () => {
    const tokens = [token, `${token}-other`]
    for (const one of tokens) {
      const { accounts } = accepted(await linked(nobodys, app, one))
      await tied(accounts[0]!.bank_account_id)
    }
    await tied(null)
    isListing = false
    accepted(await linked(nobodys, app, tokens[0]))
    expect(await unlisted()).toEqual([true, false, false])
    accepted(await linked(nobodys, app, tokens[1]))
    expect(await unlisted()).toEqual([true, true, true])
  })
})
