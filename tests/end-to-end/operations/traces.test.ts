// @module-tag once: a trace takes the same way whatever holds the log

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, type NatsConnection } from 'nats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NatsServer, natsSource, startNats } from '../../support/nats.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { newPartner, type Partner, registerWebhook } from '../../support/partners.ts'
import { linkBody } from '../../support/payments.ts'
import { askOperator, operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startProcess } from '../../support/service.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

/** What one caller sends with two requests, and what the service makes of it. */
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const traceparent = `00-${TRACE}-${CALLER}-01`
const OF_TRACE = new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`)
const CUSTOMER = { name: 'Ada Moss Bakery', email: 'ada@moss.example', phone: '+15035550147' }

const ROUTE = '/ops/v1/card-processor/:id/succeed'

let collector: OtlpReceiver
let nats: NatsServer | null
let hearing: NatsConnection | null
let texts: Server
let receiver: Receiver
let service: RunningService
let tenant: SeededTenant
let partner: Partner
/** `traceparent` of what was sent to others, by what it was. */
const sent = { texts: [] as unknown[], messages: new Map<string, string>() }

beforeAll(async () => {
  collector = await startOtlpReceiver()
  receiver = await startReceiver()
  texts = createServer((request, response) => {
    sent.texts.push(request.headers.traceparent)
    request.resume()
    response.writeHead(201).end('{}')
  })
  await new Promise<void>((resolve) => texts.listen(0, '127.0.0.1', resolve))
  nats = natsSource === null ? null : await startNats()
  const sms = `http://account:token@127.0.0.1:${(texts.address() as AddressInfo).port}/?from=%2B15035550100`
  service = await startProcess({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: 'collections',
      ACCESS_LOG: 'on',
      SMS_URL: sms,
      ...(nats === null ? {} : { NATS_URL: nats.url }),
    },
  })
  hearing = nats && (await connect({ servers: nats.url }))
  hearing?.subscribe('compstream.>', {
    callback: (_, { subject, headers }) => {
      sent.messages.set(subject.split('.').slice(3).join('.'), headers?.get('traceparent') ?? '')
    },
  })
  await hearing?.flush()
  tenant = await seedTenant(service, { environment: 'live', policy: { status: 'in_progress' } })
  partner = await newPartner(service, tenant.tenantId)
  await registerWebhook(partner, `${receiver.url}/hook`, ['payment.completed'])
})
afterAll(async () => {
  await hearing?.close()
  await service?.stop()
  await nats?.stop()
  await receiver?.stop()
  await collector?.stop()
  texts?.close()
})

/** Attributes of a step by name. */
const attributesOf = ({ attributes }: ReceivedSpan) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

