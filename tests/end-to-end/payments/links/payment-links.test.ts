import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents, logHead, serviceTime } from '../../../support/core.ts'
import { linkBody, linkOf, newLink, partner, raised } from '../../../support/payments.ts'
import {
  type Answer,
  operate,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
  send,
} from '../../../support/seed.ts'
import { type SharedService, sharedService, startProcess } from '../../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
})

const ID = expect.stringMatching(/^[0-9a-f]{24}$/)
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const UNKNOWN = 'f'.repeat(24)
const DAY_MS = 86_400_000
const refusal = (error: string, message: unknown = expect.stringMatching(/\S/)) =>
  expect.objectContaining({
    ok: false,
    error,
    message,
  })

const as =
  (headers: Record<string, string>) => (method: string, path: string, body?: unknown, key?: string) =>
    partner(service, headers, method, path, body, key)
const ask = (method: string, path: string, body?: unknown, key?: string) =>
  as(tenant.clientHeaders)(method, path, body, key)
const create = (overrides: Record<string, unknown> = {}, key?: string) =>
  ask('POST', '/payment-links', linkBody(tenant, overrides), key)
const link = (overrides: Record<string, unknown> = {}) => newLink(service, tenant, overrides)
const shown = (id: string) => linkOf(service, tenant, id)
const simulate = (id: string, body?: unknown) => ask('POST', `/payment-links/${id}/simulate-completion`, body)
const plan = (overrides: Record<string, unknown> = {}) => ({
  payment_type: 'DIRECT_BILLING',
  payment_context: 'down_payment',
  premium_cents: 120_000,
  fee_cents: 0,
  total_installments: 12,
  down_payment_months: 2,
  ...overrides,
})
const policyStatus = async (id: string) => (await operate(service, 'GET', `/policies/${id}`)).status

/** Sends what is refused: nothing is stored by it. */
async function refused(request: () => Promise<Answer>): Promise<Answer> {
  const before = await logHead(service)
  const answer = await request()
  expect(await logHead(service)).toBe(before)
  return answer
}

describe('a payment link', () => {
  test('is created with what the documents name, and nothing else', async () => {
    const answer = await create({ fee_breakdown: [{ label: 'Agency', amount_cents: 300 }] })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      ok: true,
      data: {
        _id: ID,
        processor_payment_link_id: expect.stringMatching(/\S/),
        processor_url: `${service.portalUrl}/pay/${answer.body.data._id}`,
        status: 'created',
        billing_entity_type: 'employer',
        total_cents: 10_500,
        link_amount_cents: 10_500,
        installment_plan: null,
      },
    })
  })

  test('is read with everything that was sent', async () => {
    const sent = {
      fee_breakdown: [
        { label: 'Agency', amount_cents: 300 },
        { label: 'Rounding', amount_cents: -1 },
      ],
      customer: { name: 'Café Ünder', email: 'pay@under.example', phone: '+15035550147' },
      delivery: { email: false, sms: true },
      created_by: 'desk 4',
      after_completion_url: 'https://partner.example/done?x=1',
      invoice_id: 'INV-7',
      metadata: { quote: 'Q-1', source: 'mine', api_client_id: 'mine' },
    }
    const created = await link(sent)
    const read = await shown(created._id)
    expect(read).toEqual({
      ...created,
      ...linkBody(tenant, sent),
      environment: 'sandbox',
      fee_source: 'partner',
      currency: 'usd',
      total_installments: null,
      down_payment_months: null,
      metadata: { quote: 'Q-1', source: 'payment_api', api_client_id: tenant.tenantId },
      payment: null,
      refunded_cents: 0,
      refunds: [],
      created_at: TIME,
      updated_at: TIME,
      expires_at: TIME,
      sent_at: null,
      paid_at: null,
      cancelled_at: null,
    })
    expect(Date.parse(read.expires_at) - Date.parse(read.created_at)).toBe(30 * DAY_MS)
  })

  test('of direct billing charges the down payment of its plan', async () => {
    const created = await link(plan())
    expect(created).toMatchObject({
      total_cents: 120_000,
      link_amount_cents: 20_000,
      installment_plan: {
        total_installments: 12,
        down_payment_percentage: 16.67,
        down_payment_cents: 20_000,
        per_installment_cents: 10_000,
        extra_fee_cents: 0,
      },
    })
    expect(await shown(created._id)).toMatchObject({ total_installments: 12, down_payment_months: 2 })
  })

  test('needs no plan fields where it is paid at once', async () => {
    const created = await link({ total_installments: 0, down_payment_months: -1 })
    expect(created.installment_plan).toBeNull()
  })
})

