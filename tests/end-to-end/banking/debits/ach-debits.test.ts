import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { accountBody, achDebitsOf, digits } from '../../../support/ach-debits.ts'
import { storedSince } from '../../../support/core.ts'
import { newClient } from '../../../support/intake.ts'
import { webhookEvents } from '../../../support/payments.ts'
import { type Answer, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Debits that partners ask for, and what the ledger tells of them. */

const ID = /^[0-9a-f]{24}$/
let service: SharedService
let tenant: SeededTenant
let sandbox: SeededTenant
let bank: ReturnType<typeof achDebitsOf>
let account: string

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  sandbox = await seedTenant(service, { environment: 'sandbox' })
  bank = achDebitsOf(service, tenant)
  account = await bank.account()
})

const refusal = ({ status, body }: Answer) => [status, body.ok, body.error, body.message]
const create = (body: unknown, key?: string, as?: Readonly<Record<string, string>>) =>
  bank.ask('POST', '/ach/debits', body, key, as)
const state = (id: string) => bank.shown(`/ach/debits/${id}/status`)
const history = (id: string) => bank.shown(`/ach/transactions/${id}/history`)

describe('a debit', () => {
  test.each([
    ['effective_date', 'x'],
    ['effective_date', '2026-02-30'],
    ['effective_date', '9999-12-31'],
    ['effective_date', '2198-12-31T24:00:00Z'],
    ['idempotency_key', ''],
    // the rule of payment links and subscriptions
    ['metadata', { order: 'x'.repeat(64 * 1024) }],
  ] as const)('is refused by the name of the field: %s %j', async (field, value) => {
    const answer = await create(bank.debit(account, { [field]: value }))
    expect(refusal(answer)).toEqual([400, false, 'Bad Request', expect.stringContaining(field)])
  })

  test.each(['1000.0000000000000001', '999999999.9999999999', '12550.00000000000000005'])(
    'is refused by the name of the amount where reading it would change it: %s',
    async (amount) => {
      const body = JSON.stringify({ ...bank.debit(account), amount_cents: 0 })
      const answer = await create(body.replace('"amount_cents":0', `"amount_cents":${amount}`))
      expect(refusal(answer)).toEqual([400, false, 'Bad Request', expect.stringMatching(/^amount_cents /)])
    },
  )

  test.each(['paygo', 'down_payment', 'installment', 'late_payment', 'extra_payment', 'overdue_payment'])(
    'is PENDING, and reads pending, for the purpose %s',
    async (payment_purpose) => {
      const body = bank.debit(account, { payment_purpose })
      const created = await bank.made(201, create(body))
      expect(created).toEqual({
        success: true,
        transaction_id: expect.stringMatching(ID),
        status: 'PENDING',
        amount: 12_550,
      })
      expect(await state(created.transaction_id)).toMatchObject({
        status: 'pending',
        status_group: 'in_flight',
      })
    },
  )

  test('is shown by status, list, history and fees as it was asked for', async () => {
    const asked = {
      amount_cents: 9_999_999_999,
      description: 'Policy 2026',
      metadata: { order: 'A-1' },
      effective_date: '2199-06-01T23:30:00-05:00',
    }
    const id = await bank.created(account, asked)
    const time = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
    const { employerId: employer_id, carrierId: carrier_id, policyId: policy_id } = tenant
    const shown = {
      transaction_id: id,
      status: 'pending',
      status_group: 'in_flight',
      reason: null,
      failure_reason: null,
      amount_cents: 9_999_999_999,
      employer_id,
      policy_id,
      carrier_id,
      created_at: time,
      updated_at: time,
    }
    expect(await state(id)).toEqual(shown)
    const [newest] = await bank.list()
    expect(newest).toEqual({
      ...shown,
      leg_id: id,
      source: 'api',
      return_code: null,
      currency: 'usd',
      payment_purpose: 'paygo',
      description: 'Policy 2026',
      bank_account_id: account,
      account_last4: expect.stringMatching(/^\d{4}$/),
      effective_date: '2199-06-01',
      metadata: { order: 'A-1' },
    })
    expect(await history(id)).toEqual([
      {
        at: shown.created_at,
        from_status: null,
        to_status: 'pending',
        reason: null,
        note: 'Created by a call',
      },
    ])
    const fees = await bank.shown(`/ach/transactions/${id}/fees`)
    expect(fees).toEqual({ transaction_id: id, fees: [], total_cents: 0 })
  })

  test.each(['2199-06-01', '2199-06-01T23:30', '2199-06-01T23:30:00.5', '2199-06-01T23:30:00+05:00'])(
    'takes effect on the day that is written in %s',
    async (effective_date) => {
      await bank.created(account, { effective_date })
      expect((await bank.list())[0]).toMatchObject({ effective_date: '2199-06-01' })
    },
  )

  test('names employer, carrier, policy and account that are there and belong together', async () => {
    const other = await bank.insured()
    const [elsewhere] = await Promise.all([bank.account(other.employerId)])
    for (const field of ['employer_id', 'carrier_id', 'policy_id', 'bank_account_id']) {
      for (const id of ['f'.repeat(24), 'x']) {
        const answer = await create(bank.debit(account, { [field]: id }))
        expect(refusal(answer)).toEqual([404, false, 'Not Found', expect.stringContaining(field)])
      }
    }
    const wrong = [
      ['policy_id', { policy_id: other.policyId }],
      ['bank_account_id', { bank_account_id: elsewhere }],
    ] as const
    for (const [field, overrides] of wrong) {
      const answer = await create(bank.debit(account, overrides))
      expect(refusal(answer)).toEqual([400, false, 'Bad Request', expect.stringContaining(field)])
    }
    const mine = await newClient(service, tenant.tenantId, {
      environment: 'live',
      employer_ids: [tenant.employerId],
    })
    for (const [field, overrides] of wrong) {
      const answer = await create(bank.debit(account, overrides), undefined, mine.headers)
      expect(refusal(answer)).toEqual([403, false, 'Forbidden', expect.stringContaining(field)])
    }
    const outside = await newClient(service, tenant.tenantId, {
      environment: 'live',
      employer_ids: [other.employerId],
    })
    const answer = await create(bank.debit(account), undefined, outside.headers)
    expect(refusal(answer)).toEqual([403, false, 'Forbidden', expect.stringContaining('employer_id')])
    // what names nothing goes first
    const unknown = await create(bank.debit('f'.repeat(24)), undefined, outside.headers)
    expect(unknown.status).toBe(404)
  })
})

