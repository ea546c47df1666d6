import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { achDebitsOf, linkedAccountBody } from '../../../support/ach-debits.ts'
import { allEvents } from '../../../support/core.ts'
import { newClient } from '../../../support/intake.ts'
import { partner } from '../../../support/payments.ts'
import { PlaidStandIn } from '../../../support/plaid-stand-in.ts'
import {
  type Answer,
  askOperator,
  operate,
  type SeededTenant,
  seedCarrier,
  seedTenant,
} from '../../../support/seed.ts'
import {
  type RunningService,
  type SharedService,
  sharedService,
  startService,
} from '../../../support/service.ts'

type Json = ReturnType<typeof JSON.parse>
const NO_ID = 'f'.repeat(24)
/** A public token of the simulated bank link that nobody has used: services of suites are shared. */
let tokens = 0
const newToken = () => `public-sandbox-${process.pid}-${Date.now()}-${tokens++}`

/** Calls of a partner to a service. */
function callsTo(service: { readonly paymentsUrl: string }, headers: Readonly<Record<string, string>>) {
  const ask = (method: string, path: string, body?: unknown, key?: string) =>
    partner(service, headers, method, path, body, key)
  const data = async (answered: Promise<Answer>, status = 200): Promise<Json> => {
    const { status: got, body, text } = await answered
    if (got !== status) throw new Error(`${got} ${text}`)
    return body.data
  }
  return {
    ask,
    post: (path: string, body: unknown, key?: string) => ask('POST', path, body, key),
    data,
    get: (path: string): Promise<Json> => data(ask('GET', path)),
    exchange: (body: unknown): Promise<Json> => data(ask('POST', '/bankconnect/exchange', body), 201),
    sync: (item_id: string): Promise<Json> => data(ask('POST', '/bankconnect/sync-accounts', { item_id })),
  }
}

