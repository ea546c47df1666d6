import { beforeAll, describe, expect, test } from 'vitest'
import { enableCheckout, newSession, tokenOf } from '../support/payment-sessions.ts'
import { partner, raised } from '../support/payments.ts'
import { operate, type SeededTenant, seedPolicy, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

/** Bank debits of sessions, on a clock of their own. */

let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  service = await startService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  return () => service.stop()
})

const ask = (method: string, path: string, body?: unknown) =>
  partner(service, tenant.clientHeaders, method, path, body)
const shown = async (id: string) => (await ask('GET', `/payment-sessions/${id}`)).body.data
const ops = (path: string, body: unknown = {}) => operate(service, 'POST', path, body)
const drain = () => ops('/drain')
const told = async (type: string, legId: string) =>
  (await raised(service, tenant.tenantId, type)).filter(({ leg_id }) => leg_id === legId)
const transaction = async (legId: string) => {
  await drain()
  const { data } = (await ask('GET', '/ach/transactions?limit=200')).body
  return data.find((one: { transaction_id: string }) => one.transaction_id === legId)
}

/** A carrier that settles in its own way, with a policy. */
async function carrierOf(settlement_type: 'fbo' | 'direct' | null) {
  const { carrier_id } = await ops('/carriers', { tenant_id: tenant.tenantId, name: 'C', settlement_type })
  const { policyId } = await seedPolicy(service, { employerId: tenant.employerId, carrierId: carrier_id })
  return { carrierId: carrier_id as string, policyId }
}

const account = {
  ...{ account_holder_name: 'Tidewater Joinery LLC', routing_number: '021000021' },
  ...{ account_number: '000123456789', account_type: 'checking', authorized: true },
}
async function arranged(
  of: { carrierId: string; policyId: string },
  overrides: Record<string, unknown> = {},
) {
  const created = await newSession(service, tenant, {
    ...{ carrier_id: of.carrierId, policy_id: of.policyId, ...overrides },
  })
  const url = `${service.paymentsUrl}/public/payment-sessions/${tokenOf(created)}/bank-debit`
  const answer = await send(url, { method: 'POST', body: account })
  expect([answer.status, answer.body.data.status]).toEqual([200, 'scheduled'])
  return { id: created.id as string, leg: answer.body.data.leg_id as string }
}
async function submitted(of: Awaited<ReturnType<typeof carrierOf>>, overrides = {}) {
  const { id, leg } = await arranged(of, overrides)
  await ops('/debit-batches')
  await ops(`/bank-rail/${leg}/acknowledge`)
  return { id, leg }
}