describe('the key of a debit', () => {
  test('answers the original to the same body, and is refused another one', async () => {
    const body = bank.debit(account, { idempotency_key: randomUUID(), metadata: { b: '1', a: '2' } })
    const first = await create(body)
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null])
    const again = await create({ ...body, metadata: { a: '2', b: '1' } })
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
    expect(again.body).toEqual(first.body)
    for (const change of [
      { amount_cents: 1 },
      { description: 'x' },
      { metadata: {} },
      { effective_date: '2199-01-01' },
    ]) {
      const changed = await create({ ...body, ...change })
      expect(refusal(changed)).toEqual([409, false, 'Conflict', expect.stringContaining('idempotency_key')])
      const { transaction_id: id } = first.body.data
      expect(changed.body).toMatchObject({ id, data: { id }, message: expect.stringContaining(id) })
    }
    // a key that does not reach the first debit is not told which it is
    const own = await bank.insured()
    const scope = { environment: 'live', employer_ids: [own.employerId] } as const
    const { headers } = await newClient(service, tenant.tenantId, scope)
    const theirs = await bank.account(own.employerId)
    const ids = { employer_id: own.employerId, policy_id: own.policyId }
    const unseen = await create({ ...body, ...ids, bank_account_id: theirs }, undefined, headers)
    expect(refusal(unseen)).toEqual([409, false, 'Conflict', 'idempotency_key was used for another debit'])
    expect(unseen.body).not.toHaveProperty('id')
    // what is wrong with a changed body is told first
    expect((await create({ ...body, policy_id: 'f'.repeat(24) })).status).toBe(404)
    const outside = await newClient(service, tenant.tenantId, { environment: 'live', carrier_ids: [] })
    expect((await create(body, undefined, outside.headers)).status).toBe(403)
    const rows = (await bank.list()).filter(
      (one: { transaction_id: string }) => one.transaction_id === first.body.data.transaction_id,
    )
    expect(rows).toHaveLength(1)
  })

  test('is of one tenant and environment', async () => {
    const idempotency_key = randomUUID()
    const other = achDebitsOf(service, sandbox)
    const ids = [
      await bank.created(account, { idempotency_key }),
      await other.created(await other.account(), { idempotency_key }),
    ]
    expect(new Set(ids).size).toBe(2)
  })

  test('may stand in the header, too', async () => {
    const [idempotency_key, body] = [randomUUID(), bank.debit(account)]
    // what is refused leaves both keys free
    const refused = await create({ ...body, idempotency_key, policy_id: 'f'.repeat(24) }, randomUUID())
    expect(refused.status).toBe(404)
    const header = randomUUID()
    await storedSince(service)
    const both = await create({ ...body, idempotency_key }, header)
    const again = await create({ ...body, idempotency_key }, header)
    expect([again.status, again.body]).toEqual([200, both.body])
    const stored = (await storedSince(service)).map(({ type }) => type)
    expect(stored.slice(0, 3)).toEqual(['IdempotencyKeyClaimed', 'DebitKeyClaimed', 'BankDebitCreated'])
    expect(stored).not.toContain('IdempotencyKeyAnswered')
    const other = await create({ ...body, idempotency_key: randomUUID() }, header)
    expect([other.status, other.body.id]).toEqual([409, both.body.data.transaction_id])
    const otherHeader = await create({ ...body, idempotency_key }, randomUUID())
    expect([both.status, otherHeader.status, otherHeader.body]).toEqual([201, 200, both.body])
  })
})

