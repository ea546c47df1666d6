import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  BANK_ACCOUNT,
  enableCheckout,
  sessionBody,
  sessionCallsOf,
  tokenOf,
} from '../../../support/payment-sessions.ts'
import { raised } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Payment sessions as their customers meet them: by invitation, page and card, on a clock and with faults of their own. */

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})

const {
  ask,
  session,
  shown,
  reissue,
  page,
  post,
  checkout,
  arrange,
  pay,
  advance,
  fault,
  listed,
  refusalOf,
} = sessionCallsOf(() => [service, tenant])
const decline = (id: string) =>
  operate(service, 'POST', `/card-processor/${id}/decline`, { failure_code: 'insufficient_funds' })
const outbox = (to: string) => operate(service, 'GET', `/outbox?to=${encodeURIComponent(to)}`)

describe('without the card processor', () => {
  test.each(['unreachable', 'timeout', 'decline'])('no embedded session is created: %s', async (mode) => {
    const before = await listed('')
    await fault('card-processor', mode)
    const key = randomUUID()
    const body = sessionBody(tenant, { mode: 'embedded' })
    const refused = await ask('POST', '/payment-sessions', body, key)
    expect([refused.status, refused.body.ok]).toEqual([mode === 'decline' ? 409 : 502, false])
    expect(await listed('')).toEqual(before)
    expect((await ask('POST', '/payment-sessions', body, key)).status).toBe(201)
    expect(await listed('')).toHaveLength(before.length + 1)
  })

  test('a link is created all the same, and its checkout is refused until it is there again', async () => {
    await fault('card-processor', 'unreachable')
    const { id, url } = await session()
    expect((await checkout(tokenOf({ url }))).status).toBe(502)
    expect((await shown(id)).status).toBe('pending')
    expect((await checkout(tokenOf({ url }))).status).toBe(200)
  })
})

describe('an invitation', () => {
  const customer = { name: 'Tidewater Joinery LLC', email: 'first@tidewater.example', phone: '+12025550101' }

  test('is not sent unless that is asked for', async () => {
    for (const deliver of [
      undefined,
      null,
      {},
      { email: false, sms: false, email_to: 'first@tidewater.example' },
    ]) {
      const created = await session({ customer, deliver })
      expect([created.delivery, created.delivery_ok]).toEqual([[], true])
    }
    expect(await outbox(customer.email)).toEqual([])
    expect(await outbox(customer.phone)).toEqual([])
  })

  test('goes at once to whom it is for, from the configured sender and the own number', async () => {
    await enableCheckout(service, tenant, { sms_from: '+12025550199' })
    const created = await session({
      customer,
      deliver: { email: true, sms: true },
      description: 'Policy 2026',
    })
    expect([created.delivery_ok, created.delivery]).toEqual([
      true,
      [
        { channel: 'email', to: customer.email, status: 'sent', at: expect.stringMatching(/\.\d{3}Z$/) },
        { channel: 'sms', to: customer.phone, status: 'sent', at: expect.stringMatching(/\.\d{3}Z$/) },
      ],
    ])
    const [[mail], [text]] = [await outbox(customer.email), await outbox(customer.phone)]
    expect(mail.from).toBe('"Harbor" <billing@harbor.example>')
    expect(mail.text).toContain(created.url)
    expect(mail.text).toContain('$105.00')
    expect(text.from).not.toBe('+12025550199')
    expect(text.text).toContain(created.url)
    expect((await shown(created.id)).delivery).toEqual(created.delivery)
  })

  test('goes to somebody else where that is said', async () => {
    const deliver = { email: true, email_to: 'other@tidewater.example', sms: true, sms_to: '+12025550102' }
    const created = await session({ customer, deliver })
    expect(created.delivery.map(({ to }: { to: string }) => to)).toEqual([deliver.email_to, deliver.sms_to])
    const again = (await reissue(created.id, { deliver: { email: true } })).body.data
    expect(again.delivery).toMatchObject([{ channel: 'email', to: customer.email, status: 'sent' }])
    expect((await outbox(customer.email))[0].text).toContain(again.url)
    expect((await outbox(deliver.email_to)).length).toBe(1)
  })

  test.each(['unreachable', 'decline', 'timeout'])(
    'that fails raises a webhook, and the address can be used: %s',
    async (mode) => {
      await fault('mail', mode)
      await fault('text', mode)
      const { id, url, ...created } = await session({ customer, deliver: { email: true, sms: true } })
      const failed = { status: 'failed', reason: expect.stringMatching(/\w/), at: expect.any(String) }
      expect([created.delivery_ok, created.delivery]).toEqual([
        false,
        [
          { channel: 'email', to: customer.email, ...failed },
          { channel: 'sms', to: customer.phone, ...failed },
        ],
      ])
      const read = await shown(id)
      expect([read.delivery, read.delivery_ok, read.status]).toEqual([created.delivery, false, 'pending'])
      expect((await checkout(tokenOf({ url }))).status).toBe(200)
    },
  )

  test('that fails does not keep another one', async () => {
    await fault('mail', 'unreachable')
    const { delivery, delivery_ok } = await session({ customer, deliver: { email: true, sms: true } })
    expect([delivery_ok, delivery.map(({ status }: { status: string }) => status)]).toEqual([
      ...[false, ['failed', 'sent']],
    ])
  })
})

