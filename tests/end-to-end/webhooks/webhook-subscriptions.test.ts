import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { WEBHOOK_EVENT_TYPES } from '../../../domain/webhooks/event-types.ts'
import { newPartner, type Partner, partnerOf, registerWebhook } from '../../support/partners.ts'
import { operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** Registration and management of webhook subscriptions, as partners see them. */

let service: SharedService
let tenant: SeededTenant
let partner: Partner

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  partner = partnerOf(service, tenant)
})

/** An address that nobody has; nothing is sent there. */
const newUrl = () => `https://127.0.0.1:64999/${randomBytes(6).toString('hex')}`
const ID = /^[0-9a-f]{24}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

/** A subscription as the list has it. */
async function listed(id: string, by = partner): Promise<Record<string, unknown> | undefined> {
  const { body } = await by.call('GET', '/webhooks')
  return body.data.find(({ _id }: { _id: string }) => _id === id)
}

describe('a registration', () => {
  test('answers 201 with the secret, and with all types where none are named', async () => {
    const url = newUrl()
    const { status, body } = await partner.call('POST', '/webhooks', { url })
    expect(status).toBe(201)
    expect(body).toEqual({
      ok: true,
      data: {
        id: expect.stringMatching(ID),
        url,
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        events: [...WEBHOOK_EVENT_TYPES],
        status: 'active',
        created_at: expect.stringMatching(TIME),
      },
    })
    expect(body.data.events).toHaveLength(11)
    expect(await listed(body.data.id)).toEqual({
      _id: body.data.id,
      url,
      events: [...WEBHOOK_EVENT_TYPES],
      status: 'active',
      failure_count: 0,
      created_at: body.data.created_at,
      updated_at: body.data.created_at,
    })
  })

  test('takes a type that is named twice once', async () => {
    const events = ['payment.failed', 'payment.completed', 'payment.failed']
    expect((await registerWebhook(partner, newUrl(), events)).events).toEqual(events.slice(0, 2))
  })

  test('has a secret of its own', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => registerWebhook(partner, newUrl())))
    expect(new Set(all.map(({ secret }) => secret)).size).toBe(5)
  })

  test.each([
    [{ url: 'http://127.0.0.1:64999/x' }, 'url'],
    [{ url: 'https://10.0.0.1/x' }, 'url'],
  ])('of %j is refused', async (body, field) => {
    const answer = await partner.call('POST', '/webhooks', body)
    expect([answer.status, answer.body]).toEqual([
      400,
      expect.objectContaining({
        ok: false,
        error: 'Bad Request',
        message: expect.stringMatching(new RegExp(`\\b${field}\\b`)),
      }),
    ])
  })

  test('quotes no address in its refusal', async () => {
    const { text } = await partner.call('POST', '/webhooks', {
      url: 'https://me:hunter2@127.0.0.1:64999/token-7',
    })
    expect(text).not.toMatch(/hunter2|token-7/)
  })
})

describe('an address', () => {
  test('is registered once, and the conflict names by what', async () => {
    const url = newUrl()
    const { id } = await registerWebhook(partner, url)
    const again = await partner.call('POST', '/webhooks', { url, events: ['payment.failed'] })
    expect([again.status, again.body]).toEqual([
      409,
      expect.objectContaining({
        ok: false,
        error: 'Conflict',
        message: expect.stringContaining(id),
        id,
        data: { id },
      }),
    ])
    expect((await listed(id))!.events).toHaveLength(11)
  })

  test('is compared without the default port and the case of the host', async () => {
    const own = partnerOf(service, await seedTenant(service))
    const { id } = await registerWebhook(own, 'https://localhost/x')
    const again = await own.call('POST', '/webhooks', { url: 'https://LocalHost:443/x' })
    expect([again.status, again.body.id]).toEqual([409, id])
  })

  test('is free for other tenants, the other environment, and when it was deleted', async () => {
    const url = newUrl()
    const { id } = await registerWebhook(partner, url)
    await registerWebhook(partnerOf(service, await seedTenant(service)), url)
    await registerWebhook(await newPartner(service, tenant.tenantId, { environment: 'sandbox' }), url)
    await partner.call('DELETE', `/webhooks/${id}`)
    expect((await registerWebhook(partner, url)).id).not.toBe(id)
  })
})

