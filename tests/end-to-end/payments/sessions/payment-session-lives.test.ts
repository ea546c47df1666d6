import { beforeAll, describe, expect, test } from 'vitest'
import { streamEvents } from '../../../support/core.ts'
import { intakeBody, newClient, takeIn } from '../../../support/intake.ts'
import { enableCheckout, newSession, sessionCallsOf, tokenOf } from '../../../support/payment-sessions.ts'
import { newLink, partner } from '../../../support/payments.ts'
import { askOperator, operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** What becomes of payment sessions, on a clock and with faults of their own. */

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})

const {
  session,
  shown,
  reissue,
  cancel,
  page,
  checkout,
  arrange,
  pay,
  advance,
  fault,
  listed,
  refusalOf,
  conflict,
  expectClosed,
} = sessionCallsOf(() => [service, tenant])
const eventsOf = async (id: string) =>
  (await streamEvents(service, `paymentSession-${id}`)).map(({ type }) => type)

describe('a session that is cancelled', () => {
  test('says so, stays so, and cannot be paid', async () => {
    const { id, url } = await session()
    await checkout(tokenOf({ url }))
    const { status, body } = await cancel(id)
    expect([status, body]).toEqual([200, { ok: true, data: { id, status: 'cancelled' } }])
    const read = await shown(id)
    expect(read).toMatchObject({ status: 'cancelled', cancelled_at: expect.any(String), paid_at: null })
    await expectClosed(tokenOf({ url }), 'cancelled', 'cancelled')
    expect((await cancel(id)).body.data).toEqual({ id, status: 'cancelled' })
    expect(await shown(id)).toEqual(read)
    expect((await eventsOf(id)).filter((type) => type === 'PaymentSessionCancelled')).toHaveLength(1)
  })

  test('cannot be paid or declined by simulation', async () => {
    const { id } = await session()
    await cancel(id)
    for (const outcome of ['succeed', 'decline']) {
      const { status, body } = await askOperator(service, 'POST', `/card-processor/${id}/${outcome}`, {})
      expect([outcome, status, body.code]).toEqual([outcome, 409, 'session_not_payable'])
    }
  })

  test('has no plan any more', async () => {
    const { id, url } = await session({ total_installments: 3 })
    expect((await page(tokenOf({ url }), '/plan')).status).toBe(200)
    await cancel(id)
    expect((await page(tokenOf({ url }), '/plan')).status).toBe(404)
  })
})

describe('a session whose time is over', () => {
  test('is expired from that moment, for everybody', async () => {
    const { id, url } = await session({ ttl_minutes: 15, total_installments: 2, down_payment_percent: 50 })
    const token = tokenOf({ url })
    await advance(15 * 60 - 1)
    expect(await shown(id)).toMatchObject({ status: 'pending' })
    expect((await page(token)).body.data.status).toBe('opened')
    await advance(1)
    expect(await shown(id)).toMatchObject({ status: 'expired', paid_at: null, cancelled_at: null })
    expect(await listed('status=expired')).toContain(id)
    expect(await listed('status=opened')).not.toContain(id)
    await expectClosed(token, 'expired', 'expired')
    expect((await page(token, '/plan')).status).toBe(404)
    expect(refusalOf(await cancel(id))).toEqual(conflict('expired'))
    await operate(service, 'POST', '/drain')
    expect(await eventsOf(id)).toEqual([
      ...['PaymentSessionCreated', 'PaymentSessionOpened', 'PaymentSessionExpired'],
    ])
    expect(await listed('status=expired')).toContain(id)
  })
})

