import { beforeAll, describe, expect, test } from 'vitest'
import { bankingDaysAfter, entryDateOf, nextClose } from '../../../../domain/banking/debits/banking-days.ts'
import { startOf } from '../../../../domain/kernel/new-york.ts'
import { bankDebitsOf, type SettlingCarrier } from '../../../support/bank-debits.ts'
import { eventsAfter } from '../../../support/core.ts'
import { BANK_ACCOUNT, enableCheckout, newSession, tokenOf } from '../../../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type RunningService, startService } from '../../../support/service.ts'

/** Bank debits of sessions that are paid at once, on a clock of their own. */

const DAY_S = 86_400
let service: RunningService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>
const carriers = {} as Record<'direct' | 'fbo' | 'none', SettlingCarrier>

beforeAll(async () => {
  service = await startService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  bank = bankDebitsOf(service, tenant)
  carriers.direct = await bank.carrierOf('direct')
  carriers.fbo = await bank.carrierOf('fbo')
  carriers.none = await bank.carrierOf(null)
  return () => service.stop()
})

describe('the bank option', () => {
  test('of many at once wins once', async () => {
    const created = await newSession(service, tenant, {})
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, n) =>
        bank.authorize(tokenOf(created), { ...BANK_ACCOUNT, account_number: `12345${n}` }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    const { leg_id } = await bank.session(created.id)
    expect((await bank.transactions()).filter((one) => one.leg_id === leg_id)).toHaveLength(1)
  })

  test('leaves nothing of the account in events but its last digits, and makes no ACH account', async () => {
    const { debitId, id } = await bank.arranged(carriers.direct)
    const { tenantId: tenant_id } = tenant
    const { events } = await eventsAfter(service, null, { tenant_id, reveal: 'true' })
    const ofSession = events.filter(({ stream }) => stream.endsWith(id) || stream.endsWith(debitId))
    expect(ofSession.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['PaymentSessionDebitArranged', 'BankDebitCreated']),
    )
    const text = JSON.stringify(ofSession)
    expect(text).toContain('6789')
    for (const secret of [BANK_ACCOUNT.account_number, BANK_ACCOUNT.routing_number]) {
      expect(text).not.toContain(secret)
    }
    expect((await bank.ask('GET', '/bank-accounts/ach')).body.data).toEqual([])
  })

  test("sends nothing when it is chosen, and its debit is nobody's to cancel", async () => {
    const { id, debitId } = await bank.arranged(carriers.direct)
    await bank.drain()
    for (const type of ['payment.debit_minted', 'payment.completed', 'payment.debit_cancelled']) {
      expect(await bank.webhooksOfDebit(type, debitId)).toEqual([])
    }
    const cancelled = await bank.ask('POST', `/ach/debits/${debitId}/cancel`, {})
    expect([cancelled.status, cancelled.body.message]).toEqual([
      409,
      expect.stringContaining('of a payment session'),
    ])
    expect((await bank.transaction(debitId)).status).toBe('pending')
    await bank.drain()
    expect(await bank.webhooksOfDebit('payment.debit_cancelled', debitId)).toEqual([])
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('a debit of a session', () => {
  test('goes with the batch that closes next, and is listed', async () => {
    const { id, debitId } = await bank.arranged(carriers.direct, { description: 'Policy 2026' })
    const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
    expect(await bank.transaction(debitId)).toMatchObject({
      transaction_id: debitId,
      payment_session_id: id,
      employer_id: tenant.employerId,
      policy_id,
      carrier_id,
      status: 'pending',
      status_group: 'in_flight',
      reason: null,
      failure_reason: null,
      amount_cents: 10_500,
      currency: 'usd',
      description: 'Policy 2026',
      account_last4: '6789',
      bank_account_id: null,
      effective_date: null,
      return_code: null,
    })
    const closes = nextClose(await bank.now())
    await bank.ops('/debit-batches')
    expect(await bank.transaction(debitId)).toMatchObject({
      status: 'Scheduled',
      effective_date: entryDateOf(closes),
    })
    expect(await bank.ops('/debit-batches')).toMatchObject({ scheduled: 0 })
    await bank.report(debitId, 'acknowledge')
    expect(await bank.transaction(debitId)).toMatchObject({
      status: 'submitted',
      status_group: 'money_landed',
    })
    const told = await operate(service, 'GET', `/stories/session/${id}`)
    expect(told).toMatchObject({ stream: `paymentSession-${id}`, state: { payment_session_id: id } })
    expect(told.events).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'PaymentSessionCreated', about: { kind: 'session', id } }),
        expect.objectContaining({ type: 'BankDebitScheduled', about: { kind: 'debit', id: debitId } }),
      ]),
    )
    const [arranged, created] = ['PaymentSessionDebitArranged', 'BankDebitCreated'].map((type) =>
      told.events.find((one: { type: string }) => one.type === type),
    )
    // one request caused both, unless the process manager was there first
    expect(arranged.caused_by).toBeNull()
    expect([null, arranged.event_id]).toContain(created.caused_by)
    expect(created.metadata.correlation_id).toBe(arranged.metadata.correlation_id)
    expect(JSON.stringify(told)).not.toMatch(/sld1\.|token_hash":"[0-9a-f]/)
  })

  test('goes with it by the timer of the batch worker', async () => {
    const { debitId } = await bank.arranged(carriers.direct)
    await bank.ops('/clock/advance', { seconds: 60 })
    expect((await bank.transaction(debitId)).status).toBe('Scheduled')
  })
})