describe('with the simulated bank link', () => {
  let service: SharedService
  let tenant: SeededTenant
  let calls: ReturnType<typeof callsTo>
  let of: { readonly user_id: string; readonly employer_id: string; readonly carrier_id: string }
  const exchange = (overrides: object = {}) =>
    calls.exchange({ ...of, public_token: newToken(), ...overrides })
  const linkedAccount = (made: Json, index = 0) => linkedAccountBody(tenant.employerId, made, index)
  const accountsOf = async () => (await calls.get('/bank-accounts?connection_type=bankconnect')) as Json[]

  beforeAll(async () => {
    service = await sharedService()
    tenant = await seedTenant(service)
    calls = callsTo(service, tenant.clientHeaders)
    of = { user_id: 'user-7', employer_id: tenant.employerId, carrier_id: tenant.carrierId }
  })

  test('a widget is opened by a token', async () => {
    const { link_token } = await calls.data(calls.post('/bankconnect/link-token', { user_id: 'user-7' }))
    expect(link_token).toMatch(/^link-/)
    const { bankconnect_item_id: item_id } = await exchange()
    const update = { user_id: 'user-7', item_id }
    const updated = await calls.data(calls.post('/bankconnect/link-token/update', update))
    expect(updated.link_token).not.toBe(link_token)
  })

  test('an exchange makes a connection and a bank account for each of its accounts', async () => {
    const before = (await accountsOf()).length
    const made = await exchange()
    expect(made).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      bankconnect_item_id: expect.any(String),
      ...of,
      institution_name: 'Simulated Bank',
      status: 'active',
      access_token: expect.stringMatching(/^bca_/),
      created_at: expect.any(String),
      updated_at: expect.any(String),
      accounts: ['checking', 'savings'].map((type) => ({
        bankconnect_account_id: expect.any(String),
        bank_account_id: expect.any(String),
        name: expect.any(String),
        mask: expect.stringMatching(/^\d{4}$/),
        type,
        bank_name: 'Simulated Bank',
      })),
    })
    const { access_token: _handle, accounts, ...shown } = made
    expect(await calls.get(`/bankconnect/connections/${made._id}`)).toEqual(shown)
    for (const filter of ['', `?employer_id=${of.employer_id}&carrier_id=${of.carrier_id}&status=active`]) {
      expect((await calls.get(`/bankconnect/connections${filter}`))[0]).toEqual(shown)
    }
    for (const filter of [`employer_id=${NO_ID}`, `carrier_id=${NO_ID}`, 'status=login_required']) {
      expect(await calls.get(`/bankconnect/connections?${filter}`)).toEqual([])
    }
    expect((await accountsOf()).length).toBe(before + 2)
    for (const { bank_account_id, name, bank_name } of accounts) {
      expect(await calls.get(`/bank-accounts/${bank_account_id}`)).toMatchObject({
        ...of,
        name,
        bank_name,
        connection_type: 'bankconnect',
        status: 'active',
        primary: false,
      })
    }
  })

  test('the same item again is the same connection', async () => {
    const public_token = newToken()
    const first = await exchange({ public_token })
    const [counted, connections] = [await accountsOf(), await calls.get('/bankconnect/connections')]
    const again = await exchange({ public_token })
    expect([again._id, again.accounts]).toEqual([first._id, first.accounts])
    expect(again.access_token).not.toBe(first.access_token)
    expect((await calls.get('/bankconnect/connections')).length).toBe(connections.length)
    expect(await accountsOf()).toEqual(counted)
    for (const { access_token } of [first, again]) {
      const account = { ...linkedAccount(first), access_token }
      expect((await calls.post('/bank-accounts/ach/from-bankconnect', account)).status).toBe(201)
    }
  })

  test('a public token that is none links nothing', async () => {
    const known = (await accountsOf()).length
    const answer = await calls.post('/bankconnect/exchange', { ...of, public_token: 'invalid-public-token' })
    expect([answer.status, answer.body.error]).toEqual([400, 'Bad Request'])
    expect(answer.body.message).toContain('public_token')
    expect((await accountsOf()).length).toBe(known)
  })

  test('a sync that is repeated finds nothing new', async () => {
    const { bankconnect_item_id: item, accounts } = await exchange()
    const counted = await accountsOf()
    for (const _again of [1, 2]) {
      expect(await calls.sync(item)).toEqual({
        bankconnect_item_id: item,
        synced: 2,
        accounts,
        transactions: { changed: 0, removed: 0, has_more: false },
      })
    }
    expect(await accountsOf()).toEqual(counted)
    // one that its partner deleted does not come back
    const [{ bank_account_id }] = accounts
    await calls.data(calls.ask('DELETE', `/bank-accounts/${bank_account_id}`))
    await calls.sync(item)
    expect((await calls.ask('GET', `/bank-accounts/${bank_account_id}`)).status).toBe(404)
  })

  test('balances come from the bank', async () => {
    const { bankconnect_item_id, accounts } = await exchange()
    const balances = await calls.data(calls.post('/bankconnect/balance', { bankconnect_item_id }))
    expect(balances).toEqual({
      bankconnect_item_id,
      accounts: accounts.map(({ bankconnect_account_id }: Json) => ({
        bankconnect_account_id,
        current_cents: expect.any(Number),
        available_cents: expect.any(Number),
        currency: 'usd',
      })),
    })
  })

  describe('the transactions of an item', () => {
    let all: Json[]
    let item: string
    const path = (filter = '') => `/bankconnect/transactions?bankconnect_item_id=${item}${filter}`
    beforeAll(async () => {
      item = (await exchange()).bankconnect_item_id
      all = await calls.get(path())
    })

    test('are listed, the latest first, and shown one by one', async () => {
      expect(all).toHaveLength(18)
      expect(all.map(({ date }) => date)).toEqual(
        all
          .map(({ date }) => date)
          .toSorted()
          .reverse(),
      )
      for (const one of all.slice(0, 3)) {
        expect(one).toEqual({
          _id: expect.any(String),
          bankconnect_item_id: item,
          bankconnect_account_id: expect.any(String),
          employer_id: tenant.employerId,
          date: expect.any(String),
          amount_cents: expect.any(Number),
          direction: expect.stringMatching(/^(debit|credit)$/),
          currency: 'usd',
          description: expect.stringMatching(/^[A-Z][a-z]+/),
          pending: expect.any(Boolean),
        })
        expect(await calls.get(`/bankconnect/transactions/${one._id}`)).toEqual(one)
      }
      const page = await calls.ask('GET', path('&limit=5&page=4'))
      expect(page.body.data).toEqual(all.slice(15))
      expect(page.body.pagination).toMatchObject({ total: 18, total_pages: 4, has_more: false })
    })

    test('are filtered, dates inclusive', async () => {
      const [from, to] = [all[12]!.date, all[6]!.date]
      expect(await calls.get(path(`&date_from=${from}&date_to=${to}`))).toEqual(all.slice(6, 13))
      for (const pending of [true, false]) {
        const wanted = all.filter((one) => one.pending === pending)
        expect(await calls.get(path(`&pending=${pending}`))).toEqual(wanted)
      }
      const { bankconnect_account_id } = all[0]!
      const ofAccount = all.filter((one) => one.bankconnect_account_id === bankconnect_account_id)
      expect(await calls.get(path(`&bankconnect_account_id=${bankconnect_account_id}`))).toEqual(ofAccount)
      expect(await calls.get(path(`&employer_id=${NO_ID}`))).toEqual([])
      // what no database takes
      expect(await calls.get(path('&bankconnect_account_id=a%00b'))).toEqual([])
      expect(await calls.get('/bankconnect/transactions?bankconnect_item_id=%00')).toEqual([])
      expect((await calls.get(path(`&employer_id=${tenant.employerId}`))).length).toBe(18)
    })

    test('are added up in whole cents', async () => {
      const sumOf = (direction: string, some: Json[]) =>
        some.filter((one) => one.direction === direction).reduce((sum, one) => sum + one.amount_cents, 0)
      const summaryOf = (some: Json[]) => ({
        total_transactions: some.length,
        total_debits_cents: sumOf('debit', some),
        total_credits_cents: sumOf('credit', some),
        net_cents: sumOf('credit', some) - sumOf('debit', some),
      })
      const summary = (filter: string) => calls.get(`/bankconnect/transactions/summary?${filter}`)
      expect(await summary(`bankconnect_item_id=${item}`)).toEqual(summaryOf(all))
      const since = `bankconnect_item_id=${item}&date_from=${all[6]!.date}`
      expect(await summary(since)).toEqual(summaryOf(all.slice(0, 7)))
      expect(await summary('bankconnect_item_id=none')).toEqual(summaryOf([]))
      const { headers } = await newClient(service, tenant.tenantId, { employer_ids: [] })
      const reached = await callsTo(service, headers).get('/bankconnect/transactions/summary')
      expect(reached).toEqual(summaryOf([]))
    })
  })

  test('what is nobody’s is for keys of all employers and carriers, and for the one that linked it', async () => {
    const keys = [{ employer_ids: [tenant.employerId] }, { carrier_ids: [tenant.carrierId] }]
    const narrowed = await Promise.all(
      keys.map(async (scope) => {
        const { headers } = await newClient(service, tenant.tenantId, { environment: 'live', ...scope })
        return callsTo(service, headers)
      }),
    )
    const nobodys = { user_id: 'user-7', employer_id: null, carrier_id: null }
    const whole = { calls, made: await calls.exchange({ ...nobodys, public_token: newToken() }) }
    const [one, other] = await Promise.all(
      narrowed.map(async (own) => {
        const public_token = newToken()
        return { calls: own, public_token, made: await own.exchange({ ...nobodys, public_token }) }
      }),
    )
    for (const [reader, owner, isOpen] of [
      ...([whole, one!, other!] as const).map((own) => [own.calls, own, true] as const),
      [calls, one!, true],
      [one!.calls, whole, false],
      [one!.calls, other!, false],
      [other!.calls, one!, false],
    ] as const) {
      const { _id, bankconnect_item_id: item_id, accounts, access_token } = owner.made
      const [transaction] = await owner.calls.get(`/bankconnect/transactions?bankconnect_item_id=${item_id}`)
      const { bank_account_id, bankconnect_account_id } = accounts[0]
      const account = { owner_type: 'employer', owner_id: tenant.employerId, access_token }
      for (const [method, path, body] of [
        ['GET', `/bankconnect/connections/${_id}`],
        ['GET', `/bankconnect/transactions/${transaction._id}`],
        ['GET', `/bank-accounts/${bank_account_id}`],
        ['PATCH', `/bank-accounts/${bank_account_id}`, { name: 'Renamed' }],
        ['POST', '/bankconnect/sync-accounts', { item_id }],
        ['POST', '/bankconnect/balance', { bankconnect_item_id: item_id }],
        ['POST', '/bankconnect/link-token/update', { user_id: 'u', item_id }],
        [
          ...(['POST', '/bank-accounts/ach/from-bankconnect'] as const),
          { ...account, bankconnect_item_id: item_id, bankconnect_account_id },
        ],
      ] as const) {
        const { status } = await reader.ask(method, path, body)
        expect([path, status < 300 ? 'open' : status]).toEqual([path, isOpen ? 'open' : 403])
      }
      const listed = async (path: string) =>
        (await reader.get(`${path}limit=200`)).map((row: Json) => row._id)
      expect((await listed('/bankconnect/connections?')).includes(_id)).toBe(isOpen)
      expect((await listed('/bank-accounts?')).includes(bank_account_id)).toBe(isOpen)
      const narrow = `?bankconnect_item_id=${item_id}`
      expect((await listed(`/bankconnect/transactions${narrow}&`)).length > 0).toBe(isOpen)
      const { total_transactions } = await reader.get(`/bankconnect/transactions/summary${narrow}`)
      expect(total_transactions > 0).toBe(isOpen)
    }
    // the same item for another key
    const again = { ...nobodys, public_token: one!.public_token }
    expect((await other!.calls.post('/bankconnect/exchange', again)).status).toBe(403)
    expect((await one!.calls.exchange(again))._id).toBe(one!.made._id)
    // nor is anything given away to nobody
    const owned = { user_id: 'u', name: 'Operating', bank_name: 'B', employer_id: tenant.employerId }
    const { _id } = await calls.data(calls.post('/bank-accounts', owned), 201)
    const moved = await one!.calls.ask('PATCH', `/bank-accounts/${_id}`, { employer_id: null })
    expect([moved.status, moved.body.message]).toEqual([403, expect.stringContaining('employer_id')])
  })

  test.each(['employer', 'connection'])('an item is closed once its %s is erased', async (whose) => {
    const other = await seedTenant(service)
    const own = callsTo(service, other.clientHeaders)
    const employer_id = whose === 'employer' ? other.employerId : null
    const body = { public_token: newToken(), user_id: 'u', employer_id }
    const { _id, bankconnect_item_id, access_token, accounts } = await own.exchange(body)
    const { data_subject } = await operate(service, 'GET', `/employers/${other.employerId}`)
    const erased = whose === 'employer' ? { subject: data_subject } : { connection_id: _id }
    await operate(service, 'POST', '/erasures', erased)
    const [{ bankconnect_account_id }] = accounts
    const owner = { owner_type: 'employer', owner_id: other.employerId }
    const item = { bankconnect_item_id }
    const item_id = bankconnect_item_id
    for (const [path, asked] of [
      ['/bankconnect/link-token/update', { item_id, user_id: 'u' }],
      ['/bankconnect/sync-accounts', { item_id }],
      ['/bankconnect/balance', item],
      ['/bankconnect/exchange', body],
      ['/bank-accounts/ach/from-bankconnect', { ...owner, ...item, bankconnect_account_id, access_token }],
    ] as const) {
      const answer = await own.post(path, asked)
      expect([path, answer.status, answer.body.message]).toEqual([
        path,
        409,
        expect.stringContaining('erased'),
      ])
    }
    const ofUser = `/bank-accounts/${accounts[0].bank_account_id}`
    expect(await own.get(ofUser)).toMatchObject({ user_id: '(erased)' })
    // linked anew it goes on
    const again = await own.exchange({ ...body, public_token: newToken() })
    await own.sync(again.bankconnect_item_id)
    expect(await own.get(`/bank-accounts/${again.accounts[0].bank_account_id}`)).toMatchObject({
      user_id: 'u',
    })
  })

  test('the user of a bank account is erased with its carrier, or with the account where it has none', async () => {
    const other = await seedTenant(service)
    const own = callsTo(service, other.clientHeaders)
    const named = { user_id: 'ada@b.example', name: 'Operating', bank_name: 'B' }
    const made = (whose: object) => own.data(own.post('/bank-accounts', { ...named, ...whose }), 201)
    const { _id: ofNobody } = await made({})
    const { _id: ofCarrier } = await made({ carrier_id: other.carrierId })
    const userOf = async (id: string) => (await own.get(`/bank-accounts/${id}`)).user_id
    const refused = await askOperator(service, 'POST', '/erasures', { bank_account_id: ofCarrier })
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('bank_account_id')])
    await operate(service, 'POST', '/erasures', { bank_account_id: ofNobody })
    expect([await userOf(ofNobody), await userOf(ofCarrier)]).toEqual(['(erased)', 'ada@b.example'])
    await operate(service, 'POST', '/erasures', { carrier_id: other.carrierId })
    expect(await userOf(ofCarrier)).toBe('(erased)')
  })

  test('an ACH account of a linked bank is verified, and tied to its bank account', async () => {
    const made = await exchange()
    for (const index of [0, 1]) {
      const { mask, type } = made.accounts[index]
      const body = { ...linkedAccount(made, index), nickname: 'Payroll', is_primary: index === 1 }
      const account = await calls.data(
        calls.post('/bank-accounts/ach/from-bankconnect', body, `ach-${made._id}-${index}`),
        201,
      )
      expect(account).toMatchObject({
        status: 'active',
        verified: true,
        connection_type: 'bankconnect',
        bank_name: 'Simulated Bank',
        account_last4: mask,
        routing_last4: '0000',
        account_type: type,
        nickname: 'Payroll',
        owner_type: 'employer',
        owner_id: tenant.employerId,
        is_primary: index === 1,
      })
      expect(await calls.get(`/bank-accounts/ach/${account._id}`)).toEqual(account)
      const repeated = await calls.post(
        '/bank-accounts/ach/from-bankconnect',
        body,
        `ach-${made._id}-${index}`,
      )
      expect([repeated.status, repeated.body.data]).toEqual([200, account])
    }
    const shown = await calls.get('/bank-accounts/ach?connection_type=bankconnect&status=active')
    expect(shown.length).toBeGreaterThan(1)
  })

  test('an ACH account needs the handle of its item, and an owner that the item is for', async () => {
    const [made, other] = [await exchange(), await exchange()]
    const body = linkedAccount(made)
    const carrier = { owner_type: 'carrier', owner_id: tenant.carrierId }
    const second = await seedCarrier(service, tenant.tenantId)
    for (const [overrides, status, field] of [
      [{ access_token: other.access_token }, 403, 'access_token'],
      [{ access_token: `${made.access_token}0` }, 403, 'access_token'],
      [{ bankconnect_account_id: other.accounts[0].bankconnect_account_id }, 404, 'bankconnect_account_id'],
      [{ owner_id: NO_ID }, 404, 'owner_id'],
      [{ ...carrier, owner_id: second }, 400, 'owner_id'],
      [{ nickname: 'Payroll 110000000' }, 400, 'nickname'],
      [carrier, 201, null],
    ] as const) {
      const answer = await calls.post('/bank-accounts/ach/from-bankconnect', { ...body, ...overrides })
      expect([overrides, answer.status]).toEqual([overrides, status])
      if (field !== null) expect(answer.body.message).toContain(field)
    }
    // what is linked for one of them is not the other's
    const [employers, carriers] = [
      await exchange({ carrier_id: null }),
      await exchange({ employer_id: null }),
    ]
    for (const refused of [{ ...linkedAccount(employers), ...carrier }, linkedAccount(carriers)]) {
      const answer = await calls.post('/bank-accounts/ach/from-bankconnect', refused)
      expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('owner_id')])
    }
  })

  test.each([
    ['unreachable', 502],
    ['timeout', 502],
    ['decline', 400],
  ] as const)('nothing is made while the bank link is away: %s', async (mode, status) => {
    const made = await exchange()
    const [accounts, connections] = [await accountsOf(), await calls.get('/bankconnect/connections')]
    const { bankconnect_item_id: item_id } = made
    for (const [path, body] of [
      ['/bankconnect/link-token', { user_id: 'u' }],
      ['/bankconnect/link-token/update', { user_id: 'u', item_id }],
      ['/bankconnect/exchange', { ...of, public_token: newToken() }],
      ['/bankconnect/sync-accounts', { item_id }],
      ['/bankconnect/balance', { bankconnect_item_id: item_id }],
      ['/bank-accounts/ach/from-bankconnect', linkedAccount(made)],
    ] as const) {
      await operate(service, 'POST', '/faults', { point: 'bank-link', mode })
      const answer = await calls.post(path, body)
      expect([path, answer.status]).toEqual([path, status])
      expect((await calls.post(path, body)).status).toBeLessThan(300)
    }
    expect((await accountsOf()).length).toBe(accounts.length + 2)
    expect((await calls.get('/bankconnect/connections')).length).toBe(connections.length + 1)
  })
})