describe('a debit on its way', () => {
  test('is cancelled until its batch closes', async () => {
    const [waiting, scheduled, gone] = [
      await bank.created(account),
      await bank.created(account),
      await bank.created(account),
    ]
    const cancel = (id: string) => bank.ask('POST', `/ach/debits/${id}/cancel`, {})
    expect(await bank.made(200, cancel(waiting))).toMatchObject({
      status: 'cancelled',
      status_group: 'failed',
    })
    await bank.ops('/debit-batches')
    expect((await state(scheduled)).status).toBe('Scheduled')
    expect((await bank.made(200, cancel(scheduled))).status).toBe('cancelled')
    expect((await bank.made(200, cancel(scheduled))).status).toBe('cancelled')
    const moves = (await history(scheduled)).map((one: Record<string, string>) => [
      one.from_status,
      one.to_status,
    ])
    expect(moves).toEqual([
      [null, 'pending'],
      ['pending', 'Scheduled'],
      ['Scheduled', 'cancelled'],
    ])
    const { batch_closes_at } = await bank.ops(`/bank-rail/${gone}/acknowledge`)
    expect(batch_closes_at).toEqual(expect.any(String))
    expect(refusal(await cancel(gone)).slice(0, 3)).toEqual([409, false, 'Conflict'])
    expect((await state(gone)).status).toBe('submitted')
  })

  test('moves by the verbs of the sandbox, for sandbox keys, and tells nobody', async () => {
    const other = achDebitsOf(service, sandbox)
    const id = await other.created(await other.account())
    const verb = (name: string, body: unknown = {}) =>
      other.ask('POST', `/sandbox/ach/debits/${id}/${name}`, body)
    expect((await verb('acknowledge')).status).toBe(409)
    await other.ops('/debit-batches')
    expect((await other.made(200, verb('acknowledge'))).status).toBe('submitted')
    expect((await verb('settle', { transmission_date: 'x' })).status).toBe(400)
    const settled = await other.made(200, verb('settle', { processor_status: 'SB Remit' }))
    expect([settled.status, settled.status_group]).toEqual(['processed', 'money_landed'])
    for (const return_code of ['x', 'R00', 'R86']) {
      expect((await verb('return', { return_code })).status).toBe(400)
    }
    expect(await other.made(200, verb('return', { return_code: 'R01' }))).toMatchObject({
      status: 'returned',
    })
    const notes = (await other.shown(`/ach/transactions/${id}/history`)).map(
      ({ note }: { note: string }) => note,
    )
    expect(notes.slice(-2)).toEqual([expect.stringContaining('SB Remit'), expect.stringContaining('R01')])
    const [row] = await other.list()
    expect(row).toMatchObject({ transaction_id: id, status: 'returned', return_code: 'R01' })
    const own = await bank.created(account)
    for (const name of ['acknowledge', 'settle', 'return']) {
      expect((await bank.ask('POST', `/sandbox/ach/debits/${own}/${name}`, {})).status).toBe(403)
    }
    expect(await webhookEvents(service, sandbox.tenantId)).toEqual([])
  })
})

