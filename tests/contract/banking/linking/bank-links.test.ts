import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NO_FAULTS } from '../../../../application/ports/faults.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../../application/ports/provider.ts'
import { PlaidBankLink } from '../../../../infrastructure/providers/bank-link/plaid.ts'
import { SimulatedBankLink } from '../../../../infrastructure/providers/bank-link/simulated.ts'
import { PLAID_KEYS, type PlaidFault, PlaidStandIn } from '../../../support/plaid-stand-in.ts'
import { describeBankLink } from './bank-link.contract.ts'

let count = 0
describeBankLink('the simulated one', () => ({
  link: new SimulatedBankLink(NO_FAULTS),
  publicToken: () => `public-sandbox-${count++}`,
}))

describe('the simulated bank link', () => {
  const link = new SimulatedBankLink(NO_FAULTS)

  test('makes one item of a public token and an owner', async () => {
    const item = await link.exchange('public-sandbox-1', 'one')
    expect(await link.exchange('public-sandbox-1', 'one')).toEqual(item)
    expect((await link.exchange('public-sandbox-1', 'other')).itemId).not.toBe(item.itemId)
  })

  test.each([
    ['unreachable', ProviderUnavailable],
    ['timeout', ProviderUnavailable],
    ['decline', ProviderRefused],
  ] as const)('meets the fault %s', async (fault, error) => {
    const taken: unknown[] = []
    const faults = {
      take: async (...asked: unknown[]) => {
        taken.push(asked)
        return fault
      },
    }
    await expect(new SimulatedBankLink(faults).balances('access_sim_0')).rejects.toThrow(error)
    expect(taken).toEqual([['bank-link', ['unreachable', 'timeout', 'decline']]])
  })
})

let plaid: PlaidStandIn
let link: PlaidBankLink
beforeEach(async () => {
  plaid = await PlaidStandIn.start()
  link = new PlaidBankLink({ ...PLAID_KEYS, baseUrl: plaid.url })
})
afterEach(() => plaid.stop())

const logIn = () => {
  const publicToken = plaid.logIn()
  for (let index = 0; index < 101; index += 1) plaid.happen('added')
  return publicToken
}
describeBankLink('Plaid', () => ({ link, publicToken: logIn }))

describe('what is asked of Plaid', () => {
  const asked = { userId: 'u1', clientName: 'Rosen Masonry & Sons of Providence', token: null }

  test('for a widget', async () => {
    await link.createLinkToken(asked)
    const { token } = await link.exchange(plaid.logIn())
    await link.createLinkToken({ ...asked, token })
    const common = {
      client_name: 'Rosen Masonry & Sons of Provid',
      language: 'en',
      country_codes: ['US'],
      user: { client_user_id: 'u1' },
    }
    const sent = plaid.calls.filter(({ path }) => path === '/link/token/create').map((call) => call.asked)
    expect(sent).toEqual([
      { ...common, products: ['auth'], required_if_supported_products: ['transactions'] },
      {
        ...common,
        access_token: token,
        update: { account_selection_enabled: true },
        additional_consented_products: ['auth', 'transactions'],
      },
    ])
  })

  test('money out of an account is positive there, and exact cents here', async () => {
    const { token } = await link.exchange(plaid.logIn())
    plaid.happen('added', { transaction_id: 'a', amount: 1.005, merchant_name: null, name: 'CHECK 12' })
    plaid.happen('added', { transaction_id: 'b', amount: -0.1, pending: true })
    plaid.happen('modified', { transaction_id: 'a', amount: 1.1, iso_currency_code: null })
    plaid.happen('removed', { transaction_id: 'c' })
    expect(await link.transactions(token, null)).toEqual({
      changed: [
        expect.objectContaining({ providerId: 'a', outCents: 101, currency: 'usd', description: 'CHECK 12' }),
        expect.objectContaining({ providerId: 'b', outCents: -10, pending: true, description: 'Walmart' }),
        expect.objectContaining({ providerId: 'a', outCents: 110, currency: null }),
      ],
      removed: ['c'],
      cursor: expect.any(String),
      hasMore: false,
    })
    const [checking, savings] = await link.balances(token)
    expect([checking?.currentCents, checking?.availableCents]).toEqual([11_094, 10_094])
    expect([savings?.currentCents, savings?.availableCents]).toEqual([10, null])
  })

  test('an account that cannot be debited has no numbers', async () => {
    const { token } = await link.exchange(plaid.logIn())
    const { accounts } = await link.accounts(token)
    const card = accounts.find(({ type }) => type === 'other')!
    expect(card.mask).toBeNull()
    expect(await link.numbers(token, card.accountId)).toBeNull()
  })

  test.each([
    [null, null],
    ['automatically_verified', null],
    ['manually_verified', null],
    ['database_matched', null],
    ['database_insights_pass', null],
    ['verification_failed', 'verification_failed'],
    ['unsent', 'unsent'],
    ['pending_automatic_verification', 'pending_automatic_verification'],
    ['pending_manual_verification', 'pending_manual_verification'],
    ['verification_expired', 'verification_expired'],
    ['database_insights_fail', 'database_insights_fail'],
    ['a_word_of_later_years', 'a_word_of_later_years'],
  ])('an account that is said to be %s is not vouched for because of %s', async (word, unverifiedReason) => {
    const { token } = await link.exchange(plaid.logIn())
    plaid.verify(word)
    const [first] = (await link.accounts(token)).accounts
    expect(first).toMatchObject({ unverifiedReason })
    expect(await link.numbers(token, first!.accountId)).toMatchObject({ unverifiedReason })
  })

  test('nothing that was asked for meanwhile is mixed with what was', async () => {
    const { token } = await link.exchange(plaid.logIn())
    plaid.fail({ type: 'TRANSACTIONS_ERROR', code: 'TRANSACTIONS_SYNC_MUTATION_DURING_PAGINATION' })
    expect(await link.transactions(token, null)).toBe('changed_meanwhile')
  })
})