// contract/banking/linking/bank-links asks Plaid for each of these, the simulated one above goes the same way
describe('with Plaid', { tags: 'long' }, () => {
  let plaid: PlaidStandIn
  let service: RunningService
  let tenant: SeededTenant
  let calls: ReturnType<typeof callsTo>
  const exchange = () =>
    calls.exchange({ public_token: plaid.logIn(), user_id: 'a@b.example', employer_id: tenant.employerId })

  beforeAll(async () => {
    plaid = await PlaidStandIn.start()
    service = await startService({ env: plaid.settings })
    tenant = await seedTenant(service)
    calls = callsTo(service, tenant.clientHeaders)
  })
  afterAll(async () => {
    await service?.stop()
    await plaid?.stop()
  })

  test('a bank is linked: what is debited comes from it', async () => {
    await calls.data(calls.post('/bankconnect/link-token', { user_id: 'a@b.example' }))
    expect(JSON.stringify(plaid.calls)).not.toContain('a@b.example')
    const linked = await exchange()
    const { access_token, accounts } = linked
    expect(accounts.map(({ type }: Json) => type)).toEqual(['checking', 'savings', 'other'])
    const from = (index: number) =>
      calls.post('/bank-accounts/ach/from-bankconnect', linkedAccountBody(tenant.employerId, linked, index))
    const account = await calls.data(from(0), 201)
    expect(account).toMatchObject({
      account_last4: accounts[0].mask,
      routing_last4: '1533',
      account_type: 'checking',
      bank_name: 'First Platypus Bank',
      status: 'active',
      verified: true,
    })
    const card = await from(2)
    expect([card.status, card.body.message]).toEqual([400, expect.stringContaining('bankconnect_account_id')])
    expect(access_token).not.toContain('production')
  })

  test('an account that the bank link does not vouch for is unverified, until a sync says otherwise', async () => {
    const public_token = plaid.logIn()
    plaid.verify('verification_failed')
    const linked = await calls.exchange({ public_token, user_id: 'u', employer_id: tenant.employerId })
    const account = linkedAccountBody(tenant.employerId, linked)
    const created = await calls.data(calls.post('/bank-accounts/ach/from-bankconnect', account), 201)
    const unverified = { status: 'unverified', verified: false, unverified_reason: 'verification_failed' }
    expect(created).toMatchObject(unverified)
    const synced = async (word: string | null) => {
      plaid.verify(word)
      await calls.sync(linked.bankconnect_item_id)
      return calls.get(`/bank-accounts/ach/${created._id}`)
    }
    const active = await synced('manually_verified')
    expect(active).toMatchObject({ status: 'active', verified: true })
    expect(active).not.toHaveProperty('unverified_reason')
    const expired = { status: 'unverified', verified: false, unverified_reason: 'verification_expired' }
    expect(await synced('verification_expired')).toMatchObject(expired)
  })

  describe('an account', () => {
    const link = async (persistent_account_id: string) => {
      const public_token = plaid.logIn()
      plaid.say({ persistent_account_id })
      const linked = await calls.exchange({ public_token, user_id: 'u', employer_id: tenant.employerId })
      const account = linkedAccountBody(tenant.employerId, linked)
      const made = await calls.data(calls.post('/bank-accounts/ach/from-bankconnect', account), 201)
      const [{ bank_account_id }] = linked.accounts
      return { id: made._id as string, bank_account_id, item: linked.bankconnect_item_id }
    }
    const status = async (id: string) => (await calls.get(`/bank-accounts/ach/${id}`)).status

    test('that is linked twice under two numbers is one: a return for one binds the other', async () => {
      const bank = achDebitsOf(service, tenant)
      const [one, other, third] = [await link('same'), await link('same'), await link('another')]
      const [debit, waiting] = [await bank.created(one.id), await bank.created(other.id)]
      await bank.ops('/debit-batches')
      await bank.ops(`/bank-rail/${debit}/acknowledge`)
      await bank.ops(`/bank-rail/${debit}/return`, { return_code: 'R02' })
      await bank.drain()
      expect(await Promise.all([one, other, third].map(({ id }) => status(id)))).toEqual([
        ...['disabled', 'disabled', 'active'],
      ])
      expect((await bank.shown(`/ach/debits/${waiting}/status`)).status).toBe('failed')
      expect(await status((await link('same')).id)).toBe('disabled')
      expect(JSON.stringify(await allEvents(service))).not.toContain('"same"')
    })

    test('that its bank lists no more is not debited until it does', async () => {
      const bank = achDebitsOf(service, tenant)
      const { id, bank_account_id, item } = await link('vanishing')
      const waiting = await bank.created(id)
      const list = plaid.unlist()
      await calls.sync(item)
      for (const named of [id, bank_account_id]) {
        const refused = await bank.ask('POST', '/ach/debits', bank.debit(named))
        expect([refused.status, refused.body.message]).toEqual([
          409,
          expect.stringContaining('bank_account_id'),
        ])
        const collection = bank.collection(named, bank.entry())
        expect((await bank.ask('POST', '/ach/collections', collection)).status).toBe(409)
      }
      expect(await calls.get(`/bank-accounts/ach/${id}`)).toMatchObject({ status: 'active', unlisted: true })
      await bank.ops('/debit-batches')
      const quarantined = { status: 'quarantined', reason: 'account_not_listed' }
      expect(await bank.shown(`/ach/debits/${waiting}/status`)).toMatchObject(quarantined)
      list()
      await calls.sync(item)
      expect(await calls.get(`/bank-accounts/ach/${id}`)).not.toHaveProperty('unlisted')
      await bank.created(id)
    })
  })

  test('transactions come, change and go', async () => {
    const { bankconnect_item_id: item } = await exchange()
    const list = () => calls.get(`/bankconnect/transactions?bankconnect_item_id=${item}&limit=200`)
    expect(await list()).toEqual([])
    for (let index = 0; index < 150; index += 1) plaid.happen('added', { transaction_id: `t${index}` })
    // of several at once, each ends with all of them there
    for (const { synced } of await Promise.all([1, 2, 3].map(() => calls.sync(item)))) {
      expect([synced, (await list()).length]).toEqual([3, 150])
    }

    const changed = {
      transaction_id: 't7',
      amount: -12.5,
      date: '2026-03-01',
      merchant_name: null,
      name: 'DEPOSIT',
    }
    plaid.happen('modified', changed)
    plaid.happen('removed', { transaction_id: 't8' })
    // what changes while it is read is read again
    plaid.fail(
      { type: 'TRANSACTIONS_ERROR', code: 'TRANSACTIONS_SYNC_MUTATION_DURING_PAGINATION' },
      { path: /sync/ },
    )
    expect((await calls.sync(item)).transactions).toEqual({ changed: 1, removed: 1, has_more: false })
    const after = await list()
    expect(after).toHaveLength(149)
    expect(after[0]).toMatchObject({ amount_cents: 1_250, direction: 'credit', description: 'DEPOSIT' })
    expect((await calls.sync(item)).transactions).toEqual({ changed: 0, removed: 0, has_more: false })
  })

  test('an item whose user must log in again says so until it is read again', async () => {
    const { _id, bankconnect_item_id: item_id } = await exchange()
    const statusOf = async () => (await calls.get(`/bankconnect/connections/${_id}`)).status
    plaid.fail({ type: 'ITEM_ERROR', code: 'ITEM_LOGIN_REQUIRED' })
    const refused = await calls.post('/bankconnect/sync-accounts', { item_id })
    expect([refused.status, refused.body.error]).toEqual([409, 'Conflict'])
    expect(refused.body.message).toContain('/bankconnect/link-token/update')
    expect(await statusOf()).toBe('login_required')
    expect(await calls.get('/bankconnect/connections?status=login_required')).toHaveLength(1)
    await calls.data(calls.post('/bankconnect/link-token/update', { user_id: 'u', item_id }))
    await calls.sync(item_id)
    expect(await statusOf()).toBe('active')
  })

  test('a bank without transactions is synced all the same', async () => {
    const { bankconnect_item_id: item } = await exchange()
    plaid.fail({ type: 'ITEM_ERROR', code: 'PRODUCTS_NOT_SUPPORTED' }, { path: /transactions/ })
    expect(await calls.sync(item)).toMatchObject({ synced: 3, transactions: { changed: 0 } })
  })

  test('an exchange that broke off goes on with what its public token was exchanged for', async () => {
    const body = { public_token: plaid.logIn(), user_id: 'u', employer_id: tenant.employerId }
    plaid.fail('unreachable', { path: /accounts/ })
    expect((await calls.post('/bankconnect/exchange', body)).status).toBe(502)
    expect((await calls.post('/bankconnect/exchange', body)).status).toBe(201)
    const used = await calls.post('/bankconnect/exchange', { ...body, employer_id: null })
    expect([used.status, used.body.message]).toEqual([400, expect.stringContaining('public_token')])
  })

  test('a transaction that cannot be read holds up the sync, not the exchange', async () => {
    const public_token = plaid.logIn()
    plaid.happen('added', { name: null } as never)
    const { bankconnect_item_id: item_id } = await calls.exchange({ public_token, user_id: 'u' })
    const refused = await calls.post('/bankconnect/sync-accounts', { item_id })
    expect([refused.status, refused.body.message]).toEqual([502, expect.stringContaining('added.0.name')])
    expect(await calls.get(`/bankconnect/transactions?bankconnect_item_id=${item_id}`)).toEqual([])
  })

  test('what a sandbox key asks for never reaches it', async () => {
    const asked = plaid.calls.length
    const { headers } = await newClient(service, tenant.tenantId, { environment: 'sandbox' })
    const sandbox = callsTo(service, headers)
    await sandbox.data(sandbox.post('/bankconnect/link-token', { user_id: 'u' }))
    const made = await sandbox.exchange({ public_token: newToken(), user_id: 'u' })
    await sandbox.sync(made.bankconnect_item_id)
    const refused = await sandbox.post('/bankconnect/exchange', { public_token: plaid.logIn(), user_id: 'u' })
    expect([refused.status, plaid.calls.length]).toEqual([400, asked])
  })
})
