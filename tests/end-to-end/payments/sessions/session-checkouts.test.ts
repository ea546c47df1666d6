import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { allEvents } from '../../../support/core.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import type { RunningService } from '../../../support/service.ts'
import { SoldSession } from '../../../support/session-payer.ts'
import type { StripeAct } from '../../../support/stripe-answers.ts'
import { StripeStandIn } from '../../../support/stripe-stand-in.ts'
import { advance, type Json } from '../../../support/subscriptions.ts'

const HOUR = 3_600
const UNAVAILABLE = { status: 409, body: { ok: false, error: 'Unavailable' } }
const CONFLICT = { status: 409, body: { ok: false, error: 'Conflict' } }

let stripe: StripeStandIn
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  stripe = await StripeStandIn.start()
  service = await stripe.startService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})
afterAll(() => stripe?.stop())
afterEach(() => {
  stripe.meanwhile = null
  stripe.fail(500, { times: 0 })
})

const sell = (overrides: Readonly<Record<string, unknown>> = {}) =>
  SoldSession.sell(service, tenant, overrides)
const drain = () => operate(service, 'POST', '/drain')
const atCheckout = () => stripe.atCheckout
const statusAtStripe = (secret: string) => atCheckout().of(secret).status
const completed = async (session: SoldSession) =>
  (await session.told()).filter(([type]) => type === 'payment.completed').map(([, payload]) => payload)
const debitIdsOf = async (session: SoldSession) =>
  (await allEvents(service, 'BankDebitCreated')).filter(
    ({ data }) => (data as Json).payment_session_id === session.id,
  )
const alertsOf = async (session: SoldSession) => {
  await drain()
  const all: Json[] = await operate(service, 'GET', `/alerts?tenant_id=${tenant.tenantId}`)
  return all
    .filter(({ about }) => about.payment_session_id === session.id)
    .map(({ kind, about }) => (about.work ? `${kind} ${about.work}` : kind))
}
/** Does something while a request to expire a checkout is on its way to Stripe. */
const whileItCloses = (act: () => void) => {
  let isDone = false
  stripe.meanwhile = async (_method, path) => {
    if (isDone || !path.endsWith('/expire')) return
    isDone = true
    act()
  }
}

describe('a payment by card', () => {
  test('raises one webhook, however often its notice comes', async () => {
    const session = await sell()
    const acts = atCheckout().payByCard(await session.secret())
    const [body] = await stripe.tell(acts)
    expect((await stripe.deliver(body!)).status).toBe(200)
    await stripe.tell(acts)
    expect(await session.status()).toBe('paid')
    expect(await completed(session)).toMatchObject([{ amount_cents: 10_500, amount_paid_cents: 10_500 }])
    expect((await completed(session))[0]).not.toHaveProperty('late_payment')
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
    expect(await session.payFromBank()).toMatchObject(UNAVAILABLE)
    expect(await session.cancel()).toMatchObject(CONFLICT)
    expect(await alertsOf(session)).toEqual([])
  })

  test('that is declined raises a webhook, and the same checkout takes the next one', async () => {
    const session = await sell()
    const secret = await session.secret()
    await stripe.tell(atCheckout().decline(secret))
    expect((await session.told()).map(([type, { failure_message }]) => [type, failure_message])).toEqual([
      ['payment.failed', 'Your card was declined.'],
    ])
    expect(await session.secret()).toBe(secret)
    await stripe.tell(atCheckout().payByCard(secret))
    expect((await session.told()).map(([type]) => type)).toEqual(['payment.failed', 'payment.completed'])
  })

  test('goes on at the same checkout for who reloads, or opens it in two tabs', async () => {
    const session = await sell()
    const before = atCheckout().checkouts.size
    const secrets = await Promise.all([session.secret(), session.secret(), session.secret()])
    expect(new Set([...secrets, await session.secret()]).size).toBe(1)
    expect(atCheckout().checkouts.size - before).toBe(1)
    const acts = atCheckout().payByCard(secrets[0])
    expect(() => atCheckout().payByCard(secrets[1])).toThrow()
    // the notice is still on its way: whoever reloads sees the truth, and pays no more
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
    expect(await session.page()).toMatchObject({ status: 'paid', takes_cards: false })
    await stripe.tell(acts)
    expect(await completed(session)).toHaveLength(1)
    expect((await completed(session))[0]).not.toHaveProperty('late_payment')
  })

  test('goes on at a fresh checkout after a day', async () => {
    const session = await sell()
    const secret = await session.secret()
    await stripe.tell(atCheckout().lapse(secret))
    const fresh = await session.secret()
    expect(fresh).not.toBe(secret)
    // that it has lapsed need not be told
    atCheckout().lapse(fresh)
    const third = await session.secret()
    await stripe.tell(atCheckout().payByCard(third))
    expect([await session.status(), (await completed(session)).length]).toEqual(['paid', 1])
  })

  // contract/payments/stripe-card-processor has every other way in which Stripe fails
  test('that cannot begin is 502, and begins once at the next try', async () => {
    const session = await sell()
    stripe.fail('lost', { times: 4, path: /checkout\/sessions/ })
    expect((await session.checkout()).status).toBe(502)
    stripe.fail('lost', { times: 0 })
    const secret = await session.secret()
    expect(await session.secret()).toBe(secret)
    await stripe.tell(atCheckout().payByCard(secret))
    expect((await completed(session)).length).toBe(1)
  })
})

