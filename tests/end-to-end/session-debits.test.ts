import { beforeAll, describe, expect, test } from 'vitest'
import { bankingDaysAfter, entryDateOf, nextClose } from '../../domain/banking/banking-days.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { startOf } from '../../domain/kernel/new-york.ts'
import { bankDebitsOf, PAYERS_ACCOUNT, type SettlingCarrier } from '../support/bank-debits.ts'
import { allEvents } from '../support/core.ts'
import { enableCheckout, newSession, tokenOf } from '../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

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
  test.each([
    ['routing_number', '021000022'],
    ['routing_number', '21000021'],
    ['routing_number', '000000000'],
    ['account_number', '1234'],
    ['account_number', '123456789012345678'],
    ['account_number', '12345a'],
    ['account_number', 123456],
    ['account_type', 'brokerage'],
    ['account_holder_name', undefined],
    ['authorized', undefined],
    ['authorized', false],
    ['authorized', 'true'],
  ])('refuses %s %j by the name of the field, and arranges nothing', async (field, value) => {
    const created = await newSession(service, tenant, { policy_id: tenant.policyId })
    const refused = await bank.authorise(tokenOf(created), { ...PAYERS_ACCOUNT, [field]: value })
    expect([refused.status, refused.body.error]).toEqual([400, 'Bad Request'])
    expect(refused.body.message).toContain(field)
    expect((await bank.session(created.id)).status).toBe('pending')
  })

  test.each(['12345', '12345678901234567'])('takes the account number %s', async (account_number) => {
    const created = await newSession(service, tenant, {})
    const answer = await bank.authorise(tokenOf(created), { ...PAYERS_ACCOUNT, account_number })
    expect([answer.status, answer.body.data.status]).toEqual([200, 'scheduled'])
  })

  test('is chosen once: what follows is told how the session stands', async () => {
    const { token, leg } = await bank.arranged(carriers.direct)
    const again = await bank.authorise(token)
    expect([again.status, again.body.error]).toEqual([409, 'Unavailable'])
    expect((await bank.transactions()).filter(({ leg_id }) => leg_id === leg)).toHaveLength(1)
  })

  test('of many at once wins once', async () => {
    const created = await newSession(service, tenant, {})
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, n) =>
        bank.authorise(tokenOf(created), { ...PAYERS_ACCOUNT, account_number: `12345${n}` }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    const { leg_id } = await bank.session(created.id)
    expect((await bank.transactions()).filter((one) => one.leg_id === leg_id)).toHaveLength(1)
  })

  test('leaves nothing of the account in events but its last digits, and makes no ACH account', async () => {
    const { leg, id } = await bank.arranged(carriers.direct)
    const events = await allEvents(service, undefined, { reveal: true })
    const ofSession = events.filter(({ stream }) => stream.endsWith(id) || stream.endsWith(leg))
    expect(ofSession.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['PaymentSessionDebitArranged', 'BankDebitCreated']),
    )
    const text = JSON.stringify(ofSession)
    expect(text).toContain('6789')
    for (const secret of [PAYERS_ACCOUNT.account_number, PAYERS_ACCOUNT.routing_number]) {
      expect(text).not.toContain(secret)
    }
    expect((await bank.ask('GET', '/bank-accounts/ach')).body.data).toEqual([])
  })

  test("sends nothing when it is chosen, and its debit is nobody's to cancel", async () => {
    const { id, leg } = await bank.arranged(carriers.direct)
    await bank.drain()
    for (const type of ['payment.debit_minted', 'payment.completed', 'payment.debit_cancelled']) {
      expect(await bank.toldOfLeg(type, leg)).toEqual([])
    }
    const cancelled = await bank.ask('POST', `/ach/debits/${leg}/cancel`, {})
    expect([cancelled.status, cancelled.body.message]).toEqual([
      409,
      expect.stringContaining('of a payment session'),
    ])
    expect((await bank.transaction(leg)).status).toBe('pending')
    await bank.drain()
    expect(await bank.toldOfLeg('payment.debit_cancelled', leg)).toEqual([])
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('a debit of a session', () => {
  test('goes with the batch that closes next, and is listed', async () => {
    const { id, leg } = await bank.arranged(carriers.direct, { description: 'Policy 2026' })
    const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
    expect(await bank.transaction(leg)).toMatchObject({
      transaction_id: leg,
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
    expect(await bank.transaction(leg)).toMatchObject({
      status: 'Scheduled',
      effective_date: entryDateOf(closes),
    })
    expect(await bank.ops('/debit-batches')).toMatchObject({ scheduled: 0 })
    await bank.report(leg, 'acknowledge')
    expect(await bank.transaction(leg)).toMatchObject({ status: 'submitted', status_group: 'money_landed' })
  })

  test('goes with it by the timer of the batch worker', async () => {
    const { leg } = await bank.arranged(carriers.direct)
    await bank.ops('/clock/advance', { seconds: 60 })
    expect((await bank.transaction(leg)).status).toBe('Scheduled')
  })

  test('is moved by reports that fit only; others change nothing', async () => {
    const { leg } = await bank.arranged(carriers.direct)
    const refuses = async (verb: string, body: unknown = {}) => {
      const before = await bank.transaction(leg)
      const { status } = await bank.tryOps(`/bank-rail/${leg}/${verb}`, body)
      expect([verb, status]).toEqual([verb, 409])
      expect(await bank.transaction(leg)).toEqual(before)
    }
    await refuses('acknowledge')
    await refuses('settle')
    await refuses('return', { return_code: 'R01' })
    await bank.ops('/debit-batches')
    await refuses('settle')
    await bank.report(leg, 'acknowledge')
    await bank.report(leg, 'acknowledge')
    await bank.report(leg, 'return', { return_code: 'R01' })
    await refuses('acknowledge')
    await refuses('settle')
    await refuses('return', { return_code: 'R02' })
    await bank.report(leg, 'return', { return_code: 'R01' })
    expect(await bank.toldOfLeg('payment.failed', leg)).toHaveLength(1)
    expect((await bank.tryOps(`/bank-rail/${'0'.repeat(24)}/settle`)).status).toBe(404)
    expect((await bank.tryOps(`/bank-rail/${leg}/return`, { return_code: 'X1' })).status).toBe(400)
  })

  test('reaches the bank at its close, also when the bank is away then', async () => {
    const { leg } = await bank.arranged(carriers.direct)
    await bank.ops('/debit-batches')
    await bank.ops('/faults', { point: 'bank-rail', mode: 'unreachable', times: 1_000 })
    await bank.advanceTo(nextClose(await bank.now()) + 60_000)
    await bank.ops('/faults', { point: 'bank-rail', mode: 'unreachable', times: 0 })
    await bank.ops('/clock/advance', { seconds: 3_600 })
    await bank.drain()
    const { failed } = await operate(service, 'GET', '/work')
    expect(failed).toEqual([])
    expect((await bank.transaction(leg)).status).toBe('Scheduled')
  })
})

describe('the processor of a carrier with its own bank', () => {
  test.each([
    ['SB Remit'],
    ['SBRemit'],
    ['ServiceBureauOutboundFileSent'],
    ['SendProcessComplete'],
    ['FileTransmitted'],
    ['File Transmitted'],
    [undefined],
  ])('settles a debit by the word %s', async (processor_status) => {
    const { id, leg } = await bank.submitted(carriers.direct, { description: 'Policy 2026' })
    await bank.report(leg, 'settle', { processor_status, transmission_date: '2026-01-05' })
    const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
    const told = [
      {
        payment_session_id: id,
        leg_id: leg,
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
    expect(await bank.toldOfLeg('payment.debit_settled', leg)).toEqual(told)
    expect((await bank.session(id)).status).toBe('paid')
    expect((await bank.transaction(leg)).status).toBe('processed')
    // a report that comes again, or another one, is no news
    await bank.report(leg, 'settle', { processor_status: 'SB Remit', transmission_date: '2026-01-06' })
    await bank.report(leg, 'settle')
    expect(await bank.toldOfLeg('payment.debit_settled', leg)).toEqual(told)
    for (const type of ['payment.completed', 'payment.debit_cleared', 'payment.debit_minted']) {
      expect(await bank.toldOfSession(type, id)).toEqual([])
    }
  })

  test.each(['ServiceBureauProcessingIntoRemitFile', 'sb remit', 'SB  Remit', 'Settled'])(
    'settles nothing by the word %s',
    async (processor_status) => {
      const { id, leg } = await bank.submitted(carriers.direct)
      await bank.report(leg, 'settle', { processor_status, transmission_date: '2026-01-05' })
      expect(await bank.toldOfLeg('payment.debit_settled', leg)).toEqual([])
      expect((await bank.session(id)).status).toBe('scheduled')
      expect((await bank.transaction(leg)).status).toBe('submitted')
      await bank.report(leg, 'settle', { processor_status: 'SBRemit' })
      expect(await bank.toldOfLeg('payment.debit_settled', leg)).toHaveLength(1)
    },
  )

  test.each([
    [
      'the day of transmission',
      { transmission_date: '2026-01-05', effective_date: '2026-01-07' },
      '2026-01-05',
    ],
    ['the effective date of the report', { effective_date: '2026-01-07' }, '2026-01-07'],
    ['the day it is told', {}, null],
  ])('settles it on %s', async (_name, report, expected) => {
    const { leg } = await bank.submitted(carriers.direct)
    const today = isoTime(await bank.now()).slice(0, 10)
    await bank.report(leg, 'settle', { processor_status: 'FileTransmitted', ...report })
    const [{ settled_at }] = await bank.toldOfLeg('payment.debit_settled', leg)
    expect(settled_at).toBe(`${expected ?? today}T12:00:00.000Z`)
  })
})

describe('time', () => {
  test.each(['direct', 'fbo', 'none'] as const)(
    'makes a debit of a %s carrier processed, and its session not paid',
    async (of) => {
      const { id, leg } = await bank.submitted(carriers[of])
      const { effective_date } = await bank.transaction(leg)
      const over = startOf(bankingDaysAfter(effective_date, 2))
      await bank.advanceTo(over - 1)
      expect((await bank.transaction(leg)).status).toBe('submitted')
      await bank.advanceTo(over)
      expect((await bank.transaction(leg)).status).toBe('processed')
      await bank.ops('/clock/advance', { seconds: 30 * DAY_S })
      expect((await bank.session(id)).status).toBe('scheduled')
      for (const type of ['settled', 'cleared']) {
        expect(await bank.toldOfLeg(`payment.debit_${type}`, leg)).toEqual([])
      }
    },
  )
})

describe('a carrier with neither rail', () => {
  test('leaves its sessions scheduled', async () => {
    const { id, leg } = await bank.submitted(carriers.none)
    await bank.report(leg, 'settle', { processor_status: 'SB Remit' })
    expect(await bank.toldOfLeg('payment.debit_settled', leg)).toEqual([])
    expect((await bank.session(id)).status).toBe('scheduled')
  })
})

describe('a debit that comes back', () => {
  test.each(['Scheduled', 'submitted', 'processed', 'settled'])(
    'when it was %s is told of, and leaves its session as it is',
    async (when) => {
      const { id, leg } = await bank.arranged(carriers.direct)
      await bank.ops('/debit-batches')
      if (when !== 'Scheduled') await bank.report(leg, 'acknowledge')
      if (when === 'processed') await bank.ops('/clock/advance', { seconds: 10 * DAY_S })
      if (when === 'settled') await bank.report(leg, 'settle')
      await bank.drain()
      const before = await bank.session(id)
      expect(before.status).toBe(when === 'settled' ? 'paid' : 'scheduled')
      const at = new Date(await bank.now()).toISOString()
      await bank.report(leg, 'return', { return_code: 'R01' })
      const { policyId: policy_id, carrierId: carrier_id } = carriers.direct
      expect(await bank.toldOfLeg('payment.failed', leg)).toEqual([
        {
          payment_session_id: id,
          leg_id: leg,
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
      expect(await bank.transaction(leg)).toMatchObject({
        status: 'returned',
        status_group: 'failed',
        return_code: 'R01',
      })
      // what was told of its settlement is not taken back, and there is no second one
      const settled = await bank.toldOfLeg('payment.debit_settled', leg)
      expect(settled).toHaveLength(when === 'settled' ? 1 : 0)
      expect((await bank.tryOps(`/bank-rail/${leg}/settle`)).status).toBe(409)
    },
  )
})

describe('a session that was cancelled', () => {
  test('does not call its debit back, and stays cancelled when that settles', async () => {
    const { id, leg } = await bank.arranged(carriers.direct)
    expect((await bank.ask('DELETE', `/payment-sessions/${id}`)).body.data).toEqual({
      id,
      status: 'cancelled',
    })
    await bank.ops('/debit-batches')
    await bank.report(leg, 'acknowledge')
    await bank.report(leg, 'settle')
    expect(await bank.toldOfLeg('payment.debit_settled', leg)).toHaveLength(1)
    expect(await bank.session(id)).toMatchObject({ status: 'cancelled', leg_id: leg })
    expect((await bank.ask('POST', `/payment-sessions/${id}/reissue`, {})).status).toBe(409)
  })
})

describe('the list of transactions', () => {
  test('shows what its records are about', async () => {
    const of = await bank.carrierOf('direct')
    await bank.submitted(of)
    const [row] = await bank.transactions(`&carrier_id=${of.carrierId}`)
    expect(row).toMatchObject({
      payment_purpose: 'extra_payment',
      description: null,
      bank_account_id: null,
      effective_date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
      metadata: {},
    })
  })

  test('takes groups and statuses in any case', async () => {
    const of = await bank.carrierOf('direct')
    const legs = {
      pending: '',
      Scheduled: '',
      submitted: (await bank.submitted(of)).leg,
      processed: (await bank.submitted(of)).leg,
      returned: (await bank.submitted(of)).leg,
    }
    await bank.report(legs.processed, 'settle')
    await bank.report(legs.returned, 'return', { return_code: 'R01' })
    legs.Scheduled = (await bank.arranged(of)).leg
    await bank.ops('/debit-batches')
    legs.pending = (await bank.arranged(of)).leg
    const found = async (words: string) => {
      const rows = await bank.transactions(`&carrier_id=${of.carrierId}&${words}`)
      return rows.map(({ status }) => status).sort()
    }
    for (const word of ['PENDING', 'pending', 'in_flight']) {
      expect(await found(`status=${word}`)).toEqual(['Scheduled', 'pending'])
    }
    for (const word of ['COMPLETED', 'money_landed', 'Money_Landed']) {
      expect(await found(`status=${word}`)).toEqual(['processed', 'submitted'])
    }
    expect(await found('status=FAILED')).toEqual(['returned'])
    expect(await found('status=RETURNED')).toEqual(['returned'])
    expect(await found('status=scheduled')).toEqual(['Scheduled'])
    expect(await found('status=submitted')).toEqual(['submitted'])
    for (const word of ['constructor', 'settled', 'quarantined'])
      expect(await found(`status=${word}`)).toEqual([])
    const asc = await bank.transactions(`&carrier_id=${of.carrierId}&sort_by=status&sort_order=asc`)
    const desc = await bank.transactions(`&carrier_id=${of.carrierId}&sort_by=status&sort_order=desc`)
    expect(asc.map(({ leg_id }) => leg_id)).toEqual(desc.map(({ leg_id }) => leg_id).reverse())
    for (const wrong of ['sort_by=leg_id', 'sort_order=x', 'from_date=2026-02-30']) {
      expect((await bank.ask('GET', `/ach/transactions?${wrong}`)).status).toBe(400)
    }
  })
})