describe('numbers that a return disabled', () => {
  const enter = (numbers: object, as: SeededTenant = tenant, key?: string) =>
    achDebitsOf(service, as).ask('POST', '/bank-accounts/ach', accountBody(as.employerId, numbers), key)
  const accountOf = async (id: string) => (await bank.shown(`/bank-accounts/ach/${id}`)).status
  const fresh = () => ({ routing_number: '021000021', account_number: digits(14) })
  /** Sends a debit of an account back. */
  const sendBack = async (from: string, return_code: string) => {
    const id = await bank.created(from)
    await bank.ops('/debit-batches')
    await bank.ops(`/bank-rail/${id}/acknowledge`)
    await bank.ops(`/bank-rail/${id}/return`, { return_code })
    await bank.drain()
  }

  test.each(['R02', 'R29'])('with %s are debited no more, whichever account has them', async (code) => {
    const numbers = fresh()
    const [first, other] = [await enter(numbers), await enter(numbers)].map(({ body }) => body.data._id)
    const waiting = await bank.created(other)
    await sendBack(first, code)
    expect([await accountOf(first), await accountOf(other)]).toEqual(['disabled', 'disabled'])
    expect((await state(waiting)).status).toBe('failed')
    const key = randomUUID()
    const anew = await enter(numbers, tenant, key)
    expect([anew.status, anew.body.data.status]).toEqual([201, 'unverified'])
    expect((await enter(numbers, tenant, key)).body).toEqual(anew.body)
    const { _id } = anew.body.data
    expect(await accountOf(_id)).toBe('disabled')
    expect((await create(bank.debit(_id))).status).toBe(409)
    const listed = await bank.shown('/bank-accounts/ach?status=disabled&limit=200')
    expect(listed.map((one: { _id: string }) => one._id)).toContain(_id)
  })

  test('are debited in other tenants, and so are those that came back for want of money', async () => {
    const numbers = fresh()
    await sendBack((await enter(numbers)).body.data._id, 'R29')
    const elsewhere = await enter(numbers, sandbox)
    const there = achDebitsOf(service, sandbox)
    expect((await there.shown(`/bank-accounts/ach/${elsewhere.body.data._id}`)).status).toBe('unverified')
    const poor = fresh()
    await sendBack((await enter(poor)).body.data._id, 'R01')
    expect(await accountOf((await enter(poor)).body.data._id)).toBe('unverified')
  })
})