describe('an embedded session', () => {
  const embed = () => sell({ mode: 'embedded' })

  test('is paid by the secret that it was answered with', async () => {
    const session = await embed()
    await stripe.tell(atCheckout().payByCard(session.clientSecret!))
    expect([await session.status(), (await completed(session)).length]).toEqual(['paid', 1])
  })

  test('that is reissued has another secret, and the old one pays nothing', async () => {
    const session = await embed()
    const next = await session.replaced()
    expect(() => atCheckout().payByCard(session.clientSecret!)).toThrow()
    await stripe.tell(atCheckout().payByCard(next.clientSecret!))
    expect([await session.status(), await next.status()]).toEqual(['cancelled', 'paid'])
  })
})

/** Whatever ends what can be paid by card: how it is asked for, and how it is answered once money was taken. */
const ENDINGS = [
  ['the bank option', (session: SoldSession) => session.payFromBank(), UNAVAILABLE, 'scheduled'],
  ['cancelling', (session: SoldSession) => session.cancel(), CONFLICT, 'cancelled'],
  ['reissuing', (session: SoldSession) => session.reissue(), CONFLICT, 'cancelled'],
] as const

// the first stands for all: unit/payments/sessions/decisions-payment-sessions has what each decides
for (const [name, end, refusal, status] of ENDINGS)
  describe(name, { tags: name === 'the bank option' ? [] : 'long' }, () => {
    test('ends the checkout at Stripe first', async () => {
      const session = await sell()
      const secret = await session.secret()
      const seen: string[] = []
      stripe.meanwhile = async (_method, path) => {
        if (path.endsWith('/expire')) seen.push(await session.status())
      }
      expect((await end(session)).status).toBeLessThan(300)
      expect([await session.status(), statusAtStripe(secret), seen]).toEqual([status, 'expired', ['pending']])
      expect(() => atCheckout().payByCard(secret)).toThrow()
      expect(await session.checkout()).toMatchObject(UNAVAILABLE)
      expect((await session.page()).status).toBe(status)
    })

    test('finds money that was taken, which wins', async () => {
      const session = await sell()
      const acts = atCheckout().payByCard(await session.secret())
      expect(await end(session)).toMatchObject(refusal)
      expect(await session.shown()).toMatchObject({ status: 'paid' })
      expect(await completed(session)).toMatchObject([{ amount_cents: 10_500, late_payment: true }])
      // its notice is no news
      await stripe.tell(acts)
      expect([(await completed(session)).length, await debitIdsOf(session)]).toEqual([1, []])
      expect(await alertsOf(session)).toEqual([])
    })

    test('finds money that is taken at the same moment, which wins', async () => {
      const session = await sell()
      const secret = await session.secret()
      let acts: readonly StripeAct[] = []
      whileItCloses(() => {
        acts = atCheckout().payByCard(secret)
      })
      expect(await end(session)).toMatchObject(refusal)
      await stripe.tell(acts)
      expect([await session.status(), (await completed(session)).length]).toEqual(['paid', 1])
      expect(await debitIdsOf(session)).toEqual([])
    })

    test('changes nothing while Stripe fails, and is done at the next try', async () => {
      const session = await sell()
      const secret = await session.secret()
      stripe.fail('lost', { times: 5, path: /expire$/ })
      expect((await end(session)).status).toBe(502)
      stripe.fail('lost', { times: 0 })
      expect([await session.status(), await debitIdsOf(session)]).toEqual(['pending', []])
      expect((await end(session)).status).toBeLessThan(300)
      expect([await session.status(), statusAtStripe(secret)]).toEqual([status, 'expired'])
    })

    test('ends a checkout that is begun at the same moment, too', async () => {
      const session = await sell()
      const [ended, begun] = await Promise.all([end(session), session.checkout()])
      expect(ended.status).toBeLessThan(300)
      expect(await session.status()).toBe(status)
      if (begun.status === 200) {
        expect(() => atCheckout().payByCard(begun.body.data.client_secret)).toThrow()
      } else expect(begun).toMatchObject(UNAVAILABLE)
    })

    test('once it is done, has money that comes all the same announced as late', async () => {
      const session = await sell()
      const secret = await session.secret()
      expect((await end(session)).status).toBeLessThan(300)
      const { id, metadata } = atCheckout().checkouts.get(atCheckout().of(secret).id)!
      const paid = { id: `pi_late_${id}`, amount_received: 10_500, payment_method: null, metadata: metadata! }
      await stripe.notify('payment_intent.succeeded', paid)
      expect(await session.status()).toBe('paid')
      expect(await completed(session)).toMatchObject([{ late_payment: true }])
      expect(await session.checkout()).toMatchObject(UNAVAILABLE)
      const twice = status === 'scheduled' ? ['payment_session_paid_twice'] : []
      expect(await alertsOf(session)).toEqual(twice)
    })
  })