describe('a page', () => {
  test('is opened by the first look, not by its plan', async () => {
    const { id, url } = await session({ total_installments: 3 })
    await page(tokenOf({ url }), '/plan')
    const address = `${service.paymentsUrl}/public/payment-sessions/${tokenOf({ url })}`
    expect((await send(address, { method: 'HEAD' })).status).toBe(200)
    expect(await shown(id)).toMatchObject({ status: 'pending', opened_at: null })
    await page(tokenOf({ url }))
    const { opened_at, status } = await shown(id)
    expect([status, opened_at]).toEqual(['opened', expect.any(String)])
    await advance(60)
    await page(tokenOf({ url }))
    expect((await shown(id)).opened_at).toBe(opened_at)
  })

  test('is read nothing of without its token', async () => {
    const token = tokenOf(await session())
    const strange = `${token.slice(0, -4)}0000`
    const posted = async (to: string, path: string, body: string) => {
      const answer = await post(to, path, body)
      return [answer.status, answer.body.message]
    }
    const padded = (bytes: number) => `{${' '.repeat(bytes - 2)}}`
    for (const path of ['/checkout', '/bank-debit']) {
      expect(await posted(strange, path, '{')).toEqual([404, 'There is no such payment session'])
      expect(await posted(strange, path, padded(1024 * 1024))).toEqual([
        404,
        'There is no such payment session',
      ])
    }
    expect(await posted(token, '/bank-debit', padded(16 * 1024))).toEqual([400, expect.any(String)])
  })

  test('is there for nobody without its token', async () => {
    const { id, url } = await session({ total_installments: 3 })
    const token = tokenOf({ url })
    const other = tokenOf(await session())
    const guesses = [
      ...[
        'x',
        id,
        token.slice(0, -1),
        `${token}A`,
        token.toLowerCase(),
        `${token.slice(0, 16)}${other.slice(16)}`,
      ],
      ...[
        token.slice(0, 16) + 'A'.repeat(43),
        `${token}%20`,
        `${token}.`,
        '%00',
        token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      ],
    ]
    for (const guess of guesses) {
      for (const answer of [
        await page(guess),
        await page(guess, '/plan'),
        await checkout(guess),
        await arrange(guess),
      ]) {
        expect([guess, answer.status, answer.body.error]).toEqual([guess, 404, 'Not Found'])
      }
    }
    expect((await shown(id)).status).toBe('pending')
  })

  test.each([
    [{ routing_number: '021000022' }, 'routing_number'],
    [{ account_number: '1234' }, 'account_number'],
    [{ authorized: 'true' }, 'authorized'],
  ])('takes no bank account with %j', async (wrong, word) => {
    const { id, url } = await session()
    const answer = await post(tokenOf({ url }), '/bank-debit', { ...BANK_ACCOUNT, ...wrong })
    expect(refusalOf(answer)).toEqual([400, false, 'Bad Request', expect.stringContaining(word)])
    expect((await shown(id)).status).toBe('pending')
  })
})

describe('a payment by card', () => {
  const told = async (type: string, id: string) =>
    (await raised(service, tenant.tenantId, type)).filter(
      ({ payment_session_id }) => payment_session_id === id,
    )
  const charged = (id: string) => ({
    payment_session_id: id,
    policy_id: tenant.policyId,
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    amount_cents: 10_500,
    currency: 'usd',
    premium_cents: 10_000,
    fee_cents: 500,
    fee_source: 'partner',
    payment_type: 'ONE_TIME',
    payment_context: 'one_time_payment',
    metadata: {},
  })
  const sums = { amount_cents: 10_500, fee_cents: 500 }

  test.each(['link', 'embedded'])('raises a webhook with all its figures: %s', async (mode) => {
    const { id } = await session({ ...sums, mode })
    await decline(id)
    expect((await shown(id)).status).toBe('pending')
    await pay(id)
    const { paid_at, status } = await shown(id)
    expect(status).toBe('paid')
    expect(await told('payment.failed', id)).toEqual([
      {
        ...charged(id),
        failed_at: expect.stringMatching(/Z$/),
        failure_message: expect.stringContaining('insufficient_funds'),
      },
    ])
    expect(await told('payment.completed', id)).toEqual([
      {
        ...charged(id),
        payment_id: expect.stringMatching(/^[0-9a-f]{24}$/),
        amount_paid_cents: 10_500,
        paid_at,
      },
    ])
    await pay(id)
    expect(await told('payment.completed', id)).toHaveLength(1)
  })
})