describe('the processor of a carrier with its own bank', () => {
  // unit/banking/debits/decisions-bank-debits has every word, and the dates
  test.each(['SB Remit', undefined])('settles a debit by the word %s', async (processor_status) => {
    const { id, debitId } = await bank.submitted(carriers.direct, { description: 'Policy 2026' })
    await bank.report(debitId, 'settle', { processor_status, transmission_date: '2026-01-05' })
    const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
    const told = [
      {
        payment_session_id: id,
        leg_id: debitId,
        amount_cents: 10_500,
        currency: 'usd',
        employer_id: tenant.employerId,
        policy_id,
        carrier_id,
        description: 'Policy 2026',
        settlement_source: 'processor',
        settled_at: '2026-01-05T12:00:00.000Z',
        ...(processor_status === undefined ? {} : { processor_status }),
      },
    ]
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toEqual(told)
    expect((await bank.session(id)).status).toBe('paid')
    expect((await bank.transaction(debitId)).status).toBe('processed')
    // a report that comes again, or another one, is no news
    await bank.report(debitId, 'settle', { processor_status: 'SB Remit', transmission_date: '2026-01-06' })
    await bank.report(debitId, 'settle')
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toEqual(told)
    for (const type of ['payment.completed', 'payment.debit_cleared', 'payment.debit_minted']) {
      expect(await bank.webhooksOfSession(type, id)).toEqual([])
    }
  })

  test('settles nothing by another word', async () => {
    const { id, debitId } = await bank.submitted(carriers.direct)
    await bank.report(debitId, 'settle', { processor_status: 'Settled', transmission_date: '2026-01-05' })
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toEqual([])
    expect((await bank.session(id)).status).toBe('scheduled')
    expect((await bank.transaction(debitId)).status).toBe('submitted')
    await bank.report(debitId, 'settle', { processor_status: 'SBRemit' })
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toHaveLength(1)
  })
})

describe('time', () => {
  test('makes a debit of any carrier processed, and its session not paid', async () => {
    const debits = await Promise.all(Object.values(carriers).map((of) => bank.arranged(of)))
    await bank.ops('/debit-batches')
    for (const { debitId } of debits) await bank.report(debitId, 'acknowledge')
    const statuses = () =>
      Promise.all(debits.map(async ({ debitId }) => (await bank.transaction(debitId)).status))
    const { effective_date } = await bank.transaction(debits[0]!.debitId)
    const over = startOf(bankingDaysAfter(effective_date, 2))
    await bank.advanceTo(over - 1)
    expect(await statuses()).toEqual(['submitted', 'submitted', 'submitted'])
    await bank.advanceTo(over)
    expect(await statuses()).toEqual(['processed', 'processed', 'processed'])
    await bank.ops('/clock/advance', { seconds: 30 * DAY_S })
    for (const { id, debitId } of debits) {
      expect((await bank.session(id)).status).toBe('scheduled')
      for (const type of ['settled', 'cleared']) {
        expect(await bank.webhooksOfDebit(`payment.debit_${type}`, debitId)).toEqual([])
      }
    }
  })
})

describe('a carrier with neither rail', () => {
  test('leaves its sessions scheduled', async () => {
    const { id, debitId } = await bank.submitted(carriers.none)
    await bank.report(debitId, 'settle', { processor_status: 'SB Remit' })
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toEqual([])
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('a debit that comes back', () => {
  // unit/banking/debits/decisions-bank-debits has every status that it may come back from
  test.each(['submitted', 'settled'])(
    'when it was %s raises a webhook, and leaves its session as it is',
    async (when) => {
      const { id, debitId } = await bank.arranged(carriers.direct)
      await bank.ops('/debit-batches')
      await bank.report(debitId, 'acknowledge')
      if (when === 'settled') await bank.report(debitId, 'settle')
      await bank.drain()
      const before = await bank.session(id)
      expect(before.status).toBe(when === 'settled' ? 'paid' : 'scheduled')
      const at = new Date(await bank.now()).toISOString()
      await bank.report(debitId, 'return', { return_code: 'R01' })
      const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
      expect(await bank.webhooksOfDebit('payment.failed', debitId)).toEqual([
        {
          payment_session_id: id,
          leg_id: debitId,
          amount_cents: 10_500,
          currency: 'usd',
          employer_id: tenant.employerId,
          policy_id,
          carrier_id,
          return_code: 'R01',
          failed_at: at,
          failure_message: expect.stringContaining('R01'),
        },
      ])
      expect((await bank.session(id)).status).toBe(before.status)
      expect(await bank.transaction(debitId)).toMatchObject({
        status: 'returned',
        status_group: 'failed',
        return_code: 'R01',
      })
      // the webhook of its settlement is not taken back, and there is no second one
      const settled = await bank.webhooksOfDebit('payment.debit_settled', debitId)
      expect(settled).toHaveLength(when === 'settled' ? 1 : 0)
      expect((await bank.tryOps(`/bank-rail/${debitId}/settle`)).status).toBe(409)
    },
  )
})

describe('a session that was cancelled', () => {
  test('does not call its debit back, and stays cancelled when that settles', async () => {
    const { id, debitId } = await bank.arranged(carriers.direct)
    expect((await bank.ask('DELETE', `/payment-sessions/${id}`)).body.data).toEqual({
      id,
      status: 'cancelled',
    })
    await bank.ops('/debit-batches')
    await bank.report(debitId, 'acknowledge')
    await bank.report(debitId, 'settle')
    expect(await bank.webhooksOfDebit('payment.debit_settled', debitId)).toHaveLength(1)
    expect(await bank.session(id)).toMatchObject({ status: 'cancelled', leg_id: debitId })
    expect((await bank.ask('POST', `/payment-sessions/${id}/reissue`, {})).status).toBe(409)
  })
})