describe('expiry', () => {
  const brief = () => sell({ ttl_minutes: 15 })

  test('ends the checkout at Stripe', async () => {
    const session = await brief()
    const secret = await session.secret()
    await advance(service, { seconds: 15 * 60 })
    expect([await session.status(), statusAtStripe(secret)]).toEqual(['expired', 'expired'])
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
    expect(await session.payFromBank()).toMatchObject(UNAVAILABLE)
  })

  test('finds money that was taken, which wins', async () => {
    const session = await brief()
    atCheckout().payByCard(await session.secret())
    await advance(service, { seconds: 15 * 60 })
    expect(await session.status()).toBe('paid')
    expect(await completed(session)).toMatchObject([{ late_payment: true }])
  })
})

describe('a bank debit by the card processor', () => {
  /** A session whose payer chose it. */
  const processing = async (overrides: Readonly<Record<string, unknown>> = {}) => {
    const session = await sell(overrides)
    const secret = await session.secret()
    await stripe.tell(atCheckout().payByBank(secret))
    return { session, secret }
  }
  const settle = (secret: string, outcome: 'succeeded' | 'failed') =>
    stripe.tell(atCheckout().settle(secret, outcome))

  test('schedules the session, tells nobody, and keeps everything else off', async () => {
    const { session } = await processing({ ttl_minutes: 15 })
    expect(await session.shown()).toMatchObject({ status: 'scheduled' })
    expect(await session.shown()).not.toHaveProperty('leg_id')
    expect(await session.told()).toEqual([])
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
    expect(await session.payFromBank()).toMatchObject(UNAVAILABLE)
    expect(await session.reissue()).toMatchObject(CONFLICT)
    await advance(service, { seconds: HOUR })
    expect(await session.status()).toBe('scheduled')
    expect((await session.page()).status).toBe('scheduled')
    expect(await session.hostedPage()).toContain('Your bank is paying')
  })

  test('pays the session when it succeeds, however late', async () => {
    const { session, secret } = await processing({ ttl_minutes: 15 })
    await advance(service, { seconds: 4 * 24 * HOUR })
    await settle(secret, 'succeeded')
    expect(await session.status()).toBe('paid')
    expect((await session.told()).map(([type]) => type)).toEqual(['payment.completed'])
    expect((await completed(session))[0]).not.toHaveProperty('late_payment')
    const page = await session.hostedPage()
    expect([page.includes('Bank account'), page.includes('Card')]).toEqual([true, false])
  })

  test('leaves the session to be paid again when it fails', async () => {
    const { session, secret } = await processing()
    await settle(secret, 'failed')
    expect((await session.told()).map(([type]) => type)).toEqual(['payment.failed'])
    expect(await session.status()).toBe('opened')
    const fresh = await session.secret()
    expect(fresh).not.toBe(secret)
    await stripe.tell(atCheckout().payByCard(fresh))
    expect((await session.told()).map(([type]) => type)).toEqual(['payment.failed', 'payment.completed'])
  })

  test('leaves the session to be paid again when it is cancelled at Stripe', async () => {
    const { session, secret } = await processing()
    await stripe.tell(atCheckout().cancel(secret))
    expect(await session.told()).toMatchObject([
      ['payment.failed', { failure_message: 'The payment was cancelled at the card processor' }],
    ])
    expect(await session.status()).toBe('opened')
    await stripe.tell(atCheckout().payByCard(await session.secret()))
    expect(await session.status()).toBe('paid')
  })

  test('that nobody began raises no webhook when it is cancelled with its checkout', async () => {
    const session = await sell()
    const secret = await session.secret()
    const [declined] = atCheckout().decline(secret)
    await stripe.tell([declined!])
    await stripe.tell(atCheckout().cancel(secret))
    expect((await session.told()).map(([type]) => type)).toEqual(['payment.failed'])
    expect(await session.status()).toBe('pending')
  })

  test('goes its way when the session is cancelled, and is announced as late', async () => {
    const { session, secret } = await processing()
    expect((await session.cancel()).body.data.status).toBe('cancelled')
    expect(await session.reissue()).toMatchObject(CONFLICT)
    expect(await session.hostedPage()).toContain('A bank payment goes ahead')
    await settle(secret, 'succeeded')
    expect(await session.status()).toBe('paid')
    expect(await completed(session)).toMatchObject([{ late_payment: true }])
  })

  test.each(ENDINGS)('is found before %s, though its notice is lost', async (_name, end) => {
    const session = await sell()
    const secret = await session.secret()
    const acts = atCheckout().payByBank(secret)
    const { status } = await end(session)
    const isCancelled = (await session.status()) === 'cancelled'
    expect([status, isCancelled]).toEqual(isCancelled ? [200, true] : [409, false])
    await stripe.tell(acts)
    expect(await session.reissue()).toMatchObject(CONFLICT)
    expect(await debitIdsOf(session)).toEqual([])
    await settle(secret, 'succeeded')
    expect([await session.status(), (await completed(session)).length]).toEqual(['paid', 1])
  })

  test('is found before another card is taken, though its notice is lost', async () => {
    const session = await sell()
    atCheckout().payByBank(await session.secret())
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
    expect(await session.status()).toBe('scheduled')
  })

  test('whose notices come in the wrong order is over', async () => {
    const session = await sell()
    const secret = await session.secret()
    const at = Date.parse((await operate(service, 'GET', '/clock')).now)
    const begun = atCheckout().payByBank(secret)
    await stripe.tell(atCheckout().settle(secret, 'failed'), at + 5_000)
    await stripe.tell(begun, at)
    expect(await session.status()).toBe('pending')
    await stripe.tell(atCheckout().payByCard(await session.secret()))
    expect(await session.status()).toBe('paid')
    await stripe.tell(begun, at)
    expect([await session.status(), (await completed(session)).length]).toEqual(['paid', 1])
  })
})

