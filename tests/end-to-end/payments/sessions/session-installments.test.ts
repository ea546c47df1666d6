import { beforeAll, describe, expect, test } from 'vitest'
import { entryDateOf, nextClose } from '../../../../domain/banking/debits/banking-days.ts'
import { bankDebitsOf, ownAccount, type SettlingCarrier } from '../../../support/bank-debits.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../../support/seed.ts'
import { type RunningService, startService } from '../../../support/service.ts'

/** Plans of sessions and the debits of their installments, on a clock of their own. */

const DAY_S = 86_400
let service: RunningService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>
const carriers = {} as Record<'direct' | 'fbo', SettlingCarrier>

beforeAll(async () => {
  service = await startService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  bank = bankDebitsOf(service, tenant)
  carriers.direct = await bank.carrierOf('direct')
  carriers.fbo = await bank.carrierOf('fbo')
  return () => service.stop()
})

/** A plan of 1,000 dollars in three parts, the last of which takes what division leaves over. */
const PLAN = { amount_cents: 100_000, total_installments: 3, down_payment_percent: 20 }
const minted = (id: string) => bank.webhooksOfSession('payment.debit_minted', id)
async function dueTimes(token: string): Promise<readonly number[]> {
  const { body } = await send(`${service.paymentsUrl}/public/payment-sessions/${token}/plan`)
  return body.data.installments.map(({ due_at }: { due_at: string }) => Date.parse(due_at))
}
const alertsOf = async (id: string) => {
  const alerts = await operate(service, 'GET', `/alerts?tenant_id=${tenant.tenantId}`)
  return alerts.filter(
    ({ about }: { about: { payment_session_id?: string } }) => about.payment_session_id === id,
  )
}

describe('the installments of a plan', () => {
  test('are debited at 17:00 UTC of their day, each once, never earlier', async () => {
    const { id, token, debitId } = await bank.arranged(carriers.direct, {
      ...PLAN,
      description: 'Policy 2026',
    })
    expect(await bank.transaction(debitId)).toMatchObject({
      amount_cents: 20_000,
      payment_purpose: 'down_payment',
    })
    const times = await dueTimes(token)
    expect(times).toHaveLength(3)
    const amounts = [26_666, 26_666, 26_668]
    for (const [index, due] of times.entries()) {
      await bank.advanceTo(due - 1)
      expect(await minted(id)).toHaveLength(index)
      await bank.advanceTo(due)
      const told = await minted(id)
      expect(told).toHaveLength(index + 1)
      const { leg_id } = told[index]!
      const closes = nextClose(due)
      const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
      expect(told[index]).toEqual({
        payment_session_id: id,
        leg_id,
        amount_cents: amounts[index],
        currency: 'usd',
        employer_id: tenant.employerId,
        policy_id,
        carrier_id,
        description: 'Policy 2026',
        cancellation_deadline: new Date(closes).toISOString(),
      })
      expect(await bank.transaction(leg_id)).toMatchObject({
        status: 'pending',
        installment_number: index + 1,
        payment_purpose: 'installment',
        created_at: new Date(due).toISOString(),
        payment_session_id: id,
      })
      await bank.ops('/clock/advance', { seconds: 60 })
      expect(await bank.transaction(leg_id)).toMatchObject({
        status: 'Scheduled',
        effective_date: entryDateOf(closes),
      })
    }
    // until its batch closes, with one webhook
    const { leg_id: last, cancellation_deadline: _, ...shared } = (await minted(id))[2]!
    const cancelled_at = new Date(await bank.now()).toISOString()
    for (const status of [200, 200]) {
      expect((await bank.ask('POST', `/ach/debits/${last}/cancel`, {})).status).toBe(status)
    }
    const told = await bank.webhooksOfDebit('payment.debit_cancelled', last)
    expect(told).toEqual([{ ...shared, leg_id: last, cancelled_at }])
    await bank.ops('/clock/advance', { seconds: 100 * DAY_S })
    const all = await minted(id)
    expect(new Set(all.map(({ leg_id }) => leg_id)).size).toBe(3)
    expect(all.reduce((sum, { amount_cents }) => sum + amount_cents, 20_000)).toBe(100_000)
    expect((await bank.session(id)).status).toBe('scheduled')
  })

  test('follow an authorization where nothing is paid down: no debit and no event before', async () => {
    const { id, token, debitId } = await bank.arranged(carriers.direct, {
      amount_cents: 1_000,
      total_installments: 3,
    })
    expect(debitId).toBeUndefined()
    expect(await bank.session(id)).toMatchObject({ status: 'scheduled', amount_cents: 0 })
    const ofSession = async () =>
      (await bank.transactions()).filter(({ payment_session_id }) => payment_session_id === id)
    expect(await ofSession()).toEqual([])
    await bank.advanceTo((await dueTimes(token))[2]!)
    expect((await minted(id)).map(({ amount_cents }) => amount_cents)).toEqual([333, 333, 334])
    expect(await ofSession()).toHaveLength(3)
  })

  test('of 0 cents are not debited', async () => {
    const few = { amount_cents: 52, total_installments: 3, down_payment_cents: 50 }
    const { id, token } = await bank.arranged(carriers.direct, few)
    const all = await bank.arranged(carriers.direct, { ...few, down_payment_cents: 52 })
    await bank.advanceTo((await dueTimes(token))[2]! + DAY_S * 1_000)
    expect((await minted(id)).map(({ amount_cents }) => amount_cents)).toEqual([2])
    expect(await minted(all.id)).toEqual([])
  })

  test('settle, and are matched, without a word', async () => {
    for (const of of [carriers.direct, carriers.fbo]) {
      const { id, token, debitId } = await bank.submitted(of, PLAN)
      await bank.report(debitId, 'settle')
      await bank.advanceTo((await dueTimes(token))[0]!)
      const [{ leg_id, amount_cents }] = await minted(id)
      await bank.ops('/debit-batches')
      await bank.report(leg_id, 'acknowledge')
      await bank.report(leg_id, 'settle', { processor_status: 'SB Remit' })
      const bank_transaction_id = `installment-${of.carrierId}`
      const credit = { bank_transaction_id, bank_date: '2030-01-01', amount_cents, reference: leg_id }
      expect((await bank.credit(of, credit)).matched).toBe(of === carriers.fbo)
      expect((await bank.transaction(leg_id)).status).toBe('processed')
      for (const type of ['settled', 'cleared']) {
        expect(await bank.webhooksOfDebit(`payment.debit_${type}`, leg_id)).toEqual([])
      }
      expect((await bank.session(id)).status).toBe('scheduled')
    }
  })
})