describe('the ledger', () => {
  let own: SeededTenant
  let other: ReturnType<typeof achDebitsOf>
  const ids: Record<string, string> = {}
  const found = async (query: string) => {
    const rows = await other.list(query)
    expect(await other.total(query)).toBe(rows.length)
    return rows.map(({ transaction_id }: { transaction_id: string }) =>
      Object.keys(ids).find((name) => ids[name] === transaction_id),
    )
  }
  const sorted = async (query: string) => (await found(query)).sort()

  beforeAll(async () => {
    own = await seedTenant(service)
    other = achDebitsOf(service, own)
    const of = await other.account()
    for (const [name, amount_cents] of Object.entries({ pending: 300, cancelled: 100, submitted: 200 })) {
      ids[name] = await other.created(of, {
        amount_cents,
        effective_date: name === 'pending' ? '2099-01-05' : null,
      })
    }
    await other.ask('POST', `/ach/debits/${ids.cancelled}/cancel`, {})
    await other.ops('/debit-batches')
    await other.ops(`/bank-rail/${ids.submitted}/acknowledge`)
    ids.open = await other.created(of, { amount_cents: 400 })
    for (const status of ['at_sb', 'sb_remit', 'returned', 'canceled']) {
      const record = { employer_id: own.employerId, policy_id: own.policyId, premium_cents: 50 }
      const period = { period_start: '2025-01-01', period_end: '2025-01-31' }
      const { transaction_id } = await other.ops('/legacy-collections', { ...record, ...period, status })
      ids[`legacy ${status}`] = transaction_id
    }
  })

  test.each([
    ['PENDING', ['legacy at_sb', 'open', 'pending']],
    ['in_flight', ['legacy at_sb', 'open', 'pending']],
    ['Completed', ['legacy at_sb', 'legacy sb_remit', 'submitted']],
    ['money_landed', ['legacy at_sb', 'legacy sb_remit', 'submitted']],
    ['FAILED', ['cancelled', 'legacy canceled', 'legacy returned']],
    ['RETURNED', ['legacy returned']],
    ['SCHEDULED', ['pending']],
    ['sb_remit', ['legacy sb_remit']],
    ['cancelled', ['cancelled']],
    ['canceled', ['legacy canceled']],
    ['settled', []],
    ['nothing', []],
  ])('finds by the word %s', async (word, names) => {
    expect(await sorted(`&status=${word}`)).toEqual(names)
  })

  test('shows records of the legacy service beside debits', async () => {
    const id = ids['legacy at_sb']!
    const dated = '2025-01-31T00:00:00.000Z'
    const shown = {
      transaction_id: id,
      status: 'at_sb',
      status_group: 'in_flight',
      reason: null,
      failure_reason: null,
      amount_cents: 50,
      employer_id: own.employerId,
      policy_id: own.policyId,
      carrier_id: own.carrierId,
      created_at: dated,
      updated_at: dated,
    }
    expect(await other.shown(`/ach/debits/${id}/status`)).toEqual(shown)
    const row = (await other.list('&status=at_sb'))[0]
    expect(row).toMatchObject({
      ...shown,
      source: 'legacy',
      payment_purpose: null,
      effective_date: '2025-01-31',
    })
    const [first] = await other.shown(`/ach/transactions/${id}/history`)
    expect(first).toMatchObject({ from_status: null, to_status: 'at_sb' })
    expect((await other.shown(`/ach/transactions/${id}/fees`)).total_cents).toBe(0)
    expect((await other.ask('POST', `/ach/debits/${id}/cancel`, {})).status).toBe(409)
  })

  test('is narrowed and sorted', async () => {
    const debits = ['open', 'submitted', 'cancelled', 'pending']
    expect((await found('')).slice(0, 4)).toEqual(debits)
    expect(await found('&from_date=2025-02-01')).toEqual(debits)
    expect(await found('&to_date=2025-01-31&status=sb_remit')).toEqual(['legacy sb_remit'])
    expect(await found('&to_date=2025-01-30')).toEqual([])
    // of a time without a zone, the one in UTC
    expect(await found('&from_date=2025-02-01T00:00:00')).toEqual(debits)
    expect(await found('&to_date=2025-01-30T23:59:59.999')).toEqual([])
    // which in UTC is in the year 10000
    expect(await found('&from_date=2025-02-01&to_date=9999-12-31T23:59:59-05:00')).toEqual(debits)
    expect(await found('&from_date=2025-02-01&sort_by=amount_cents&sort_order=asc')).toEqual([
      ...['cancelled', 'submitted', 'pending', 'open'],
    ])
    expect((await found('&sort_by=amount_cents')).slice(0, 4)).toEqual([
      'open',
      'pending',
      'submitted',
      'cancelled',
    ])
    expect((await found('&sort_by=effective_date&sort_order=asc')).slice(4)).toEqual([
      ...['submitted', 'pending', 'cancelled', 'open'],
    ])
    expect((await found('&sort_by=effective_date&status=COMPLETED')).toReversed()).toEqual([
      ...['legacy at_sb', 'legacy sb_remit', 'submitted'],
    ])
    expect(await found('&sort_by=status&sort_order=asc&from_date=2025-02-01')).toEqual([
      ...['pending', 'cancelled', 'open', 'submitted'],
    ])
    for (const [query, names] of [
      [`policy_id=${own.policyId}`, 8],
      [`carrier_id=${own.carrierId}&employer_id=${own.employerId}`, 8],
      [`policy_id=${tenant.policyId}`, 0],
      [`carrier_id=${tenant.carrierId}`, 0],
      ['employer_id=x', 0],
    ] as const) {
      expect(await found(`&${query}`)).toHaveLength(names)
    }
    for (const query of ['sort_by=x', 'sort_order=x', 'from_date=x', 'page=0']) {
      expect((await other.ask('GET', `/ach/transactions?${query}`)).status).toBe(400)
    }
    for (const query of ['limit=1&page=1&limit=2', 'status=PENDING&status=FAILED', 'page=1&page=1']) {
      const answer = await other.ask('GET', `/ach/transactions?${query}`)
      const [field] = query.split('=')
      expect(refusal(answer)).toEqual([400, false, 'Bad Request', `${field} is given more than once`])
    }
    const pages = await Promise.all(
      [1, 2, 3, 4].map((page) => other.shown(`/ach/transactions?limit=2&page=${page}`)),
    )
    expect(new Set(pages.flat().map((one: { transaction_id: string }) => one.transaction_id)).size).toBe(8)
  })
})