describe('a session that may be paid more than once', () => {
  test('is, by a fresh checkout each time, until its time is over', async () => {
    const session = await sell({ single_use: false, ttl_minutes: 15 })
    const first = await session.secret()
    await stripe.tell(atCheckout().payByCard(first))
    const { paid_at } = await session.shown()
    await advance(service, { seconds: 60 })
    const second = await session.secret()
    expect(second).not.toBe(first)
    await stripe.tell(atCheckout().payByCard(second))
    expect(await session.shown()).toMatchObject({ status: 'paid', paid_at })
    const payments = await completed(session)
    expect(payments.map(({ late_payment }) => late_payment)).toEqual([undefined, undefined])
    expect(new Set(payments.map(({ payment_id }) => payment_id)).size).toBe(2)
    expect(await session.payFromBank()).toMatchObject(UNAVAILABLE)
    const third = await session.secret()
    await advance(service, { seconds: 15 * 60 })
    expect([await session.status(), statusAtStripe(third)]).toEqual(['paid', 'expired'])
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
    expect(await alertsOf(session)).toEqual([])
  })

  test('is not charged again once it was to be cancelled', async () => {
    const session = await sell({ single_use: false })
    atCheckout().payByCard(await session.secret())
    expect(await session.cancel()).toMatchObject(CONFLICT)
    expect(await session.checkout()).toMatchObject(UNAVAILABLE)
  })
})
