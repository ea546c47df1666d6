import { beforeAll, describe, expect, test } from 'vitest'
import { bankDebitsOf, type SettlingCarrier } from '../../../support/bank-debits.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Credits in the collection accounts of the service, and the debits whose money they are. */

let service: SharedService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>
const carriers = {} as Record<'direct' | 'fbo' | 'none', SettlingCarrier>

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  bank = bankDebitsOf(service, tenant)
  carriers.direct = await bank.carrierOf('direct')
  carriers.fbo = await bank.carrierOf('fbo')
  carriers.none = await bank.carrierOf(null)
})

/** What became of a credit. */
const nothing = { matched: false, leg_id: null, confidence: null }
const taken = (leg_id: string, confidence: string) => ({ matched: true, leg_id, confidence })
let transactions = 0
const newTransaction = () => {
  transactions += 1
  return `bt_${transactions}`
}
/** An amount that no other test has: credits are matched by it. */
let amounts = 20_000
const newAmount = () => {
  amounts += 1
  return amounts
}

/** Balances of the live environment, in which all credits count. */
const live = async () => {
  const found = await operate(service, 'GET', `/carriers/${carriers.fbo.carrierId}/balances`)
  return found.find(({ environment }: typeof found) => environment === 'live')
}

describe('a credit in the account of the service', () => {
  test('pays the session that its reference names, once for each transaction of the bank', async () => {
    const { id, debitId } = await bank.submitted(carriers.fbo)
    await bank.report(debitId, 'settle')
    await bank.drain()
    expect((await bank.session(id)).status).toBe('scheduled')
    const { policyId: policy_id, carrierId: carrier_id } = carriers.fbo
    const first = { bank_transaction_id: newTransaction(), bank_date: '2030-03-04', reference: debitId }
    const received = await bank.tryOps('/bank-credits', { carrier_id, amount_cents: 10_500, ...first })
    expect([received.status, received.body.data]).toEqual([
      201,
      expect.objectContaining(taken(debitId, 'high')),
    ])
    const cleared = {
      payment_session_id: id,
      leg_id: debitId,
      amount_cents: 10_500,
      currency: 'usd',
      employer_id: tenant.employerId,
      policy_id,
      carrier_id,
      settlement_source: 'bank',
      bank_date: '2030-03-04',
      matched_cents: 10_500,
      confidence: 'high',
      matcher_version: expect.any(String),
    }
    expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toEqual([cleared])
    expect((await bank.session(id)).status).toBe('paid')
    // the same transaction changes nothing, whatever it is said to be now
    for (const change of [{}, { bank_date: '2030-03-05' }, { reference: null }]) {
      const again = { carrier_id, amount_cents: 10_500, ...first, ...change }
      expect((await bank.tryOps('/bank-credits', again)).status).toBe(200)
    }
    expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toHaveLength(1)
    // of two that name it the first stays; by its amount alone it is not matched anew
    for (const reference of [debitId, null]) {
      const other = { bank_transaction_id: newTransaction(), bank_date: '2030-03-06', reference }
      expect(await bank.credit(carriers.fbo, other)).toMatchObject(nothing)
    }
    expect(await bank.credit(carriers.fbo, first)).toMatchObject(taken(debitId, 'high'))
    expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toEqual([cleared])
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toEqual([])
  })

  test('matches nothing by a reference that does not fit', async () => {
    const amount_cents = newAmount()
    const { id, debitId } = await bank.submitted(carriers.fbo, { amount_cents })
    const other = await bank.carrierOf('fbo')
    const { effective_date: bank_date } = await bank.transaction(debitId)
    const tried = [
      await bank.credit(carriers.fbo, credit({ amount_cents: amount_cents - 1 })),
      await bank.credit(carriers.fbo, credit({ amount_cents: amount_cents + 1 })),
      await bank.credit(other, credit({})),
      await bank.credit(carriers.direct, credit({})),
    ]
    for (const one of tried) expect(one).toMatchObject(nothing)
    function credit(overrides: Record<string, unknown>) {
      return {
        bank_transaction_id: newTransaction(),
        bank_date,
        amount_cents,
        reference: debitId,
        ...overrides,
      }
    }
    expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toEqual([])
    expect((await bank.session(id)).status).toBe('scheduled')
  })

  test('matches by amount: one debit with medium confidence, of several the oldest with low', async () => {
    const amount_cents = newAmount()
    const first = await bank.submitted(carriers.fbo, { amount_cents })
    const second = await bank.submitted(carriers.fbo, { amount_cents })
    const { effective_date } = await bank.transaction(first.debitId)
    const credit = (bank_date: string) =>
      bank.credit(carriers.fbo, { bank_transaction_id: newTransaction(), bank_date, amount_cents })
    expect(await credit('2026-01-01')).toMatchObject(nothing)
    expect(await credit('2040-01-01')).toMatchObject(nothing)
    expect(await credit(effective_date)).toMatchObject(taken(first.debitId, 'low'))
    expect(await credit(effective_date)).toMatchObject(taken(second.debitId, 'medium'))
    expect(await credit(effective_date)).toMatchObject(nothing)
    for (const [{ id, debitId }, confidence] of [
      [first, 'low'],
      [second, 'medium'],
    ] as const) {
      expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toMatchObject([{ confidence }])
      expect((await bank.session(id)).status).toBe('paid')
    }
  })

  test.each([
    ['low', 2],
    ['medium', 1],
  ] as const)(
    'that loses its debit (%s) to one that names it is the next debit’s money',
    async (sure, debits) => {
      const amount_cents = newAmount()
      const before = await live()
      const submitted = []
      for (let n = 0; n < debits; n += 1) submitted.push(await bank.submitted(carriers.fbo, { amount_cents }))
      const { debitId } = submitted[0]!
      const { effective_date: bank_date } = await bank.transaction(debitId)
      const displaced = { bank_transaction_id: newTransaction(), bank_date, amount_cents }
      expect(await bank.credit(carriers.fbo, displaced)).toMatchObject(taken(debitId, sure))
      const naming = { bank_transaction_id: newTransaction(), bank_date, amount_cents, reference: debitId }
      expect(await bank.credit(carriers.fbo, naming)).toMatchObject(taken(debitId, 'high'))
      await bank.drain()
      const next = submitted[1] ?? (await bank.submitted(carriers.fbo, { amount_cents }))
      await bank.drain()
      expect(await bank.webhooksOfDebit('payment.debit_cleared', next.debitId)).toMatchObject([
        { confidence: 'medium' },
      ])
      expect((await bank.session(next.id)).status).toBe('paid')
      expect(await bank.credit(carriers.fbo, displaced)).toMatchObject(taken(next.debitId, 'medium'))
      expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toHaveLength(2)
      const listed = await operate(
        service,
        'GET',
        `/bank-credits?carrier_id=${carriers.fbo.carrierId}&limit=2`,
      )
      expect(listed).toMatchObject([
        { ...naming, ...taken(debitId, 'high') },
        { ...displaced, ...taken(next.debitId, 'medium') },
      ])
      const unmatched = await operate(
        service,
        'GET',
        `/bank-credits?tenant_id=${tenant.tenantId}&matched=false`,
      )
      expect(unmatched.map((one: typeof displaced) => one.bank_transaction_id)).not.toContain(
        displaced.bank_transaction_id,
      )
      const { received_cents, unmatched_cents } = await live()
      expect(received_cents - before.received_cents).toBe(2 * amount_cents)
      expect(unmatched_cents).toBe(before.unmatched_cents)
      const { difference_count } = (await bank.tryOps('/reconciliations', {})).body.data
      expect(difference_count).toBe(0)
    },
  )

  test('that come at once are each matched with a debit of their own', async () => {
    const amount_cents = newAmount()
    const debitIds = []
    for (let n = 0; n < 3; n += 1)
      debitIds.push((await bank.submitted(carriers.fbo, { amount_cents })).debitId)
    const { effective_date: bank_date } = await bank.transaction(debitIds[0]!)
    const credits = await Promise.all(
      Array.from({ length: 5 }, () =>
        bank.credit(carriers.fbo, { bank_transaction_id: newTransaction(), bank_date, amount_cents }),
      ),
    )
    const matched = credits.filter((one) => one.matched).map(({ leg_id }) => leg_id)
    expect(matched.sort()).toEqual([...debitIds].sort())
    for (const debitId of debitIds)
      expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toHaveLength(1)
  })

  test('that names a debit that was not sent yet calls for a person, and is its money once it is', async () => {
    const amount_cents = newAmount()
    const { id, debitId } = await bank.arranged(carriers.fbo, { amount_cents })
    await bank.ops('/debit-batches')
    const { effective_date: bank_date } = await bank.transaction(debitId)
    const early = { bank_transaction_id: newTransaction(), bank_date, amount_cents, reference: debitId }
    // it would be taken first, were there none that names the debit
    const unnamed = { ...early, bank_transaction_id: newTransaction(), reference: null }
    for (const one of [unnamed, early]) expect(await bank.credit(carriers.fbo, one)).toMatchObject(nothing)
    await bank.drain()
    const raised = async () => {
      const alerts = await operate(service, 'GET', '/alerts?kind=bank_credit_unmatched&status=open')
      return alerts.filter((one: typeof alerts) => one.about.leg_id === debitId)
    }
    expect(await raised()).toMatchObject([{ about: { credit_id: expect.any(String), leg_id: debitId } }])
    const before = await live()
    await bank.report(debitId, 'acknowledge')
    await bank.drain()
    expect(await bank.credit(carriers.fbo, early)).toMatchObject(taken(debitId, 'high'))
    expect(await raised()).toEqual([])
    expect(await bank.credit(carriers.fbo, unnamed)).toMatchObject(nothing)
    expect(await bank.webhooksOfDebit('payment.debit_cleared', debitId)).toMatchObject([
      { confidence: 'high' },
    ])
    expect((await bank.session(id)).status).toBe('paid')
    const after = await live()
    expect(after.unmatched_cents).toBe(before.unmatched_cents - amount_cents)
  })

  test('is nothing for carriers that the service does not collect for', async () => {
    for (const of of [carriers.direct, carriers.none]) {
      const { id, debitId } = await bank.submitted(of)
      const { effective_date: bank_date } = await bank.transaction(debitId)
      const credit = { bank_transaction_id: newTransaction(), bank_date, reference: debitId }
      expect(await bank.credit(of, credit)).toMatchObject(nothing)
      expect((await bank.session(id)).status).toBe('scheduled')
    }
    const unknown = { carrier_id: '0'.repeat(24), amount_cents: 1, bank_date: '2026-01-01' }
    expect((await bank.tryOps('/bank-credits', { ...unknown, bank_transaction_id: 'x' })).status).toBe(404)
  })

  test('is not the money of a debit that came back', async () => {
    const amount_cents = newAmount()
    const { id, debitId } = await bank.submitted(carriers.fbo, { amount_cents })
    const { effective_date: bank_date } = await bank.transaction(debitId)
    await bank.report(debitId, 'return', { return_code: 'R09' })
    for (const reference of [debitId, null]) {
      const credit = { bank_transaction_id: newTransaction(), bank_date, amount_cents, reference }
      expect(await bank.credit(carriers.fbo, credit)).toMatchObject(nothing)
    }
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})