describe('what one caller asks for', () => {
  let steps: readonly ReceivedSpan[]
  const named = (name: string | RegExp) =>
    steps.filter((step) => (typeof name === 'string' ? step.name === name : name.test(step.name)))

  beforeAll(async () => {
    const created = await partner.call(
      'POST',
      '/payment-links',
      linkBody(tenant, {
        payment_type: 'DIRECT_BILLING',
        payment_context: 'down_payment',
        premium_cents: 120_000,
        fee_cents: 0,
        total_installments: 12,
        down_payment_months: 2,
        customer: CUSTOMER,
        delivery: { email: false, sms: true },
      }),
      { traceparent },
    )
    expect([created.status, created.text]).toEqual([201, expect.any(String)])
    // one that is paid is sent to nobody
    await operate(service, 'POST', '/drain')
    const asked = { traceparent, 'X-Request-Id': 'asked-for' }
    const path = `/card-processor/${created.body.data._id}/succeed`
    expect((await askOperator(service, 'POST', `${path}?note=${CUSTOMER.email}`, {}, asked)).status).toBe(400)
    await operate(service, 'POST', path, {}, asked)
    await operate(service, 'POST', '/drain')
    // a caller's trace that it does not keep, and what is nobody's trace
    for (const theirs of [traceparent.replace(/01$/, '00'), `00-${'0'.repeat(32)}-${CALLER}-01`]) {
      await askOperator(service, 'GET', '/clock', undefined, { traceparent: theirs })
    }
  })

  test('keeps the trace in the events that followed', async () => {
    const events = await operate(service, 'GET', '/events?correlation_id=asked-for&limit=1000')
    expect(events.length).toBeGreaterThan(3)
    for (const { metadata } of events) expect(metadata.traceparent).toMatch(OF_TRACE)
  })

  test('hands the trace on to webhooks, providers and other systems', () => {
    expect(receiver.requests.map(({ headers }) => headers.traceparent)).toEqual([
      expect.stringMatching(OF_TRACE),
    ])
    expect(sent.texts).toEqual([expect.stringMatching(OF_TRACE)])
    if (nats !== null) expect(sent.messages.get('policy.activated')).toMatch(OF_TRACE)
  })

  test('has a line in the access log with route, caller and ids, and no values', () => {
    const lines = service.output
      .filter((line) => line.includes('"event":"request"'))
      .map((line) => JSON.parse(line))
    const line = lines.filter(({ correlation_id }) => correlation_id === 'asked-for').at(-1)
    expect(line).toEqual({
      level: 'info',
      time: expect.any(String),
      event: 'request',
      interface: 'ops',
      method: 'POST',
      route: ROUTE,
      status: 200,
      milliseconds: expect.any(Number),
      caller_id: 'operator',
      correlation_id: 'asked-for',
      trace_id: TRACE,
    })
    expect(JSON.stringify(lines)).not.toContain(CUSTOMER.email)
    expect(lines.some(({ caller_id }) => caller_id === partner.clientId)).toBe(true)
  })

  test('is one trace over every step, from the request to what left the service', async () => {
    expect(await service.end()).toBe(0)
    steps = collector.spans.filter(({ traceId }) => traceId === TRACE)
    const ids = new Set([CALLER, ...steps.map(({ spanId }) => spanId)])
    for (const { name, parentSpanId } of steps)
      expect([name, ids.has(parentSpanId ?? '')]).toEqual([name, true])
    const parentOf = ({ parentSpanId }: ReceivedSpan) => steps.find(({ spanId }) => spanId === parentSpanId)
    /** The way from a step up to the request. */
    const wayTo = (step: ReceivedSpan | undefined): string[] => {
      const way: string[] = []
      for (let at = step; at; at = parentOf(at)) way.unshift(at.name)
      return way
    }
    const request = `POST ${ROUTE}`
    const [hook] = named('POST webhook')
    const way = wayTo(hook)
    expect(way[0]).toBe(request)
    expect(way.slice(-4)).toEqual([
      'append',
      'process-manager webhook-deliveries',
      'work webhook-deliveries deliver',
      'POST webhook',
    ])
    expect(way.filter((name) => /^(command|work) /.test(name)).length).toBeGreaterThan(2)
    expect(named(/^projection /).map(({ name }) => name)).toContain('projection payment-links')
    expect(wayTo(named(/^card-processor createSubscription/)[0])).toEqual(
      expect.arrayContaining([request, 'card-processor createSubscription']),
    )
    expect(wayTo(named('messages send')[0])[0]).toBe('POST /api/v1/payment-links')
    if (nats !== null) expect(wayTo(named('publish policy.activated')[0])[0]).toBe(request)
    expect(named(request).map(attributesOf)).toContainEqual({
      'http.request.method': 'POST',
      'http.route': ROUTE,
      'http.response.status_code': 200,
      correlation_id: 'asked-for',
      caller_id: 'operator',
    })
    expect(collector.resource()).toMatchObject({ 'service.name': 'collections' })
  })

  test('has no personal data and no secret in its steps', () => {
    const all = JSON.stringify(collector.spans)
    const { fein, clientSecret, employerName } = tenant
    const secrets = [...Object.values(CUSTOMER), fein, fein.replace('-', ''), clientSecret, employerName]
    for (const secret of [...secrets, service.operatorToken]) expect(all).not.toContain(secret)
  })

  test('is kept as its caller keeps it, and an id that is none begins a trace', () => {
    const clocks = collector.spans.filter(({ name }) => name === 'GET /ops/v1/clock')
    expect(clocks.map(({ traceId, parentSpanId }) => [traceId === TRACE, parentSpanId ?? ''])).toEqual([
      [false, ''],
    ])
  })
})
