import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { WebhookBench } from '../support/webhooks.ts'
import { openWorkbench, type Workbench } from '../support/workbench.ts'

const MINUTE = 60
const HOUR = 60 * MINUTE

let database: TestDatabase
let bench: Workbench
let webhooks: WebhookBench
let receiver: Receiver

beforeEach(async () => {
  database = await createTestDatabase()
  bench = await openWorkbench(database.url)
  webhooks = new WebhookBench(bench)
  receiver = await startReceiver()
})
afterEach(async () => {
  await bench.close()
  await receiver.stop()
  await database.drop()
})

/** Ages of an event at its attempts, in seconds, by the timestamps that were sent. */
function ages(from: number, requests = receiver.requests): number[] {
  return requests.map(({ headers }) => (Number(headers['x-webhook-timestamp']) - from) / 1000)
}

describe('the ladder', () => {
  test('five attempts, twelve redeliveries by the age of the event, then it is dropped and the operator told', async () => {
    receiver.answerWith(500)
    await webhooks.deliver()
    const subscription = await webhooks.subscribe(receiver.url)
    const eventId = await webhooks.raise()
    const start = bench.clock.now()
    await webhooks.settled()
    const shown = async () => (await webhooks.records.list(subscription, 50))[0]!
    expect(await shown()).toMatchObject({ status: 'retrying', attempts: 1, last_response_code: 500 })
    await webhooks.advance(200)
    expect(ages(start)).toEqual([0, 1, 6, 31, 156])
    expect(await shown()).toMatchObject({ status: 'failed', attempts: 5, sweep_attempts: 0 })
    await webhooks.advance(47 * HOUR)
    const rungs = [5 * MINUTE, 15 * MINUTE, 45 * MINUTE]
    rungs.push(...[2, 4, 8, 12, 16, 24, 32, 40, 44].map((hours) => hours * HOUR))
    expect(ages(start).slice(5)).toEqual(rungs)
    expect(await shown()).toMatchObject({ status: 'failed', attempts: 17, sweep_attempts: 12 })
    await webhooks.advance(2 * HOUR)
    expect(receiver.requests).toHaveLength(17)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-webhook-id']))).toEqual(
      new Set([eventId]),
    )
    expect(await shown()).toMatchObject({
      ...{ status: 'failed', next_sweep_after: null },
      last_error: 'It was not accepted within 48 hours; the last attempt: It answered 500',
    })
    const stream = await bench.log.readStream(`webhookEvent-${eventId}`)
    expect(stream.map(({ type }) => type)).toEqual(['WebhookEventRaised', 'WebhookDeliveryDropped'])
    expect(await webhooks.metrics.text()).toContain(
      'compstream_webhook_deliveries_total{outcome="dropped"} 1',
    )
    expect(await bench.store.counts({ now: bench.clock.now() })).toMatchObject({
      due: 0,
      later: 0,
      failed: 0,
    })
  })
})