describe('what is sent for a payment link', () => {
  let head: string
  beforeAll(async () => {
    head = await logHead(service)
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['no carrier, as the key is for all', { carrier_id: undefined }, 'carrier_id'],
    ['nothing to pay', { premium_cents: 0, fee_cents: 0 }, 'premium_cents'],
    ['more than can be counted', { premium_cents: 2 ** 53 - 1, fee_cents: 1 }, 'premium_cents'],
    ['two emails', { customer: { name: 'A', email: 'a@b.example,c@d.example' } }, 'customer.email'],
    ['a text without a number', { delivery: { sms: true } }, 'customer.phone'],
    ['a URL that is none', { after_completion_url: 'notaurl' }, 'after_completion_url'],
    ['a URL that runs', { after_completion_url: 'javascript:alert(1)' }, 'after_completion_url'],
    ['metadata above 64 KiB', { metadata: { a: 'x'.repeat(64 * 1024) } }, 'metadata'],
    ['no months', plan({ total_installments: undefined }), 'total_installments'],
    ['one month', plan({ total_installments: 1 }), 'total_installments'],
    ['no months down', plan({ down_payment_months: undefined }), 'down_payment_months'],
    ['zero months down', plan({ down_payment_months: 0 }), 'down_payment_months'],
    ['all months down', plan({ total_installments: 2, down_payment_months: 2 }), 'down_payment_months'],
    ['less than a cent a month', plan({ premium_cents: 11 }), 'total_installments'],
  ])('is refused with %s', async (_what, overrides, field) => {
    const answer = await create(overrides)
    expect([answer.status, answer.body]).toEqual([
      400,
      refusal('Bad Request', expect.stringContaining(field)),
    ])
  })

  test('stores nothing where it is refused', async () => {
    expect(await logHead(service)).toBe(head)
  })

  test.each<[string, Record<string, unknown>]>([
    ['a fee alone', { premium_cents: 0, fee_cents: 500 }],
    ['a breakdown that sums to something else', { fee_breakdown: [{ label: 'Other', amount_cents: 300 }] }],
    ['an invoice that nobody knows', { invoice_id: 'unknown' }],
    ['the shortest plan', plan({ total_installments: 2, down_payment_months: 1 })],
    ['metadata of 64 KiB', { metadata: { a: 'x'.repeat(64 * 1024 - 8) } }],
    ['one cent', { premium_cents: 1, fee_cents: 0 }],
  ])('may be %s', async (_what, overrides) => {
    expect((await create(overrides)).status).toBe(201)
  })

  test('is refused for a policy that was cancelled', async () => {
    const { policyId } = await seedPolicy(service, tenant)
    await operate(service, 'POST', `/policies/${policyId}/cancel`, {})
    const answer = await refused(() => create({ policy_id: policyId }))
    expect([answer.status, answer.body.message]).toEqual([409, expect.stringContaining('policy')])
  })
})

