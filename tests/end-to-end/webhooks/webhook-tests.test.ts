import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { verifyWebhook } from '../../../clients/node/index.ts'
import { WEBHOOK_EVENT_TYPES, WEBHOOK_EVENTS } from '../../../domain/webhooks/event-types.ts'
import { serviceTime } from '../../support/core.ts'
import { type Partner, partnerOf, registerWebhook, signatureOf } from '../../support/partners.ts'
import { operate, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

/** Test deliveries to a partner's endpoint, and the history that they leave. */

let service: SharedService
let receiver: Receiver
let partner: Partner
beforeAll(async () => {
  service = await sharedService()
  receiver = await startReceiver()
  partner = partnerOf(service, await seedTenant(service))
})
afterAll(() => receiver?.stop())
beforeEach(() => {
  receiver.answerWith(200)
})

let paths = 0
/** An address of the receiver that nobody had before. */
function newUrl(): string {
  paths += 1
  return `${receiver.url}/hooks/${paths}`
}
/** Tests a subscription several times at once: ten may be under way. @returns the events. */
const testMany = async (id: string, times: number): Promise<string[]> => {
  const answers = Array.from({ length: times }, () => partner.call('POST', `/webhooks/${id}/test`))
  return (await Promise.all(answers)).map(({ body }) => body.data.event_id)
}
const at = (url: string) => receiver.requests.filter(({ path }) => path === new URL(url).pathname)

const ID = /^[0-9a-f]{24}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

describe.each(WEBHOOK_EVENT_TYPES)('a test of %s', (type) => {
  test('is delivered once, signed, with a body as of that type', async () => {
    const url = newUrl()
    const { id, secret } = await registerWebhook(partner, url, ['payment.completed'])
    const now = await serviceTime(service)
    const { status, body } = await partner.call('POST', `/webhooks/${id}/test`, { event_type: type })
    expect([status, body]).toEqual([
      200,
      {
        ok: true,
        data: {
          delivered: true,
          event_id: expect.stringMatching(ID),
          event_type: type,
          url,
          attempts: 1,
          status_code: 200,
        },
      },
    ])
    const [request, ...others] = at(url)
    expect(others).toEqual([])
    const { headers } = request!
    expect(request!.method).toBe('POST')
    expect(headers['content-type']).toMatch(/^application\/json\b/)
    expect(headers['x-webhook-id']).toBe(body.data.event_id)
    expect(headers['x-webhook-event']).toBe(type)
    expect(Number(headers['x-webhook-timestamp'])).toBeGreaterThanOrEqual(now)
    expect(headers['x-webhook-signature']).toBe(signatureOf(request!, secret))

    const payload = JSON.parse(request!.body.toString())
    expect(WEBHOOK_EVENTS[type].strict().parse(payload)).toEqual(payload)
    if ('metadata' in WEBHOOK_EVENTS[type].shape) expect(payload.metadata).toEqual({})
    expect(request!.body.toString()).not.toContain('null')

    const event = verifyWebhook({
      payload: request!.body,
      headers,
      secret,
      now: () => Number(headers['x-webhook-timestamp']),
    })
    expect(event).toMatchObject({ id: body.data.event_id, type, data: payload })

    const history = await partner.call('GET', `/webhooks/${id}/deliveries`)
    expect(history.body.data).toEqual([
      {
        _id: expect.stringMatching(ID),
        subscription_id: id,
        event_id: body.data.event_id,
        event_type: type,
        status: 'delivered',
        attempts: 1,
        last_response_code: 200,
        last_attempt_at: expect.stringMatching(TIME),
        delivered_at: expect.stringMatching(TIME),
        created_at: expect.stringMatching(TIME),
        payload,
        last_error: null,
        test: true,
        resent: false,
        dedupe_key: expect.any(String),
        sweep_attempts: 0,
        next_sweep_after: null,
        sweep_claimed_at: null,
        last_swept_at: null,
      },
    ])
    expect(history.text).not.toContain('whsec_')
  })
})

test('a delivery is verified by the library of Standard Webhooks', async () => {
  const url = newUrl()
  const { id, secret } = await registerWebhook(partner, url)
  await partner.call('POST', `/webhooks/${id}/test`)
  const { headers, body } = at(url)[0]!
  const library = new Webhook(secret)
  // the library has no clock but the system's, and the service's stands still
  const unchecked = new Webhook(secret)
  Object.assign(unchecked, { verifyTimestamp: () => new Date(Number(headers['webhook-timestamp']) * 1000) })
  expect(unchecked.verify(body.toString(), headers)).toEqual(JSON.parse(body.toString()))
  expect(() => unchecked.verify(body.toString().replace('{', '{ '), headers)).toThrow()
  expect(
    library.sign(headers['webhook-id']!, new Date(Number(headers['webhook-timestamp']) * 1000), body),
  ).toBe(headers['webhook-signature'])
})

describe('a test', () => {
  test('is of the first type of the subscription where none is named, also without a body', async () => {
    const { id } = await registerWebhook(partner, newUrl(), ['installment.failed', 'payment.completed'])
    for (const body of [undefined, {}, { event_type: null }]) {
      const { body: answered } = await partner.call('POST', `/webhooks/${id}/test`, body)
      expect(answered.data).toMatchObject({ delivered: true, event_type: 'installment.failed' })
    }
  })

  test.each([500, { status: 302, headers: { location: 'https://127.0.0.1:64999/' } }])(
    'that is answered %j is not',
    async (answer) => {
      receiver.answerWith(answer)
      const url = newUrl()
      const { id } = await registerWebhook(partner, url)
      const { status, body } = await partner.call('POST', `/webhooks/${id}/test`)
      const code = typeof answer === 'number' ? answer : answer.status
      expect([status, body.data]).toMatchObject([200, { delivered: false, status_code: code, attempts: 1 }])
      expect(at(url)).toHaveLength(1)
      const history = await partner.call('GET', `/webhooks/${id}/deliveries`)
      expect(history.body.data).toMatchObject([
        { test: true, attempts: 1, last_response_code: code, delivered_at: null, status: 'failed' },
      ])
      expect(history.body.data[0].last_error).toMatch(/\S/)
    },
  )

  test('that nobody answers tells why, without a status', async () => {
    receiver.answerWith('reset')
    for (const url of [newUrl(), 'https://127.0.0.1:64999/refused']) {
      const { id } = await registerWebhook(partner, url)
      const { status, body } = await partner.call('POST', `/webhooks/${id}/test`)
      expect([status, body.data]).toEqual([
        200,
        {
          delivered: false,
          event_id: expect.stringMatching(ID),
          event_type: 'payment.completed',
          url,
          attempts: 1,
          error: expect.stringMatching(/\S/),
        },
      ])
    }
  })

  test('says nothing of the health of a subscription, and is never made again', async () => {
    receiver.answerWith(500)
    const url = newUrl()
    const { id } = await registerWebhook(partner, url)
    for (const times of [10, 1]) await testMany(id, times)
    await operate(service, 'POST', '/clock/advance', { seconds: 49 * 3600 })
    await operate(service, 'POST', '/drain')
    expect(at(url)).toHaveLength(11)
    const { body } = await partner.call('GET', '/webhooks?limit=200')
    expect(body.data).toContainEqual(expect.objectContaining({ _id: id, status: 'active', failure_count: 0 }))
  })

  test('of a disabled subscription is a conflict, and is not made', async () => {
    const url = newUrl()
    const { id } = await registerWebhook(partner, url)
    await partner.call('PATCH', `/webhooks/${id}`, { status: 'disabled' })
    const { status, body } = await partner.call('POST', `/webhooks/${id}/test`)
    expect([status, body]).toEqual([
      409,
      expect.objectContaining({ ok: false, error: 'Conflict', message: expect.stringContaining('disabled') }),
    ])
    expect(at(url)).toEqual([])
    await partner.call('PATCH', `/webhooks/${id}`, { status: 'active' })
    expect((await partner.call('POST', `/webhooks/${id}/test`)).body.data.delivered).toBe(true)
  })

  test('is signed with the secret of a rotation at once, and goes to a new address at once', async () => {
    const { id, secret: old } = await registerWebhook(partner, newUrl())
    const { secret } = (await partner.call('POST', `/webhooks/${id}/rotate`)).body.data
    const url = newUrl()
    await partner.call('PATCH', `/webhooks/${id}`, { url })
    await partner.call('POST', `/webhooks/${id}/test`)
    const [request] = at(url)
    expect(request!.headers['x-webhook-signature']).toBe(signatureOf(request!, secret))
    expect(request!.headers['x-webhook-signature']).not.toBe(signatureOf(request!, old))
  })

  test('raises no event that the log knows, and is received by nobody else', async () => {
    const [url, other] = [newUrl(), newUrl()]
    const { id } = await registerWebhook(partner, url)
    await registerWebhook(partner, other)
    const { event_id } = (await partner.call('POST', `/webhooks/${id}/test`)).body.data
    await operate(service, 'POST', '/drain')
    const events = await operate(service, 'GET', `/streams/webhookEvent-${event_id}`).catch(() => [])
    expect(events).toEqual([])
    expect(at(other)).toEqual([])
  })
  // unit/http/costs has calls that wait for their turn
  test('waits for its turn where ten of a tenant are under way, and no other tenant does', {
    tags: 'long',
  }, async () => {
    let refuse = () => {}
    const refusal = new Promise<number>((resolve) => {
      refuse = () => resolve(500)
    })
    receiver.answerWith(() => refusal)
    const { id } = await registerWebhook(partner, newUrl())
    const waiting = Array.from({ length: 11 }, () => partner.call('POST', `/webhooks/${id}/test`))
    // one more than may be under way is told so while the others still wait for the receiver
    const first = await Promise.race(waiting)
    expect([first.status, first.headers.get('retry-after')]).toEqual([429, '5'])
    receiver.answerWith(200)
    const other = partnerOf(service, await seedTenant(service))
    const { id: theirs } = await registerWebhook(other, newUrl())
    expect((await other.call('POST', `/webhooks/${theirs}/test`)).body.data.delivered).toBe(true)
    refuse()
    const outcomes = (await Promise.all(waiting)).filter(({ status }) => status === 200)
    expect(outcomes.map(({ body }) => body.data.delivered)).toEqual(Array(10).fill(false))
  })
})

describe('the history', () => {
  test('has the newest first, 50 unless more are asked for, 200 at the most', async () => {
    const { id } = await registerWebhook(partner, newUrl())
    const old = []
    for (let batch = 0; batch < 5; batch += 1) old.push(...(await testMany(id, 10)))
    const latest = [...(await testMany(id, 1)), ...(await testMany(id, 1))].reverse()
    const shown = async (query: string) => {
      const { status, body } = await partner.call('GET', `/webhooks/${id}/deliveries${query}`)
      return [
        status,
        body.data?.map(({ event_id }: { event_id: string }) => event_id),
        body.pagination?.total,
      ]
    }
    const [, made] = (await shown('?limit=200')) as [number, string[]]
    expect(made.slice(0, 2)).toEqual(latest)
    expect(made.slice(2).sort()).toEqual(old.sort())
    expect(await shown('')).toEqual([200, made.slice(0, 50), 52])
    expect(await shown('?limit=3')).toEqual([200, made.slice(0, 3), 52])
    expect(await shown('?limit=200')).toEqual([200, made, 52])
    expect(await shown('?limit=100000')).toEqual([200, made, 52])
    expect(await shown('?page=2')).toEqual([200, made.slice(50), 52])
    expect(await shown('?page=3&limit=20')).toEqual([200, made.slice(40), 52])
    for (const limit of ['0', '-1', '1.5', 'x', '']) {
      expect(await shown(`?limit=${limit}`)).toEqual([400, undefined, undefined])
    }
  })
})