describe('a debit of a session', () => {
  test('goes through its batch, and is listed', async () => {
    const { leg } = await arranged(await carrierOf('direct'), { description: 'Policy 2026' })
    expect(await transaction(leg)).toMatchObject({
      status: 'pending',
      amount_cents: 10_500,
      account_last4: '6789',
    })
    await ops('/debit-batches')
    const { status, effective_date } = await transaction(leg)
    expect([status, effective_date]).toEqual(['Scheduled', expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/)])
    await ops(`/bank-rail/${leg}/acknowledge`)
    expect((await transaction(leg)).status).toBe('submitted')
  })

  test('pays the session of a carrier with its own bank when the processor says so', async () => {
    const { id, leg } = await submitted(await carrierOf('direct'))
    await ops(`/bank-rail/${leg}/settle`, { processor_status: 'ServiceBureauProcessingIntoRemitFile' })
    await drain()
    expect((await shown(id)).status).toBe('scheduled')
    await ops(`/bank-rail/${leg}/settle`, { processor_status: 'SB Remit', transmission_date: '2026-01-05' })
    await ops(`/bank-rail/${leg}/settle`, {})
    expect(await told('payment.debit_settled', leg)).toEqual([
      {
        ...{ payment_session_id: id, leg_id: leg, amount_cents: 10_500, currency: 'usd' },
        ...{ employer_id: tenant.employerId, policy_id: expect.any(String), carrier_id: expect.any(String) },
        ...{ settlement_source: 'processor', settled_at: '2026-01-05T12:00:00.000Z' },
        processor_status: 'SB Remit',
      },
    ])
    expect((await shown(id)).status).toBe('paid')
    expect((await transaction(leg)).status).toBe('processed')
    expect(await told('payment.completed', leg)).toEqual([])
  })

  test('pays the session of a carrier that the service collects for when the bank shows the money', async () => {
    const of = await carrierOf('fbo')
    const { id, leg } = await submitted(of)
    await ops(`/bank-rail/${leg}/settle`, {})
    await drain()
    expect((await shown(id)).status).toBe('scheduled')
    const { effective_date: bank_date } = await transaction(leg)
    const credit = (bank_transaction_id: string, overrides: Record<string, unknown> = {}) =>
      ops('/bank-credits', {
        ...{ carrier_id: of.carrierId, bank_transaction_id, bank_date, amount_cents: 10_500, reference: leg },
        ...overrides,
      })
    expect(await credit('short', { amount_cents: 10_499 })).toMatchObject({ matched: false })
    expect(await credit('bt_1')).toMatchObject({ matched: true, leg_id: leg, confidence: 'high' })
    expect(await credit('bt_1')).toMatchObject({ matched: true, leg_id: leg })
    expect((await told('payment.debit_cleared', leg)).map(({ confidence }) => confidence)).toEqual(['high'])
    expect((await shown(id)).status).toBe('paid')
    await credit('bt_2')
    expect(await told('payment.debit_cleared', leg)).toHaveLength(2)
    expect(await told('payment.debit_settled', leg)).toEqual([])
  })

  test('that comes back is told of, and leaves the session as it is', async () => {
    const { id, leg } = await submitted(await carrierOf('direct'))
    await ops(`/bank-rail/${leg}/settle`, {})
    await ops(`/bank-rail/${leg}/return`, { return_code: 'R01' })
    expect(await told('payment.failed', leg)).toEqual([
      expect.objectContaining({ payment_session_id: id, return_code: 'R01', amount_cents: 10_500 }),
    ])
    expect((await shown(id)).status).toBe('paid')
    expect((await transaction(leg)).status).toBe('returned')
  })

  test('stays scheduled where the carrier has no rail', async () => {
    const { id, leg } = await submitted(await carrierOf(null))
    await ops(`/bank-rail/${leg}/settle`, {})
    expect(await told('payment.debit_settled', leg)).toEqual([])
    expect((await shown(id)).status).toBe('scheduled')
  })
})

describe('the instalments of a plan', () => {
  test('are debited at their time, each once, and told of', async () => {
    const { id, leg } = await arranged(await carrierOf('direct'), {
      ...{ amount_cents: 100_000, total_installments: 2, down_payment_percent: 20 },
    })
    expect((await transaction(leg)).amount_cents).toBe(20_000)
    const minted = async () =>
      (await raised(service, tenant.tenantId, 'payment.debit_minted')).filter(
        ({ payment_session_id }) => payment_session_id === id,
      )
    await ops('/clock/advance', { seconds: 27 * 86_400 })
    expect(await minted()).toEqual([])
    await ops('/clock/advance', { seconds: 6 * 86_400 })
    const [first, ...more] = await minted()
    expect([first.amount_cents, more]).toEqual([40_000, []])
    expect(first.cancellation_deadline).toMatch(/T2[12]:00:00\.000Z$/)
    expect(await transaction(first.leg_id)).toMatchObject({
      installment_number: 1,
      payment_purpose: 'installment',
    })
    await ops('/clock/advance', { seconds: 32 * 86_400 })
    expect((await minted()).map(({ amount_cents }) => amount_cents)).toEqual([40_000, 40_000])
    expect((await shown(id)).status).toBe('scheduled')
  })

  test('stop when the session is cancelled', async () => {
    const { id } = await arranged(await carrierOf('direct'), { amount_cents: 100_000, total_installments: 2 })
    await ask('DELETE', `/payment-sessions/${id}`)
    await ops('/clock/advance', { seconds: 70 * 86_400 })
    const minted = await raised(service, tenant.tenantId, 'payment.debit_minted')
    expect(minted.filter(({ payment_session_id }) => payment_session_id === id)).toEqual([])
  })
})