describe('the list', () => {
  test('has the newest first, in pages, narrowed by carrier, employer and status', async () => {
    const own = await seedTenant(service, { environment: 'sandbox' })
    const second = await seedEmployer(service, { tenantId: own.tenantId, environment: 'sandbox' })
    const policy = await seedPolicy(service, { employerId: second.employerId, carrierId: own.carrierId })
    const links = []
    for (const overrides of [{}, { employer_id: second.employerId, policy_id: policy.policyId }, {}]) {
      links.push((await newLink(service, own, overrides))._id)
    }
    const list = async (query: string) => {
      const { body } = await as(own.clientHeaders)('GET', `/payment-links${query}`)
      return [body.data.map((one: { _id: string }) => one._id), body.pagination.total]
    }
    const [one, two, three] = links
    expect(await list('')).toEqual([[three, two, one], 3])
    expect(await list('?limit=2')).toEqual([[three, two], 3])
    expect(await list('?limit=2&page=2')).toEqual([[one], 3])
    expect(await list(`?employer_id=${second.employerId}`)).toEqual([[two], 1])
    expect(await list(`?carrier_id=${own.carrierId}&employer_id=${own.employerId}`)).toEqual([
      [three, one],
      2,
    ])
    expect(await list(`?carrier_id=${UNKNOWN}`)).toEqual([[], 0])
    const act = as(own.clientHeaders)
    await act('DELETE', `/payment-links/${one}`)
    await act('POST', `/payment-links/${two}/simulate-completion`, {})
    await act('POST', `/sandbox/payment-links/${three}/expire`, {})
    expect(await list('?status=cancelled')).toEqual([[one], 1])
    expect(await list('?status=paid')).toEqual([[two], 1])
    expect(await list('?status=expired')).toEqual([[three], 1])
    expect(await list('?status=created')).toEqual([[], 0])
  })

  test('shows each as it is read alone', async () => {
    const { _id } = await link()
    const { body } = await ask('GET', '/payment-links?limit=1')
    expect(body.data).toEqual([await shown(_id)])
  })
})

describe('simulated completion', () => {
  test('pays in full, and activates the policy before it answers', async () => {
    const { policyId } = await seedPolicy(service, tenant, { status: 'in_progress' })
    const { _id } = await link({ policy_id: policyId })
    const answer = await simulate(_id, { amount_cents: 1 })
    expect([answer.status, answer.body]).toEqual([200, { ok: true, data: { _id, status: 'paid' } }])
    expect(await policyStatus(policyId)).toBe('active')
    const read = await shown(_id)
    expect(read).toMatchObject({ status: 'paid', paid_at: TIME, payment_id: ID })
    expect(read.payment).toEqual({
      payment_id: read.payment_id,
      amount_cents: 10_500,
      currency: 'usd',
      paid_at: read.paid_at,
      processor_payment_id: null,
      late_payment: false,
      fee_source: 'partner',
      metadata: read.metadata,
      refunded_cents: 0,
      refunds: [],
    })
    const again = await simulate(_id)
    expect([again.status, again.body.data]).toEqual([200, { _id, status: 'paid', already_paid: true }])
  })

  test('tells of it once, with what the documents name', async () => {
    const own = await seedTenant(service, { environment: 'sandbox' })
    const withFee = await newLink(service, own, { metadata: { quote: 'Q-1' } })
    const without = await newLink(service, own, { fee_cents: 0, payment_context: 'deposit' })
    const act = as(own.clientHeaders)
    const answers = await Promise.all(
      [1, 2, 3].map(() => act('POST', `/payment-links/${withFee._id}/simulate-completion`, {})),
    )
    expect(answers.map(({ body }) => body.data.already_paid ?? false).sort()).toEqual([false, true, true])
    await operate(service, 'POST', '/drain')
    await act('POST', `/payment-links/${without._id}/simulate-completion`)
    const { payment_id, paid_at } = await linkOf(service, own, withFee._id)
    const [first, second, ...more] = await raised(service, own.tenantId, 'payment.completed')
    expect(more).toEqual([])
    expect(first).toEqual({
      payment_id,
      payment_link_id: withFee._id,
      processor_payment_link_id: withFee.processor_payment_link_id,
      policy_id: own.policyId,
      employer_id: own.employerId,
      carrier_id: own.carrierId,
      amount_cents: 10_500,
      amount_paid_cents: 10_500,
      currency: 'usd',
      premium_cents: 10_000,
      fee_cents: 500,
      fee_source: 'partner',
      metadata: { quote: 'Q-1', api_client_id: own.tenantId, source: 'payment_api' },
      payment_type: 'ONE_TIME',
      payment_context: 'full_payment',
      paid_at,
    })
    expect(second).toMatchObject({ fee_cents: 0, amount_cents: 10_000, payment_context: 'deposit' })
    expect(second).not.toHaveProperty('fee_source')
  })

  test('is refused of plans, and of links that are cancelled or have expired', async () => {
    const [direct, cancelled, expired] = [await link(plan()), await link(), await link()]
    await ask('DELETE', `/payment-links/${cancelled._id}`)
    await ask('POST', `/sandbox/payment-links/${expired._id}/expire`, {})
    for (const [{ _id }, status, word] of [
      [direct, 400, 'created'],
      [cancelled, 409, 'cancelled'],
      [expired, 409, 'expired'],
    ] as const) {
      expect((await refused(() => simulate(_id))).status).toBe(status)
      expect((await shown(_id)).status).toBe(word)
    }
  })
})

