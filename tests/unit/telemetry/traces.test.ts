import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keepTraces, traced, tracedPast, traceparent } from '../../../application/ports/tracing.ts'
import { PlaidBankLink } from '../../../infrastructure/providers/bank-link/plaid.ts'
import { StripeCardProcessor } from '../../../infrastructure/providers/card/stripe.ts'
import { createLogger } from '../../../infrastructure/telemetry/logger.ts'
import { OpenTelemetryTraces } from '../../../infrastructure/telemetry/traces.ts'
import { type OtlpReceiver, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { STRIPE_KEYS } from '../../support/stripe-events.ts'

const KEPT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
const step = (name: string, causedBy: string | null = null) =>
  ({ name, causedBy, mayBegin: true, attributes: {} }) as const

let collector: OtlpReceiver
let traces: OpenTelemetryTraces
const failures: string[] = []

async function open(url = `${collector.url}/v1/traces`): Promise<void> {
  traces = new OpenTelemetryTraces(url, (why) => void failures.push(why))
  keepTraces(traces)
}
async function close(): Promise<void> {
  keepTraces(null)
  await traces.close()
}

beforeEach(async () => {
  failures.length = 0
  collector = await startOtlpReceiver()
  await open()
})
afterEach(async () => {
  await close()
  await collector.stop()
})

test('a step that fails tells the class of its error and none of its words, and its error goes on', async () => {
  const failing = traced(step('fails'), async () => {
    throw new RangeError('Ada Moss')
  })
  await expect(failing).rejects.toThrow('Ada Moss')
  await close()
  expect(collector.spans).toMatchObject([
    {
      name: 'fails',
      status: { code: 2 },
      attributes: [{ key: 'error.type', value: { stringValue: 'RangeError' } }],
    },
  ])
  expect(JSON.stringify(collector.spans)).not.toContain('Ada')
})

test('attributes are masked as log lines are, for callers choose some ids', async () => {
  const attributes = { correlation_id: 'ada@moss.example', tenant_id: null }
  await traced({ ...step('asks'), attributes }, async () => {})
  await close()
  expect(collector.spans[0]!.attributes).toEqual([{ key: 'correlation_id', value: { stringValue: '***' } }])
})

test('lines that are logged during a step have its trace, others have none', async () => {
  const lines: string[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(line) })
  await traced(step('works', KEPT), async () => logger.info('during'))
  logger.info('after')
  expect(lines.map((line) => JSON.parse(line).trace_id)).toEqual(['a'.repeat(32), undefined])
})

test('a trace that its caller does not keep has no steps here, also within one that is kept', async () => {
  const unkept = KEPT.replace(/01$/, '00')
  const seen = await traced(step('works', KEPT), () =>
    traced(step('asks', unkept), async () => traceparent()),
  )
  expect(seen).toBeUndefined()
  expect(tracedPast({ ...step('reacts'), causedBy: unkept }, performance.now())).toMatch(/-00$/)
  await close()
  expect(collector.spans.map(({ name }) => name)).toEqual(['works'])
})

test('steps are followed through callbacks and beside each other, each in its own trace', async () => {
  const other = KEPT.replaceAll('a', 'c')
  const traceOf = (cause: string) =>
    traced(step('asks', cause), async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return traced({ name: 'appends', attributes: {} }, async () => traceparent()?.slice(3, 35))
    })
  const seen = await Promise.all([traceOf(KEPT), traceOf(other), traceOf(KEPT)])
  expect(seen).toEqual([KEPT, other, KEPT].map((cause) => cause.slice(3, 35)))
  expect(traceparent()).toBeUndefined()
})

test('calls to Stripe and Plaid carry the trace that they are part of, and none outside of one', async () => {
  const seen: unknown[] = []
  const provider = createServer((request, response) => {
    seen.push(request.headers.traceparent)
    request.resume()
    response
      .writeHead(400, { 'Content-Type': 'application/json' })
      .end('{"error":{"type":"invalid_request_error"}}')
  })
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  const stripe = new StripeCardProcessor({ ...STRIPE_KEYS, apiBase: url })
  const plaid = new PlaidBankLink({ clientId: 'id', secret: 'secret', baseUrl: url })
  const callBoth = async () => {
    await stripe.deactivatePaymentLink('plink_1', 'key').catch(() => undefined)
    await plaid.accounts('token').catch(() => undefined)
  }
  await traced(step('works', KEPT), callBoth)
  await callBoth()
  const ofTrace = expect.stringMatching(/^00-a{32}-[0-9a-f]{16}-01$/)
  expect(seen).toEqual([ofTrace, ofTrace, undefined, undefined])
  provider.closeAllConnections()
  provider.close()
})

test('what nothing caused is in no trace, unless it is a request', async () => {
  expect(tracedPast({ ...step('reacts'), causedBy: undefined }, performance.now())).toBeUndefined()
  for (const causedBy of [null, undefined, 'nonsense']) {
    expect(
      await traced({ name: 'works', causedBy, attributes: {} }, async () => traceparent()),
    ).toBeUndefined()
  }
  await close()
  expect(collector.spans).toEqual([])
})

test('a collector that refuses is named once', async () => {
  await close()
  await open(`${collector.url}/elsewhere`)
  await traced(step('works'), async () => {})
  await close()
  expect(failures).toEqual([expect.stringMatching(/^OTLPExporterError: /)])
})

test('without traces a step is just done, and no trace is under way', async () => {
  keepTraces(null)
  expect(await traced(step('works', KEPT), async () => traceparent())).toBeUndefined()
  expect(tracedPast({ ...step('reacts'), causedBy: KEPT }, performance.now())).toBe(KEPT)
})