describe('the list', () => {
  test('has the newest first, and no secret', async () => {
    const own = partnerOf(service, await seedTenant(service))
    const made = []
    for (let count = 0; count < 4; count += 1) made.unshift(await registerWebhook(own, newUrl()))
    const { status, body, text } = await own.call('GET', '/webhooks')
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['ok', 'data', 'pagination'])
    expect(body.data.map(({ _id }: { _id: string }) => _id)).toEqual(made.map(({ id }) => id))
    expect(text).not.toContain('whsec_')
  })
})

describe('a change', () => {
  test.each([
    ['events', ['payment.refunded']],
    ['status', 'disabled'],
    ['url', 'https://127.0.0.1:64999/moved'],
  ] as const)('of %s alone leaves the rest, which may be repeated', async (field, value) => {
    const own = partnerOf(service, await seedTenant(service))
    const { id } = await registerWebhook(own, newUrl(), ['payment.failed', 'payment.completed'])
    const before = await listed(id, own)
    // as it was shown, but for one field
    const { status, body } = await own.call('PATCH', `/webhooks/${id}`, { ...before, [field]: value })
    expect(status).toBe(200)
    expect(body.data).toEqual({ ...before, [field]: value, updated_at: expect.stringMatching(TIME) })
    expect(await listed(id, own)).toEqual(body.data)
  })

  test('of everything happens whole or not at all', async () => {
    const taken = newUrl()
    const { id: other } = await registerWebhook(partner, taken)
    const { id } = await registerWebhook(partner, newUrl())
    const before = await listed(id)
    const all = { url: taken, events: ['payment.failed'], status: 'disabled' }
    const refused = await partner.call('PATCH', `/webhooks/${id}`, all)
    expect([refused.status, refused.body]).toEqual([
      409,
      expect.objectContaining({
        ok: false,
        error: 'Conflict',
        message: expect.stringContaining(other),
        id: other,
        data: { id: other },
      }),
    ])
    expect(await listed(id)).toEqual(before)
    const url = newUrl()
    const { body } = await partner.call('PATCH', `/webhooks/${id}`, { ...all, url })
    expect(body.data).toMatchObject({ ...all, url })
  })

  test.each([
    [{}, /^url is required: send at least one of url, events, status$/],
    [{ unknown: 1 }, /^unknown is an unknown field; known here: url, events, status, _id, /],
    [
      { url: null, events: null, status: null },
      /^url is required: send at least one of url, events, status$/,
    ],
    [{ url: 'http://127.0.0.1:64999/x' }, /url/],
    [{ url: 'https://192.168.1.1/x' }, /url/],
    [{ status: 'disabled', events: [] }, /events/],
    [{ status: 'disabled', failure_count: 3 }, /^failure_count cannot be changed$/],
  ])('of %j is refused', async (change, message) => {
    const { id } = await registerWebhook(partner, newUrl())
    const before = await listed(id)
    const { status, body } = await partner.call('PATCH', `/webhooks/${id}`, change)
    expect([status, body]).toEqual([
      400,
      expect.objectContaining({ ok: false, error: 'Bad Request', message: expect.stringMatching(message) }),
    ])
    expect(body.errors?.[0].field ?? body.field).toMatch(/^\w+$/)
    expect(await listed(id)).toEqual(before)
  })
})

test('a rotation answers with the new secret only', async () => {
  const { id, secret } = await registerWebhook(partner, newUrl())
  const { status, body } = await partner.call('POST', `/webhooks/${id}/rotate`)
  expect([status, body]).toEqual([
    200,
    {
      ok: true,
      data: {
        id,
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        updated_at: expect.stringMatching(TIME),
      },
    },
  ])
  expect(body.data.secret).not.toBe(secret)
  expect((await listed(id))!.updated_at).toBe(body.data.updated_at)
})