describe('cancelling', () => {
  test('ends a link, once', async () => {
    const { _id } = await link()
    const answer = await ask('DELETE', `/payment-links/${_id}`)
    expect([answer.status, answer.body.data]).toEqual([200, await shown(_id)])
    expect(answer.body.data).toMatchObject({ status: 'cancelled', cancelled_at: TIME })
    const again = await refused(() => ask('DELETE', `/payment-links/${_id}`))
    expect([again.status, again.body]).toEqual([200, answer.body])
  })
})

describe('refunds', () => {
  const refund = (id: string, body?: unknown) => ask('POST', `/payment-links/${id}/refund`, body)
  const paidLink = async () => {
    const { _id } = await link()
    await simulate(_id)
    // its webhook is stored behind the answer
    await operate(service, 'POST', '/drain')
    return _id as string
  }

  test('are made in parts, up to what was paid', async () => {
    const id = await paidLink()
    const one = await refund(id, { amount_cents: 1_000, reason: 'duplicate' })
    expect(one.status).toBe(200)
    const { payment_id } = await shown(id)
    const first = {
      refund_id: ID,
      amount_cents: 1_000,
      reason: 'duplicate',
      status: 'succeeded',
      created_at: TIME,
    }
    expect(one.body).toEqual({
      ok: true,
      data: { _id: id, payment_id, status: 'paid', refunded_cents: 1_000, refunds: [first] },
    })
    expect((await refund(id, { amount_cents: 1_000 })).body.data).toMatchObject({
      refunded_cents: 2_000,
      refunds: [first, { amount_cents: 1_000, reason: null }],
    })
    const tooMuch = await refund(id, { amount_cents: 8_501 })
    expect([tooMuch.status, tooMuch.body.message]).toEqual([400, expect.stringContaining('amount_cents')])
    const rest = await refund(id)
    expect(rest.body.data).toMatchObject({ refunded_cents: 10_500, status: 'paid' })
    expect(rest.body.data.refunds[2].amount_cents).toBe(8_500)
    for (const body of [{}, { amount_cents: 1 }]) expect((await refund(id, body)).status).toBe(409)
    const read = await shown(id)
    expect(read).toMatchObject({ status: 'paid', refunded_cents: 10_500, refunds: rest.body.data.refunds })
    expect(read.payment).toMatchObject({ refunded_cents: 10_500, refunds: rest.body.data.refunds })
  })

  test('sent at the same time never exceed what was paid', async () => {
    const id = await paidLink()
    const answers = await Promise.all(
      [4_000, 4_000, 4_000, 2_000].map((amount_cents) => refund(id, { amount_cents })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 400])
    const { refunded_cents, refunds } = await shown(id)
    expect(refunds.reduce((sum: number, one: { amount_cents: number }) => sum + one.amount_cents, 0)).toBe(
      refunded_cents,
    )
    expect(refunded_cents).toBeLessThanOrEqual(10_500)
  })

  test('are told, each with the sum of all', async () => {
    const own = await seedTenant(service, { environment: 'sandbox' })
    const { _id } = await newLink(service, own)
    const act = as(own.clientHeaders)
    await act('POST', `/payment-links/${_id}/simulate-completion`)
    await act('POST', `/payment-links/${_id}/refund`, { amount_cents: 1_000, reason: 'fraudulent' })
    await act('POST', `/payment-links/${_id}/refund`, { amount_cents: 2_000 })
    const { payment_id } = await linkOf(service, own, _id)
    const told = await raised(service, own.tenantId, 'payment.refunded')
    const common = { payment_id, payment_link_id: _id, currency: 'usd', refunded_at: TIME }
    expect(told).toHaveLength(2)
    expect(told).toEqual(
      expect.arrayContaining([
        { ...common, amount_cents: 1_000, refunded_cents: 1_000, reason: 'fraudulent' },
        { ...common, amount_cents: 2_000, refunded_cents: 3_000 },
      ]),
    )
  })
})