describe('the down payment of a plan', () => {
  test('raises a webhook when it settles or clears, and its session stays scheduled', async () => {
    const direct = await bank.submitted(carriers.direct, PLAN)
    await bank.report(direct.debitId, 'settle')
    expect(await bank.webhooksOfDebit('payment.debit_settled', direct.debitId)).toMatchObject([
      { amount_cents: 20_000 },
    ])
    const fbo = await bank.submitted(carriers.fbo, PLAN)
    const credit = {
      bank_transaction_id: 'down',
      bank_date: '2030-01-01',
      amount_cents: 20_000,
      reference: fbo.debitId,
    }
    expect((await bank.credit(carriers.fbo, credit)).matched).toBe(true)
    expect(await bank.webhooksOfDebit('payment.debit_cleared', fbo.debitId)).toMatchObject([
      { matched_cents: 20_000 },
    ])
    for (const { id } of [direct, fbo]) expect((await bank.session(id)).status).toBe('scheduled')
  })

  test('that comes back stops what follows, and calls for the operator', async () => {
    const { id, token, debitId } = await bank.submitted(carriers.direct, PLAN, ownAccount())
    const [first, , last] = await dueTimes(token)
    await bank.advanceTo(first!)
    await bank.report(debitId, 'return', { return_code: 'R02' })
    expect(await bank.webhooksOfDebit('payment.failed', debitId)).toMatchObject([
      { return_code: 'R02', amount_cents: 20_000 },
    ])
    expect(await alertsOf(id)).toMatchObject([{ kind: 'down_payment_returned' }])
    await bank.advanceTo(last!)
    expect(await minted(id)).toHaveLength(1)
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('a plan whose policy is cancelled', () => {
  test('goes on with what was created, mints nothing more, and calls for the operator', async () => {
    const carrier = await bank.carrierOf('direct')
    const { id, token } = await bank.arranged(carrier, PLAN)
    const [first, , last] = await dueTimes(token)
    await bank.advanceTo(first!)
    expect(await minted(id)).toHaveLength(1)
    await operate(service, 'POST', `/policies/${carrier.policyId}/cancel`, { reason: 'non-payment' })
    await bank.advanceTo(last!)
    expect(await minted(id)).toHaveLength(1)
    expect(await alertsOf(id)).toMatchObject([
      { kind: 'installments_stopped', about: { payment_session_id: id } },
    ])
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('an installment that comes back', () => {
  test('raises a webhook, and those after it follow all the same', async () => {
    const { id, token } = await bank.arranged(carriers.direct, PLAN)
    const [first, second] = await dueTimes(token)
    await bank.advanceTo(first!)
    const [{ leg_id }] = await minted(id)
    await bank.ops('/debit-batches')
    await bank.report(leg_id, 'acknowledge')
    await bank.report(leg_id, 'return', { return_code: 'R01' })
    expect(await bank.webhooksOfDebit('payment.failed', leg_id)).toMatchObject([
      { payment_session_id: id, return_code: 'R01', amount_cents: 26_666 },
    ])
    expect(await alertsOf(id)).toEqual([])
    await bank.advanceTo(second!)
    expect(await minted(id)).toHaveLength(2)
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('an installment by which its account is disabled', () => {
  test('stops its plan, fails what was created since, and calls for the operator', async () => {
    const nothingDown = { ...PLAN, down_payment_percent: 0 }
    const { id, token } = await bank.arranged(carriers.direct, nothingDown, ownAccount())
    const [first, second, last] = await dueTimes(token)
    await bank.advanceTo(first!)
    await bank.ops('/debit-batches')
    await bank.advanceTo(second!)
    await bank.ops('/debit-batches')
    const [back, waiting] = (await minted(id)).map(({ leg_id }) => leg_id)
    expect((await bank.transaction(waiting)).status).toBe('Scheduled')
    await bank.report(back, 'acknowledge')
    await bank.report(back, 'return', { return_code: 'R07' })
    expect(await bank.webhooksOfDebit('payment.failed', back)).toMatchObject([{ return_code: 'R07' }])
    expect(await bank.transaction(waiting)).toMatchObject({ status: 'failed', status_group: 'failed' })
    await bank.advanceTo(last!)
    expect(await bank.webhooksOfDebit('payment.debit_cancelled', waiting)).toHaveLength(1)
    expect(await minted(id)).toHaveLength(2)
    expect(await alertsOf(id)).toMatchObject([
      { kind: 'plan_account_disabled', about: { payment_session_id: id } },
    ])
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})