test('changes come to an end within the hour, with 429 and when to go on; disabling and deleting do not', async () => {
  const { url: taken } = (await listed((await registerWebhook(partner, newUrl())).id))!
  const { id } = await registerWebhook(partner, newUrl())
  const path = `/webhooks/${id}`
  const move = () => partner.call('PATCH', path, { url: newUrl() })
  const refusals = async () =>
    expect([
      (await partner.call('PATCH', path, { url: taken })).status,
      (await partner.call('PATCH', path, { url: 'https://192.168.1.1/x' })).status,
    ]).toEqual([409, 400])
  // what is refused counts for nothing, and is told before the limit
  await refusals()
  for (let n = 0; n < 100; n += 1) expect((await move()).status).toBe(200)
  const rotate = () => partner.call('POST', `${path}/rotate`, undefined, { 'Idempotency-Key': newUrl() })
  for (const change of [move, rotate]) {
    // on a slow machine a further one may have become free meanwhile
    let refused = await change()
    while (refused.status === 200) refused = await change()
    expect([refused.status, refused.body]).toEqual([
      429,
      expect.objectContaining({
        ok: false,
        error: 'Too Many Requests',
        message: expect.stringContaining('100 times an hour'),
        code: 'too_many_changes',
      }),
    ])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    // not even the key is stored
    const requestId = refused.headers.get('x-request-id')
    expect(await operate(service, 'GET', `/events?correlation_id=${requestId}`)).toEqual([])
  }
  await refusals()
  const { url, events } = (await listed(id))!
  expect((await partner.call('PATCH', path, { url, events, status: 'disabled' })).status).toBe(200)
  expect((await partner.call('DELETE', path)).status).toBe(200)
})

describe('an operator', () => {
  const path = () => `/tenants/${tenant.tenantId}/webhooks`

  test('finds what a key registered, also where the key is switched off, disables it, and deletes it', async () => {
    const leaked = await newPartner(service, tenant.tenantId, {})
    const url = newUrl()
    const { id } = await registerWebhook(leaked, url)
    await operate(service, 'POST', `/api-clients/${leaked.clientId}/deactivate`)
    const find = async () =>
      (await operate(service, 'GET', path())).find(
        ({ subscription_id }: { subscription_id: string }) => subscription_id === id,
      )
    const found = await find()
    expect(found).toMatchObject({
      tenant_id: tenant.tenantId,
      environment: 'live',
      client_id: leaked.clientId,
      url,
      status: 'active',
      failure_count: 0,
    })
    const disabled = await operate(service, 'POST', `${path()}/${id}/disable`)
    expect(disabled).toMatchObject({ subscription_id: id, status: 'disabled' })
    expect(await operate(service, 'POST', `${path()}/${id}/disable`)).toEqual(disabled)
    expect((await listed(id))!.status).toBe('disabled')
    expect((await partner.call('PATCH', `/webhooks/${id}`, { status: 'active' })).status).toBe(200)
    expect(await operate(service, 'DELETE', `${path()}/${id}`)).toMatchObject({ subscription_id: id })
    expect(await find()).toBeUndefined()
    expect(await listed(id)).toBeUndefined()
    const stream = `/streams/webhookSubscriptions-${tenant.tenantId}_live?limit=1000`
    const events = (await operate(service, 'GET', stream)).slice(-3)
    expect(events).toMatchObject([
      {
        type: 'WebhookSubscriptionDisabled',
        data: { by: 'operator' },
        metadata: { actor: { type: 'operator' } },
      },
      { type: 'WebhookSubscriptionEnabled' },
      { type: 'WebhookSubscriptionDeleted', metadata: { actor: { type: 'operator' } } },
    ])
    const told = await operate(service, 'GET', `/stories/webhook/${id}`)
    expect([told.state, told.events.map(({ sentence }: { sentence: string }) => sentence)]).toEqual([
      null,
      [
        expect.stringContaining(`was registered by the partner's key ${leaked.clientId}.`),
        'The webhook subscription was switched off by the operator.',
        expect.stringContaining('The webhook subscription was switched on by '),
        'The webhook subscription was deleted by the operator.',
      ],
    ])
    const before = await operate(service, 'GET', `/stories/webhook/${id}?position=${events[0].position}`)
    expect(before).toMatchObject({ state: { _id: id, url, status: 'disabled', secret_ref: '•••' } })
    expect(before.events).toHaveLength(2)
  })
})

test('a deletion removes it at once', async () => {
  const { id } = await registerWebhook(partner, newUrl())
  const { status, body } = await partner.call('DELETE', `/webhooks/${id}`)
  expect([status, body]).toEqual([200, { ok: true, data: { _id: id, deleted: true } }])
  expect(await listed(id)).toBeUndefined()
  expect((await partner.call('DELETE', `/webhooks/${id}`)).status).toBe(404)
})