describe('a declined attempt', () => {
  test('is told, and leaves the link payable', async () => {
    const own = await seedTenant(service, { environment: 'sandbox' })
    const created = await newLink(service, own, { metadata: { quote: 'Q-1' } })
    const act = as(own.clientHeaders)
    const failed = await act('POST', `/sandbox/payment-links/${created._id}/fail`, {
      failure_message: 'Insufficient\u0007 funds',
    })
    expect([failed.status, failed.body.data]).toEqual([200, { _id: created._id, status: 'created' }])
    expect(await raised(service, own.tenantId, 'payment.failed')).toEqual([
      {
        payment_link_id: created._id,
        processor_payment_link_id: created.processor_payment_link_id,
        policy_id: own.policyId,
        employer_id: own.employerId,
        carrier_id: own.carrierId,
        amount_cents: 10_500,
        currency: 'usd',
        premium_cents: 10_000,
        fee_cents: 500,
        fee_source: 'partner',
        metadata: { quote: 'Q-1', api_client_id: own.tenantId, source: 'payment_api' },
        payment_type: 'ONE_TIME',
        payment_context: 'full_payment',
        failed_at: TIME,
        failure_message: 'Insufficient  funds',
      },
    ])
    expect((await act('POST', `/payment-links/${created._id}/simulate-completion`)).status).toBe(200)
    expect((await act('POST', `/sandbox/payment-links/${created._id}/fail`)).status).toBe(409)
  })

  test('or an end of its time that a payment or a cancellation forestalls is 409', async () => {
    const act = as(tenant.clientHeaders)
    const verbs = ['simulate-completion', 'cancel', 'fail', 'expire', 'fail', 'expire'] as const
    for (let round = 0; round < 6; round += 1) {
      const { _id: id } = await newLink(service, tenant)
      // twice over, whoever comes first
      const answers = await Promise.all(
        [...verbs, ...verbs].map((verb) => {
          if (verb === 'cancel') return act('DELETE', `/payment-links/${id}`)
          const base = verb === 'simulate-completion' ? '/payment-links' : '/sandbox/payment-links'
          return act('POST', `${base}/${id}/${verb}`, {})
        }),
      )
      for (const { status, body } of answers)
        expect([status, body]).toEqual([expect.toBeOneOf([200, 409]), body])
    }
  })
})

