import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Application } from '../../application/application.ts'
import { exchange } from '../../application/banking/link-bank.ts'
import { syncTransactions } from '../../application/banking/sync-transactions.ts'
import type { BankLink } from '../../application/ports/bank-link.ts'
import { bankAccount } from '../../domain/banking/bank-account.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { SimulatedBankLink } from '../../infrastructure/providers/bank-link/simulated.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerInsured,
} from '../support/registrations.ts'

/** Connections of an item that requests come to at once, or after one of them died. */
let process: RegistrationProcess
let app: Application
let insured: Awaited<ReturnType<typeof registerInsured>>
let tokens = 0
let token: string
/** Parts of transactions that the bank link was asked for, and what holds it up before it answers. */
let parts: number
let held: Promise<void>

beforeAll(async () => {
  process = await openRegistrationProcess()
  const simulated = new SimulatedBankLink(process.app.faults)
  const link: BankLink = {
    kind: 'simulated',
    createLinkToken: (asked) => simulated.createLinkToken(asked),
    // the same item, whoever links it
    exchange: (publicToken) => simulated.exchange(publicToken, 'anybody'),
    accounts: (of) => simulated.accounts(of),
    balances: (of) => simulated.balances(of),
    numbers: (of, accountId) => simulated.numbers(of, accountId),
    async transactions(of, cursor) {
      parts += 1
      await held
      return simulated.transactions(of, cursor)
    },
  }
  app = { ...process.app, bankLinks: { live: link, sandbox: link } }
})
afterAll(() => process?.bench.close())
beforeEach(async () => {
  insured = await registerInsured(app)
  tokens += 1
  token = `public-sandbox-${tokens}`
  parts = 0
  held = Promise.resolve()
})

const linked = (owner: { employer_id: string | null; carrier_id: string | null }, on = app) => {
  const client = {
    ...({ tenant_id: insured.tenantId, environment: 'live' } as const),
    ...({ carrier_ids: 'all', employer_ids: 'all', client_id: 'client' } as const),
  }
  return exchange(on, client, { publicToken: token, user_id: 'u', ...owner }, operatorContext())
}

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