describe('what Plaid fails with', () => {
  const failing = async (fault: PlaidFault) => {
    const { token } = await link.exchange(plaid.logIn())
    plaid.fail(fault)
    // whether it answers at all is known by time alone
    const isLate = fault === 'silent' || fault === 'slow'
    const asked = isLate ? new PlaidBankLink({ ...PLAID_KEYS, baseUrl: plaid.url, timeoutMs: 300 }) : link
    return asked.accounts(token)
  }

  test.each<PlaidFault>([
    'unreachable',
    'silent',
    'cut',
    // no pause is as long as the call may take
    'slow',
    { body: '<html>', status: 302 },
    { body: '{}', status: 400 },
    { body: '<html>access-production</html>', status: 404 },
    { type: 'API_ERROR', code: 'INTERNAL_SERVER_ERROR', status: 500 },
    { type: 'RATE_LIMIT_EXCEEDED', code: 'ACCOUNTS_LIMIT', status: 429 },
    { type: 'INSTITUTION_ERROR', code: 'INSTITUTION_DOWN' },
    { type: 'ITEM_ERROR', code: 'PRODUCT_NOT_READY' },
    { type: 'INVALID_INPUT', code: 'INVALID_API_KEYS' },
  ])('passes: %o', async (fault) => {
    await expect(failing(fault)).rejects.toThrow(ProviderUnavailable)
  })

  test.each([
    ['ITEM_ERROR', 'ITEM_LOGIN_REQUIRED', 'login'],
    ['ITEM_ERROR', 'PRODUCTS_NOT_SUPPORTED', 'product'],
    ['INVALID_REQUEST', 'UNKNOWN_FIELDS', null],
  ] as const)('is refused: %s %s', async (type, code, about) => {
    const failed = failing({ type, code })
    await expect(failed).rejects.toThrow(`The bank link refused (${code})`)
    await expect(failed).rejects.toMatchObject({ about })
  })

  const calls: Readonly<Record<string, (token: string, accountId: string) => Promise<unknown>>> = {
    '/link/token/create': () => link.createLinkToken({ userId: 'u', clientName: 'Rosen', token: null }),
    '/item/public_token/exchange': () => link.exchange(plaid.logIn()),
    '/accounts/get': (token) => link.accounts(token),
    '/accounts/balance/get': (token) => link.balances(token),
    '/auth/get': (token, accountId) => link.numbers(token, accountId),
    '/transactions/sync': (token) => link.transactions(token, null),
  }
  const OTHER_TYPES = {
    accounts: 'x',
    item: 5,
    numbers: null,
    added: 5,
    removed: null,
    modified: {},
    has_more: 'no',
    next_cursor: 7,
    access_token: 5,
    item_id: {},
    link_token: 9,
  }

  test.each(Object.keys(calls))('passes: an answer to %s that is none', async (path) => {
    const { token } = await link.exchange(plaid.logIn())
    const { accountId } = (await link.accounts(token)).accounts[0]!
    const other = JSON.stringify(OTHER_TYPES)
    for (const body of ['', '{"link_token"', '<html>', 'null', '{}', '[]', '"text"', other]) {
      plaid.fail({ body }, { path: new RegExp(path) })
      const failed = calls[path]!(token, accountId)
      expect([body, await failed.catch((error) => error)]).toEqual([body, expect.any(ProviderUnavailable)])
    }
    await calls[path]!(token, accountId)
  })

  test.each([
    ...[{ amount: null }, { amount: '5.00' }, { amount: 1e300 }, { amount: 2 ** 53 }],
    ...[{ transaction_id: null }, { account_id: null }, { account_id: 'a\u0000' }, { name: null }],
    ...[{ pending: 'yes' }, { date: null }, { date: '2026-13-45' }, { iso_currency_code: 840 }],
  ])('passes: a transaction with %o', async (odd) => {
    const { token } = await link.exchange(plaid.logIn())
    plaid.happen('added')
    plaid.happen('added', odd as never)
    const field = `added.1.${Object.keys(odd)[0]}`
    const failed = link.transactions(token, null)
    await expect(failed).rejects.toThrow(ProviderUnavailable)
    await expect(failed).rejects.toThrow(`The bank link answered with what cannot be read (${field})`)
  })

  test.each<PlaidFault>([
    { type: 'ITEM_ERROR', code: 'ITEM_LOCKED' },
    { type: 'ITEM_ERROR', code: 'said Plaid' },
    { body: '{ "accounts": ["access-production"], "item": "said Plaid" }' },
  ])('no error holds a key, a token or what Plaid says: %o', async (fault) => {
    const error = await failing(fault).catch((thrown: Error) => thrown)
    const shown = JSON.stringify([error, (error as Error).message, (error as Error).cause ?? null])
    for (const secret of [PLAID_KEYS.secret, PLAID_KEYS.clientId, 'access-production', 'said Plaid']) {
      expect(shown).not.toContain(secret)
    }
  })
})