describe('the lifetime', () => {
  test('is the tenant’s; every read and the list know when it is over', async () => {
    const own = await seedTenant(service, { environment: 'sandbox' })
    const settings = await operate(service, 'PUT', `/tenants/${own.tenantId}/checkout`, {
      payment_link_ttl_days: 2,
    })
    expect(settings).toMatchObject({ payment_link_ttl_days: 2, config_version: 1 })
    const { _id } = await newLink(service, own)
    const { created_at, expires_at } = await linkOf(service, own, _id)
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(2 * DAY_MS)
    const now = await serviceTime(service)
    await operate(service, 'POST', '/clock/advance', { to: new Date(now + 2 * DAY_MS - 1_000).toISOString() })
    expect((await linkOf(service, own, _id)).status).toBe('created')
    await operate(service, 'POST', '/clock/advance', { seconds: 1 })
    expect(await linkOf(service, own, _id)).toMatchObject({ status: 'expired' })
    const listed = await as(own.clientHeaders)('GET', '/payment-links?status=expired')
    expect(listed.body.data).toMatchObject([{ _id, status: 'expired' }])
    await operate(service, 'POST', '/drain')
    const swept = (await allEvents(service, 'PaymentLinkExpired')).filter(
      ({ data }) => data.payment_link_id === _id,
    )
    expect(swept.map(({ data }) => data.expired_at)).toEqual([expires_at])
    const answer = await as(own.clientHeaders)('POST', `/payment-links/${_id}/simulate-completion`)
    expect(answer.status).toBe(409)
  })
})

describe('metadata', () => {
  test('of a name that cannot be kept is refused', async () => {
    const body = { ...linkBody(tenant), metadata: JSON.parse('{"a":"b","__proto__":"c"}') }
    const { status, body: answer } = await ask('POST', '/payment-links', body)
    expect([status, answer.message]).toEqual([400, expect.stringContaining('metadata.__proto__')])
  })
})

describe('checkout settings', () => {
  const path = () => `${service.opsUrl}/ops/v1/tenants/${tenant.tenantId}/checkout`
  const put = (body: unknown) =>
    send(path(), { method: 'PUT', headers: { Authorization: `Bearer ${service.operatorToken}` }, body })
  const all = {
    enabled: true,
    display_name: 'Acme',
    logo_url: 'https://acme.example/logo.svg',
    accent_color: '#1a2b3c',
    support_email: 'help@acme.example',
    web_address: 'https://pay.acme.example',
    link_format: '/pay/{token}',
    sender_name: 'Acme',
    sender_email: 'billing@acme.example',
    sms_from: '+12025550123',
    link_ttl_minutes: 60,
    single_use: false,
    payment_link_ttl_days: 30,
    embed_origins: ['https://app.acme.example'],
  }

  test('are versioned by change', async () => {
    const first = await put(all)
    expect([first.status, first.body.data]).toEqual([
      200,
      {
        tenant_id: tenant.tenantId,
        ...all,
        config_version: 1,
        web_address_verified: false,
        web_address_challenge: { dns: expect.anything(), file: expect.anything() },
        logo_copied: false,
        logo_problem: null,
      },
    ])
    expect((await put(all)).body.data.config_version).toBe(1)
    expect((await put({ ...all, enabled: false })).body.data).toMatchObject({
      enabled: false,
      config_version: 2,
    })
    expect((await put({})).body.data).toMatchObject({ payment_link_ttl_days: 30, config_version: 3 })
  })

  test.each<[string, unknown]>([
    ['link_format', '/pay'],
    ['logo_url', 'http://acme.example/logo.svg'],
    ['web_address', 'http://pay.acme.example'],
    ['sender_email', 'a@b.example\r\nBcc: c@d.example'],
  ])('refuse %s %j', async (name, value) => {
    const answer = await put({ [name]: value })
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(name)])
  })
})