describe('a session that is issued anew', () => {
  const details = {
    amount_cents: 10_500,
    fee_cents: 500,
    description: 'Policy 2026',
    single_use: false,
    fee_breakdown: [{ label: 'Filing fee', amount_cents: 500 }],
    created_by: 'desk 4',
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example', phone: '+12025550123' },
  }
  const SAME = [
    ...['amount_cents', 'line_items', 'premium_cents', 'fee_cents', 'description', 'single_use', 'customer'],
    ...['created_by', 'employer_id', 'policy_id', 'carrier_id', 'mode'],
  ]

  test('has the same details under another address', async () => {
    const old = await session(details)
    const { status, body } = await reissue(old.id)
    expect([status, Object.keys(body.data).sort()]).toEqual([201, [...Object.keys(old), 'replaces'].sort()])
    expect(body.data.id).not.toBe(old.id)
    expect(tokenOf(body.data)).not.toBe(tokenOf(old))
    const [before, after] = [await shown(old.id), await shown(body.data.id)]
    for (const name of SAME) expect([name, after[name]]).toEqual([name, before[name]])
    expect(after).toMatchObject({ replaces: old.id, status: 'pending' })
    expect(before).toMatchObject({ replaced_by: body.data.id, status: 'cancelled' })
    await expectClosed(tokenOf(old), 'cancelled', 'cancelled')
    expect((await checkout(tokenOf(body.data))).status).toBe(200)
    const further = await reissue(body.data.id)
    expect([further.status, further.body.data.replaces]).toEqual([201, body.data.id])
  })

  test('lasts as configured from now, its plan counts from now', async () => {
    const old = await session({ total_installments: 2, ttl_minutes: 10_080 })
    await advance(3 * 86_400)
    const { data } = (await reissue(old.id)).body
    const { created_at, expires_at } = await shown(data.id)
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(1_440 * 60_000)
    const { installments } = (await page(tokenOf(data), '/plan')).body.data
    const month = new Date(created_at).getUTCMonth()
    expect(new Date(installments[0].due_at).getUTCMonth()).toBe((month + 1) % 12)
    expect(installments[0].due_at.slice(8, 10)).toBe(created_at.slice(8, 10))
  })

  test('is refused for one that is paid, or has a debit, cancelled since or not', async () => {
    const paid = await session()
    await pay(paid.id)
    expect(refusalOf(await reissue(paid.id))).toEqual(conflict('paid'))
    expect(refusalOf(await cancel(paid.id))).toEqual(conflict('paid'))
    for (const plan of [{}, { total_installments: 2 }]) {
      const arranged = await session(plan)
      expect((await arrange(tokenOf(arranged))).status).toBe(200)
      const refusal = conflict('bank debit is already arranged')
      expect(refusalOf(await reissue(arranged.id))).toEqual(refusal)
      expect((await cancel(arranged.id)).body.data.status).toBe('cancelled')
      expect(refusalOf(await reissue(arranged.id))).toEqual(refusal)
    }
  })

  test('is one of many at once; all others name it', async () => {
    for (const mode of ['link', 'embedded']) {
      const { id } = await session({ mode })
      const answers = await Promise.all(Array.from({ length: 5 }, () => reissue(id)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
      const won = answers.find(({ status }) => status === 201)!.body.data.id
      expect((await shown(id)).replaced_by).toBe(won)
      for (const { status, body } of answers) if (status === 409) expect(body.replaced_by).toBe(won)
      expect((await listed('')).length).toBe(new Set(await listed('')).size)
    }
  })

  test('has a checkout of its own where it is embedded', async () => {
    const old = await session({ mode: 'embedded' })
    for (const deliver of [{ email: true }, { email: false }, {}]) {
      expect(refusalOf(await reissue(old.id, { deliver }))).toEqual([
        ...[400, false, 'Bad Request', expect.stringContaining('deliver')],
      ])
    }
    const { status, body } = await reissue(old.id)
    expect([status, Object.keys(body.data).sort()]).toEqual([
      201,
      ['client_secret', 'config_version', 'id', 'publishable_key', 'replaces', 'status'],
    ])
    expect(body.data.client_secret).not.toBe(old.client_secret)
    await pay(body.data.id)
    expect((await shown(body.data.id)).status).toBe('paid')
  })

  test('is finished by who asks again when the card processor failed in between', async () => {
    const old = await session({ mode: 'embedded', ttl_minutes: 15 })
    await advance(15 * 60)
    await operate(service, 'POST', '/drain')
    await fault('card-processor', 'unreachable')
    expect((await reissue(old.id)).status).toBe(502)
    const { replaced_by } = await shown(old.id)
    const { status, body } = await reissue(old.id)
    expect([status, body.data.replaces]).toEqual([201, old.id])
    expect([null, undefined, body.data.id]).toContain(replaced_by)
    expect(await shown(old.id)).toMatchObject({ status: 'expired', replaced_by: body.data.id })
    expect((await reissue(old.id)).body.replaced_by).toBe(body.data.id)
  })
})

test('a debit is arranged once, or the session is replaced, never both', async () => {
  for (let round = 0; round < 4; round++) {
    const one = await session()
    const arranging = () => arrange(tokenOf(one))
    const acts = [arranging, () => reissue(one.id), arranging, () => reissue(one.id), arranging]
    const answers = await Promise.all((round % 2 === 0 ? acts : acts.toReversed()).map((act) => act()))
    const done = answers.filter(({ status }) => status < 300)
    expect(done).toHaveLength(1)
    for (const answer of answers) {
      if (answer !== done[0]) expect([answer.status, answer.body.ok]).toEqual([409, false])
    }
    const { status, leg_id, replaced_by } = await shown(one.id)
    if (status === 'scheduled') expect([leg_id, replaced_by]).toEqual([done[0]!.body.data.leg_id, undefined])
    else expect([status, leg_id, replaced_by]).toEqual(['cancelled', undefined, done[0]!.body.data.id])
    expect(await eventsOf(one.id)).toHaveLength(2)
  }
})

test('a session does not activate a policy that was taken in; a link does', async () => {
  const { headers } = await newClient(service, tenant.tenantId, { carrier_ids: [tenant.carrierId] })
  const { employer_id, policy_id } = (await takeIn(service, headers, intakeBody())).body.data
  const policy = async () => (await operate(service, 'GET', `/policies/${policy_id}`)).status
  const { id } = await session({ employer_id, policy_id })
  await pay(id)
  await operate(service, 'POST', '/drain')
  expect((await shown(id)).status).toBe('paid')
  expect(await policy()).toBe('in_progress')
  await pay((await newLink(service, tenant, { employer_id, policy_id }))._id)
  await operate(service, 'POST', '/drain')
  expect(await policy()).toBe('active')
})

test('a customer who was erased is no longer shown, and is not invited again', async () => {
  const other = await seedTenant(service)
  await enableCheckout(service, other)
  const of = (method: string, path: string, body?: unknown) =>
    partner(service, other.clientHeaders, method, path, body)
  const created = await newSession(service, other, { deliver: { email: true } })
  const { data_subject } = await operate(service, 'GET', `/employers/${other.employerId}`)
  await operate(service, 'POST', '/erasures', { subject: data_subject })
  const read = (await of('GET', `/payment-sessions/${created.id}`)).body.data
  expect(read.customer).toEqual({ name: '(erased)', email: '(erased)', phone: null })
  expect(read.delivery[0].to).toBe('(erased)')
  const again = await of('POST', `/payment-sessions/${created.id}/reissue`, { deliver: { email: true } })
  expect(refusalOf(again)).toEqual(conflict('erased'))
  expect((await of('GET', `/payment-sessions/${created.id}`)).body.data.status).toBe('pending')
  expect((await page(tokenOf(created))).status).toBe(200)
  expect((await arrange(tokenOf(created))).status).toBe(200)
})
