import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { verifyWebhook, type WebhookDelivery, WebhookVerificationError } from '../../../clients/node/index.ts'

const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const NOW = Date.UTC(2026, 6, 1, 9, 30, 0, 123)
const PAYLOAD =
  '{"payment_id":"f1", "carrier_id":"c1","amount_cents":120000,"currency":"usd","premium_cents":120000,"fee_cents":0,' +
  '"payment_type":"ONE_TIME","payment_context":"Zoë","amount_paid_cents":120000,"paid_at":"2026-07-01T09:30:00.000Z"}'
const ID = 'a1'.repeat(12)

/** A delivery signed by what the documents say, and by the library of Standard Webhooks. */
function delivery(changes: { secret?: string; at?: number; payload?: string } = {}) {
  const { secret = SECRET, at = NOW, payload = PAYLOAD } = changes
  return {
    payload,
    secret: SECRET as WebhookDelivery['secret'],
    now: () => NOW,
    headers: {
      'X-Webhook-ID': ID,
      'X-Webhook-Event': 'payment.completed',
      'X-Webhook-Timestamp': String(at),
      'X-Webhook-Signature': createHmac('sha256', secret).update(`${at}.${payload}`).digest('hex'),
      'webhook-id': ID,
      'webhook-timestamp': String(Math.floor(at / 1000)),
      'webhook-signature': new Webhook(secret).sign(ID, new Date(at), payload),
    } as Record<string, string>,
  }
}

function reasonOf(given: WebhookDelivery): string {
  try {
    verifyWebhook(given)
    return 'accepted'
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.reason
    throw error
  }
}

describe('a delivery', () => {
  test('tells what happened, by its type', () => {
    const event = verifyWebhook(delivery())
    expect(event).toEqual({
      id: ID,
      type: 'payment.completed',
      data: JSON.parse(PAYLOAD),
      sentAt: new Date(NOW),
    })
    if (event.type === 'payment.completed') expectTypeOf(event.data.amount_paid_cents).toEqualTypeOf<number>()
    if (event.type === 'installment.paid') expectTypeOf(event.data.installment_number).toEqualTypeOf<number>()
  })

  test.each([
    [
      'bytes and Headers',
      (one) => ({ payload: Buffer.from(one.payload), headers: new Headers(one.headers) }),
    ],
    [
      'Headers of another realm',
      ({ headers }) => {
        const own = new Headers(headers)
        return { headers: { get: (name: string) => own.get(name) } as Headers }
      },
    ],
    [
      'lower-case names, as Node gives them',
      ({ headers }) => ({
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
        ),
      }),
    ],
    [
      'an upper-case signature',
      ({ headers }) => changed(headers, 'X-Webhook-Signature', (one) => one.toUpperCase()),
    ],
    [
      'a further signature',
      ({ headers }) => changed(headers, 'webhook-signature', (one) => `v1a,AAAA ${one}`),
    ],
    ['a secret among several', () => ({ secret: [`whsec_${randomBytes(32).toString('base64')}`, SECRET] })],
  ] as [string, (one: ReturnType<typeof delivery>) => Partial<WebhookDelivery>][])(
    'may come as %s',
    (_, change) => {
      const one = delivery()
      expect(reasonOf({ ...one, ...change(one) })).toBe('accepted')
    },
  )

  test.each([
    ['another body', () => ({ payload: PAYLOAD.replace('120000', '120001') }), 'wrong_signature'],
    ['the body written again', () => ({ payload: JSON.stringify(JSON.parse(PAYLOAD)) }), 'wrong_signature'],
    [
      'a secret of somebody else',
      () => ({ secret: `whsec_${randomBytes(32).toString('base64')}` }),
      'wrong_signature',
    ],
    ['no secret', () => ({ secret: [] }), 'wrong_signature'],
    [
      'another id, which would pass as a new event',
      ({ headers }) => changed(headers, 'X-Webhook-ID', () => 'b2'.repeat(12)),
      'wrong_signature',
    ],
    [
      'another id in both headers',
      ({ headers }) => ({ headers: { ...headers, 'X-Webhook-ID': 'b2', 'webhook-id': 'b2' } }),
      'wrong_signature',
    ],
    [
      'a signature cut short',
      ({ headers }) => changed(headers, 'X-Webhook-Signature', (one) => one.slice(1)),
      'wrong_signature',
    ],
    [
      'another time',
      ({ headers }) => changed(headers, 'X-Webhook-Timestamp', (one) => String(Number(one) + 1)),
      'wrong_signature',
    ],
    [
      'another time in seconds',
      ({ headers }) => changed(headers, 'webhook-timestamp', (one) => String(Number(one) + 1)),
      'wrong_signature',
    ],
    [
      'a time that is none',
      ({ headers }) => changed(headers, 'X-Webhook-Timestamp', () => 'NaN'),
      'wrong_time',
    ],
    [
      'an empty signature',
      ({ headers }) => changed(headers, 'X-Webhook-Signature', () => ''),
      'missing_header',
    ],
  ] as [string, (one: ReturnType<typeof delivery>) => Partial<WebhookDelivery>, string][])(
    'with %s is refused',
    (_, change, reason) => {
      const one = delivery()
      expect(reasonOf({ ...one, ...change(one) })).toBe(reason)
    },
  )

  test.each(Object.keys(delivery().headers))('without %s is refused', (name) => {
    const { headers, ...one } = delivery()
    const { [name]: _left, ...others } = headers
    expect(reasonOf({ ...one, headers: others })).toBe('missing_header')
  })

  test.each([
    [NOW - 300_000, undefined, 'accepted'],
    [NOW - 300_001, undefined, 'wrong_time'],
    [NOW + 300_000, undefined, 'accepted'],
    [NOW + 300_001, undefined, 'wrong_time'],
    [NOW - 1_001, 1_000, 'wrong_time'],
    [NOW - 999, 1_000, 'accepted'],
  ])('of %d, with a tolerance of %s, is %s', (at, toleranceMs, outcome) => {
    expect(reasonOf({ ...delivery({ at }), ...(toleranceMs === undefined ? {} : { toleranceMs }) })).toBe(
      outcome,
    )
  })

  test.each(['payment.failed', 'payment.refunded', 'installment.paid', 'payment.debit_settled'])(
    'whose type was changed to %s on the way is refused',
    (type) => {
      const one = delivery()
      const to = changed(one.headers, 'X-Webhook-Event', () => type)
      expect(reasonOf({ ...one, ...to })).toBe('wrong_type')
    },
  )

  test('of a type that is not known yet is left to its receiver', () => {
    const one = delivery({ payload: '{"new":true}' })
    expect(reasonOf({ ...one, ...changed(one.headers, 'X-Webhook-Event', () => 'payment.new') })).toBe(
      'accepted',
    )
  })

  test.each(['null', '1', '"text"'])('that is signed and %s is refused', (payload) => {
    expect(reasonOf(delivery({ payload }))).toBe('wrong_type')
  })

  test('that is signed and no JSON is refused', () => {
    expect(reasonOf(delivery({ payload: 'hello' }))).toBe('not_json')
  })

  test('is not looked at with a secret that is none, which is not quoted', () => {
    expect(() => verifyWebhook({ ...delivery(), secret: 'hunter2' })).toThrow(TypeError)
    expect(() => verifyWebhook({ ...delivery(), secret: 'hunter2' })).not.toThrow(/hunter2/)
  })
})

function changed(
  headers: Record<string, string>,
  name: string,
  change: (value: string) => string,
): Pick<WebhookDelivery, 'headers'> {
  return { headers: { ...headers, [name]: change(headers[name]!) } }
}