describe('where nobody sweeps', () => {
  // unit/payments/links/decisions-payment-links reads it as expired as soon as its time is over, the test above has it in lists
  test('a link whose time is over reads expired, alone and in lists, and cannot be paid', {
    tags: 'long',
  }, async () => {
    const idle = await startProcess({ env: { ROLES: 'api,projector' } })
    try {
      const own = await seedTenant(idle, { environment: 'sandbox' })
      const { _id } = await newLink(idle, own)
      await operate(idle, 'POST', '/clock/advance', { seconds: 30 * 86_400 })
      expect((await linkOf(idle, own, _id)).status).toBe('expired')
      const ask = (method: string, path: string) => partner(idle, own.clientHeaders, method, path)
      const listed = async (status: string) => (await ask('GET', `/payment-links?status=${status}`)).body.data
      expect(await listed('expired')).toMatchObject([{ _id, status: 'expired' }])
      expect(await listed('created')).toEqual([])
      expect((await ask('POST', `/payment-links/${_id}/simulate-completion`)).status).toBe(409)
      expect((await ask('DELETE', `/payment-links/${_id}`)).status).toBe(409)
      expect(await allEvents(idle, 'PaymentLinkExpired')).toEqual([])
    } finally {
      await idle.stop()
    }
  })
})

describe('the page of a link', () => {
  test('is readable, runs nothing, and shows nothing of the customer', async () => {
    const { _id, processor_url } = await link({ after_completion_url: 'https://partner.example/?a=1&b="' })
    const open = await send(processor_url)
    expect(open.status).toBe(200)
    expect(open.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(open.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(open.text).toContain('$105.00')
    expect(open.text).toContain('Full payment')
    expect(open.text).not.toMatch(/tidewater|<script|<form/i)
    await simulate(_id)
    const paid = await send(processor_url)
    expect(paid.text).toContain('<h1>Paid</h1>')
    expect(paid.text).toContain('href="https://partner.example/?a=1&amp;b=&quot;"')
  })

  test.each([
    ['cancelled', 'DELETE', '', 'Cancelled'],
    ['expired', 'POST', 'expire', 'Expired'],
  ])('says when it is %s', async (status, method, verb, title) => {
    const { _id, processor_url } = await link()
    const path = verb === '' ? `/payment-links/${_id}` : `/sandbox/payment-links/${_id}/${verb}`
    expect((await ask(method, path)).status).toBe(200)
    expect((await send(processor_url)).text).toContain(`<h1>${title}</h1>`)
    const data = await send(`${service.paymentsUrl}/public/payment-links/${_id}`)
    expect(data.body.data).toMatchObject({ status, processor_url: null, after_completion_url: null })
  })

  test('is 404 for an unknown id', async () => {
    for (const id of [UNKNOWN, 'tok_1', '%3Cscript%3E']) {
      const page = await send(`${service.portalUrl}/pay/${id}`)
      expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
      const data = await send(`${service.paymentsUrl}/public/payment-links/${id}`)
      expect([data.status, data.body]).toEqual([404, refusal('Not Found')])
    }
  })

  test('has data for whoever has its address, below /public alone', async () => {
    const { _id, processor_url, installment_plan } = await link(
      plan({ payment_context: 'late_quarterly_941s' }),
    )
    const data = await send(`${service.paymentsUrl}/public/payment-links/${_id}`)
    expect([data.status, data.body]).toEqual([
      200,
      {
        ok: true,
        data: {
          _id,
          status: 'payable',
          environment: 'sandbox',
          seller: tenant.carrierName,
          description: 'Late quarterly 941s',
          amount_cents: 20_000,
          currency: 'usd',
          premium_cents: 120_000,
          fee_cents: 0,
          total_cents: 120_000,
          installment_plan,
          expires_at: TIME,
          processor_url,
          after_completion_url: null,
        },
      },
    ])
    expect((await send(`${service.paymentsUrl}/api/v1/public/payment-links/${_id}`)).status).toBe(404)
  })
})
