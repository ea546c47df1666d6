import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { derivedId } from '../../../application/commands/event-registry.ts'
import type { WorkStore } from '../../../application/followers/work-store.ts'
import type { Clock } from '../../../application/ports/clock.ts'
import { EventLogUnavailable } from '../../../application/ports/event-log.ts'
import type { AttemptResult, WebhookSender } from '../../../application/ports/webhooks.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { gate } from '../../support/gate.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../../support/webhook-receiver.ts'
import { localSender, newId, WebhookBench } from '../../support/webhooks.ts'
import { openWorkbench, type Workbench } from '../../support/workbench.ts'

const MINUTE = 60
const HOUR = 60 * MINUTE

let bench: Workbench
let webhooks: WebhookBench
let receiver: Receiver

beforeEach(async () => {
  bench = await openWorkbench()
  webhooks = new WebhookBench(bench)
  receiver = await startReceiver()
})
afterEach(async () => {
  await bench.close()
  await receiver.stop()
})

/** Ages of an event at its attempts, in seconds, by the timestamps that were sent. */
function ages(from: number, requests = receiver.requests): number[] {
  return requests.map(({ headers }) => (Number(headers['x-webhook-timestamp']) - from) / 1000)
}

/** An event of the tenant as the history keeps it. */
const eventOf = (of: { readonly eventId: string; readonly body: string; readonly createdAt: number }) =>
  ({ tenantId: webhooks.tenantId, environment: 'live', eventType: 'installment.paid', ...of }) as const

function isSigned({ headers, body }: ReceivedRequest, secret: string): boolean {
  const signed = createHmac('sha256', secret).update(`${headers['x-webhook-timestamp']}.`).update(body)
  return signed.digest('hex') === headers['x-webhook-signature']
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
      status: 'failed',
      next_sweep_after: null,
      last_error: 'The event was not accepted within 48 hours; the last attempt: The address answered 500',
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

// recipients go by positions of the log
describe('who receives', { tags: 'each-log' }, () => {
  test('an event that is raised again by the same piece of work is one event, and nothing is read to find that out', async () => {
    const subscription = await webhooks.subscribe(receiver.url)
    const reads = vi.spyOn(bench.log, 'readStream')
    const raise = () => webhooks.raise({ commandId: 'a piece of work' })
    const eventId = await raise()
    expect(await raise()).toBe(eventId)
    expect(reads).not.toHaveBeenCalled()
    reads.mockRestore()
    await webhooks.deliver()
    await webhooks.settled()
    expect(receiver.requests.map(({ headers }) => headers['x-webhook-id'])).toEqual([eventId])
    expect(await webhooks.records.list(subscription, 50)).toHaveLength(1)
  })

  test('the subscriptions as of the event, each within its scope and types, with one id for all', async () => {
    const [carrierId, employerId] = [newId(), newId()]
    const path = (name: string) => `${receiver.url}/${name}`
    const early = await webhooks.subscribe(path('early'))
    await webhooks.subscribe(path('other-type'), { events: ['payment.refunded'] })
    await webhooks.subscribe(path('in-scope'), {
      scope: { carrier_ids: [carrierId], employer_ids: [employerId] },
    })
    await webhooks.subscribe(path('other-carrier'), { scope: { carrier_ids: [newId()] } })
    await webhooks.subscribe(path('other-employer'), { scope: { employer_ids: [newId()] } })
    const asleep = await webhooks.subscribe(path('asleep'))
    await webhooks.disable(asleep)
    const eventId = await webhooks.raise({ carrierId, employerId })
    // nobody delivers yet: what happens now is too late
    await webhooks.subscribe(path('late'))
    await webhooks.verb('Enable', asleep)
    await webhooks.deliver()
    await webhooks.settled()
    expect(receiver.requests.map(({ path }) => path).sort()).toEqual(['/early', '/in-scope'])
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-webhook-id']))).toEqual(
      new Set([eventId]),
    )
    const bodies = new Set(receiver.requests.map(({ body }) => body.toString()))
    expect(bodies.size).toBe(1)
    const [record] = await webhooks.records.list(early, 50)
    expect(record).toMatchObject({
      event_id: eventId,
      subscription_id: early,
      event_type: 'installment.paid',
      status: 'delivered',
      attempts: 1,
      last_response_code: 200,
      last_error: null,
      test: false,
      payload: [...bodies][0],
    })
    expect(await webhooks.records.list(asleep, 50)).toEqual([])
  })

  test('an event of another tenant or after a change goes to those that it is for', async () => {
    await webhooks.deliver()
    const other = newId()
    await webhooks.subscribe(`${receiver.url}/other`, { tenantId: other })
    await webhooks.subscribe(`${receiver.url}/own`)
    await webhooks.raise({ tenantId: other })
    await webhooks.raise()
    await webhooks.subscribe(`${receiver.url}/second`)
    await webhooks.raise()
    await webhooks.settled()
    expect(receiver.requests.map(({ path }) => path).sort()).toEqual(['/other', '/own', '/own', '/second'])
  })
})

describe('a subscription that changes under way', () => {
  const secretRefs = async () => {
    const { rows } = await bench.database.pool.query('SELECT ref FROM runtime.secrets')
    return rows.map(({ ref }) => ref)
  }

  test('rotated while an attempt was about to read its secret: the attempt is made with the present one', async () => {
    receiver.answerWith(200)
    const id = await webhooks.subscribe(receiver.url)
    await webhooks.raise()
    const old = (await webhooks.subscription(id))!.secret_ref
    await webhooks.deliver()
    await webhooks.settled()
    const load = bench.commands.load.bind(bench.commands)
    let rotation: Promise<void> | undefined
    bench.commands.load = async (decider, loadedId) => {
      const loaded = await load(decider, loadedId)
      if (decider.category === 'webhookSubscriptions') {
        rotation ??= webhooks.newSecret(id).then(async (secretRef) => {
          await webhooks.command({ type: 'Rotate', subscriptionId: id, secretRef, at: bench.clock.now() })
          while ((await secretRefs()).includes(old)) await new Promise((resolve) => setImmediate(resolve))
        })
        await rotation
      }
      return loaded
    }
    await webhooks.raise()
    await webhooks.settled()
    expect(receiver.requests).toHaveLength(2)
    expect(isSigned(receiver.requests[1]!, await webhooks.secretOf(id))).toBe(true)
    expect(await webhooks.records.list(id, 5)).toMatchObject([{ attempts: 1 }, { attempts: 1 }])
  })

  beforeEach(() => {
    receiver.answerWith(500)
  })

  test('rotated and patched: the next attempt goes to the present url with the present secret', async () => {
    await webhooks.deliver()
    const id = await webhooks.subscribe(`${receiver.url}/old`)
    const before = await webhooks.secretOf(id)
    await webhooks.raise()
    await webhooks.settled()
    const secretRef = await webhooks.newSecret(id)
    await webhooks.command({ type: 'Rotate', subscriptionId: id, secretRef, at: bench.clock.now() })
    await webhooks.command({
      type: 'Change',
      subscriptionId: id,
      at: bench.clock.now(),
      url: `${receiver.url}/new`,
      events: ['payment.completed'],
    })
    receiver.answerWith(200)
    await webhooks.advance(1)
    expect(await secretRefs()).toEqual([secretRef])
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/old', '/new'])
    const [first, second] = receiver.requests
    expect(isSigned(first!, before)).toBe(true)
    expect(isSigned(second!, before)).toBe(false)
    expect(isSigned(second!, await webhooks.secretOf(id))).toBe(true)
    expect(second!.headers['x-webhook-id']).toBe(first!.headers['x-webhook-id'])
    expect(second!.body).toEqual(first!.body)
  })

  test('deleted: nothing is attempted any more', async () => {
    await webhooks.deliver()
    const id = await webhooks.subscribe(receiver.url)
    const eventId = await webhooks.raise()
    await webhooks.settled()
    await bench.database.pool.query(
      'INSERT INTO webhooks.health (subscription_id, failure_count) VALUES ($1, 3)',
      [id],
    )
    await webhooks.verb('Delete', id)
    await webhooks.settled()
    expect(await secretRefs()).toEqual([])
    expect((await bench.database.pool.query('SELECT FROM webhooks.health')).rowCount).toBe(0)
    expect(await bench.store.counts({ now: bench.clock.now() })).toMatchObject({ due: 0, later: 0 })
    await webhooks.advance(49 * HOUR)
    expect(receiver.requests).toHaveLength(1)
    // what nobody is to receive any more is not dropped
    expect(await bench.log.readStream(`webhookEvent-${eventId}`)).toHaveLength(1)
  })

  test('disabled: nothing is attempted; enabled: it goes on at its rung, and one that passed is made up for once', async () => {
    await webhooks.deliver()
    const id = await webhooks.subscribe(receiver.url)
    await webhooks.raise()
    const start = bench.clock.now()
    await webhooks.advance(16 * MINUTE)
    expect(ages(start)).toEqual([0, 1, 6, 31, 156, 5 * MINUTE, 15 * MINUTE])
    await webhooks.disable(id)
    await webhooks.advance(3 * HOUR)
    await webhooks.raise()
    await webhooks.settled()
    expect(receiver.requests).toHaveLength(7)
    await webhooks.verb('Enable', id)
    await webhooks.settled()
    const resumed = 16 * MINUTE + 3 * HOUR
    expect(ages(start).slice(7)).toEqual([resumed])
    await webhooks.advance(5 * HOUR)
    expect(ages(start).slice(7)).toEqual([resumed, 4 * HOUR, 8 * HOUR])
    // enabled before its rung: it waits for it
    await webhooks.disable(id)
    await webhooks.verb('Enable', id)
    await webhooks.advance(MINUTE)
    expect(receiver.requests).toHaveLength(10)
    receiver.answerWith(200)
    await webhooks.advance(4 * HOUR)
    expect(ages(start).slice(10)).toEqual([12 * HOUR])
    expect(await webhooks.records.list(id, 50)).toMatchObject([{ status: 'delivered', attempts: 11 }])
  })
})

describe('health', () => {
  const failuresOf = async (id: string) => (await webhooks.records.failureCounts([id])).get(id) ?? 0
  const disablings = () => webhooks.metrics.text().then((text) => text.match(/disabled_total (\d+)/)?.[1])

  test('ten events that fail fully disable it, nine do not; enabling begins anew', async () => {
    receiver.answerWith(500)
    await webhooks.deliver()
    const id = await webhooks.subscribe(receiver.url)
    for (const _event of [1, 2]) await webhooks.raise()
    await webhooks.advance(200)
    expect(await failuresOf(id)).toBe(2)
    // as after six more
    await bench.database.pool.query('UPDATE webhooks.health SET failure_count = 8')
    await webhooks.raise()
    await webhooks.advance(200)
    expect(await failuresOf(id)).toBe(9)
    expect((await webhooks.subscription(id))!.status).toBe('active')
    await webhooks.raise()
    await webhooks.advance(31)
    expect(await failuresOf(id)).toBe(9)
    await webhooks.advance(125)
    expect(await failuresOf(id)).toBe(10)
    expect((await webhooks.subscription(id))!.status).toBe('disabled')
    expect(await disablings()).toBe('1')
    const sent = receiver.requests.length
    await webhooks.advance(10 * HOUR)
    expect(receiver.requests).toHaveLength(sent)
    await webhooks.verb('Enable', id)
    await webhooks.settled()
    expect(await failuresOf(id)).toBe(0)
    // redeliveries, which all fail again, count for nothing
    await webhooks.advance(10 * HOUR)
    expect(receiver.requests.length).toBeGreaterThan(sent)
    expect(await failuresOf(id)).toBe(0)
    expect((await webhooks.subscription(id))!.status).toBe('active')
  })

  test('a success sets the count to 0, a redelivery moves it neither up nor down, a late success of the ladder is one', async () => {
    receiver.answerWith(500)
    await webhooks.deliver()
    const id = await webhooks.subscribe(receiver.url)
    for (let n = 0; n < 3; n += 1) await webhooks.raise()
    await webhooks.advance(200)
    expect(await failuresOf(id)).toBe(3)
    receiver.answerWith(200)
    await webhooks.advance(2 * MINUTE)
    expect(await webhooks.records.list(id, 3)).toMatchObject(
      Array(3).fill({ status: 'delivered', attempts: 6 }),
    )
    expect(await failuresOf(id)).toBe(3)
    receiver.answerWith(500, 200)
    await webhooks.raise()
    await webhooks.settled()
    expect(await failuresOf(id)).toBe(3)
    await webhooks.advance(1)
    expect(await failuresOf(id)).toBe(0)
  })

  test('the log that was away when the count was full is asked to disable it again at once', async () => {
    receiver.answerWith(500)
    const id = await webhooks.subscribe(receiver.url)
    await webhooks.deliver()
    await webhooks.raise()
    await webhooks.advance(31)
    await bench.database.pool.query(
      'INSERT INTO webhooks.health (subscription_id, failure_count) VALUES ($1, 9)',
      [id],
    )
    const execute = bench.commands.execute.bind(bench.commands)
    let isAway = true
    bench.commands.execute = async (...asked) => {
      if (asked[0].category === 'webhookSubscriptions' && isAway) {
        isAway = false
        throw new EventLogUnavailable('The log is away', { passes: true })
      }
      return execute(...asked)
    }
    await webhooks.advance(125)
    expect(isAway).toBe(false)
    expect((await webhooks.subscription(id))!.status).toBe('disabled')
    expect(receiver.requests).toHaveLength(5)
  })

  // the first of these disables
  test('a count that was stored before a crash disables it after all, unless it was enabled since', {
    tags: 'long',
  }, async () => {
    receiver.answerWith(500)
    const id = await webhooks.subscribe(receiver.url)
    await webhooks.deliver()
    await webhooks.raise()
    await webhooks.advance(200)
    // the tenth was counted, and nothing came of it
    await bench.database.pool.query('UPDATE webhooks.health SET failure_count = 10')
    await webhooks.advance(5 * MINUTE)
    expect((await webhooks.subscription(id))!.status).toBe('disabled')
    expect(receiver.requests).toHaveLength(5)
  })
})

describe('an event that is sent again', () => {
  const resent = async (subscriptionId: string, eventId: string) => {
    const deliveryId = newId()
    await webhooks.records.resend({
      subscriptionId,
      host: new URL(receiver.url).host,
      tenantId: webhooks.tenantId,
      environment: 'live',
      at: bench.clock.now(),
      events: [{ deliveryId, eventId, eventType: 'installment.paid', body: '{}' }],
    })
    await webhooks.settled()
    return deliveryId
  }
  const shown = async (id: string, deliveryId: string) =>
    (await webhooks.records.list(id, 9)).find(({ _id }) => _id === deliveryId)

  test('has five attempts at any age under its id and first body, counts for nothing and is never dropped', async () => {
    await webhooks.deliver()
    const id = await webhooks.subscribe(receiver.url)
    const eventId = await webhooks.raise()
    await webhooks.advance(60 * HOUR)
    receiver.answerWith(500)
    const from = bench.clock.now()
    const deliveryId = await resent(id, eventId)
    await webhooks.advance(60 * HOUR)
    const [first, ...again] = receiver.requests
    expect(ages(from, again)).toEqual([0, 1, 6, 31, 156])
    for (const { headers, body } of again) {
      expect([headers['x-webhook-id'], String(body)]).toEqual([eventId, String(first!.body)])
    }
    expect(await shown(id, deliveryId)).toMatchObject({ status: 'failed', attempts: 5, resent: true })
    expect(await webhooks.records.failureCounts([id])).toEqual(new Map())
    const stream = await bench.log.readStream(`webhookEvent-${eventId}`)
    expect(stream.map(({ type }) => type)).toEqual(['WebhookEventRaised'])
    // its body is kept as long as its last delivery
    while (await webhooks.records.prune(from - 1));
    expect(await webhooks.records.list(id, 9)).toMatchObject([{ _id: deliveryId }])
  })

  test('ends where its subscription is disabled, and does not go on when that is enabled', async () => {
    receiver.answerWith(500)
    await webhooks.deliver()
    const id = await webhooks.subscribe(receiver.url)
    const deliveryId = await resent(id, newId())
    await webhooks.disable(id)
    await webhooks.advance(10)
    expect(await shown(id, deliveryId)).toMatchObject({
      status: 'failed',
      last_error: 'The subscription was disabled; the last attempt: The address answered 500',
    })
    await webhooks.verb('Enable', id)
    await webhooks.advance(HOUR)
    expect(receiver.requests).toHaveLength(1)
  })
})

describe('an enabling that has not come to the count yet', () => {
  // health counts failures, and begins anew
  test('begins it anew all the same: failures before and just after do not disable', {
    tags: 'long',
  }, async () => {
    receiver.answerWith(500)
    const id = await webhooks.subscribe(receiver.url)
    const runner = await webhooks.deliver()
    await webhooks.raise()
    await webhooks.advance(200)
    await webhooks.disable(id)
    await runner.stop()
    // enabled, and a crash came before the count was set
    await webhooks.verb('Enable', id)
    await bench.database.pool.query('UPDATE webhooks.health SET failure_count = 11')
    await bench.database.pool.query(`DELETE FROM runtime.work WHERE kind = 'wake'`)
    const head = await bench.log.head()
    await bench.database.pool.query('UPDATE runtime.process_managers SET position = $1', [head])
    await webhooks.raise()
    const reads: string[] = []
    const readStream = bench.log.readStream.bind(bench.log)
    bench.log.readStream = (stream, options) => {
      reads.push(stream)
      return readStream(stream, options)
    }
    await webhooks.deliver()
    await webhooks.advance(200)
    expect((await webhooks.subscription(id))!.status).toBe('active')
    expect(receiver.requests.length).toBeGreaterThan(5)
    // what all is decided by is known
    expect(reads.filter((stream) => stream.startsWith('webhookSubscriptions-')).length).toBeLessThan(5)
  })
})

describe('claims of several processes', () => {
  let other: PostgresWorkStore
  const [deliveryId, subscriptionId, eventId] = [newId(), newId(), newId()]

  beforeEach(async () => {
    other = new PostgresWorkStore(bench.database.pool)
    const createdAt = bench.clock.now()
    const event = eventOf({ eventId, body: '{}', createdAt })
    await webhooks.records.add([event], [{ deliveryId, eventId, subscriptionId, createdAt }])
  })

  const claim = async (store: WorkStore, owner: string) => {
    const kinds = [{ processManager: 'webhook-deliveries', kind: 'deliver', slots: 9 }]
    return (await store.claim({ owner, kinds }))[0]
  }
  const standing = (store: WorkStore, owner: string, ...tokens: bigint[]) =>
    store.makeDue(bench.clock.now(), owner, tokens)

  test('one that another process took over is lost, one whose result is recorded is not', async () => {
    const first = (await claim(bench.store, 'one'))!
    await standing(other, 'one')
    const second = (await claim(other, 'two'))!
    expect(await standing(bench.store, 'one', first.token)).toEqual(new Set())
    expect(await bench.store.end(first, { end: 'interrupted' })).toBe('lost')
    expect(await standing(other, 'two', second.token)).toEqual(new Set([second.token]))
    expect(await other.end(second, { end: 'interrupted' })).toBe('due')
    const third = (await claim(bench.store, 'one'))!
    expect(third.attempt).toBe(2)
    await webhooks.records.giveUp(deliveryId, 'Its time is over')
    expect(await standing(bench.store, 'one', third.token)).toEqual(new Set([third.token]))
    // nothing of it stays once it runs no more
    await standing(bench.store, 'one')
    expect(await standing(bench.store, 'one', third.token)).toEqual(new Set())
  })

  test('what an earlier release ended in any state is claimed by nobody, and waits for nothing', async () => {
    const { pool } = bench.database
    for (const state of ['due', 'later', 'asleep', 'leased']) {
      await pool.query('UPDATE webhooks.deliveries SET next_attempt_at = NULL, state = $1', [state])
      expect(await claim(bench.store, 'one')).toBeUndefined()
      await standing(bench.store, 'one')
      expect((await pool.query('SELECT state FROM webhooks.deliveries')).rows).toEqual([{ state: null }])
    }
  })
})

describe('results', () => {
  test('a first attempt does not wait for a clock that is behind that of who raised the event', async () => {
    await webhooks.subscribe(receiver.url)
    await webhooks.raise()
    const behind: Clock = { kind: 'virtual', now: () => bench.clock.now() - 60_000 }
    await webhooks.deliver(localSender(), behind)
    await receiver.next()
    await webhooks.settled()
    expect(receiver.requests).toHaveLength(1)
  })

  test('what was accepted is not sent again, and what a crash cut off is repeated under its number', async () => {
    const id = await webhooks.subscribe(receiver.url)
    const first = gate()
    const sender = localSender()
    let posts = 0
    const stuck: WebhookSender = {
      refuse: (url) => sender.refuse(url),
      async post(request, signal) {
        posts += 1
        const answer = await sender.post(request, signal)
        if (posts === 1) await first.opened
        return answer
      },
    }
    const runner = await webhooks.deliver(stuck)
    await webhooks.raise()
    await receiver.next()
    expect(await webhooks.records.list(id, 5)).toMatchObject([{ status: 'pending', attempts: 0 }])
    // its lease is lost as if the process were gone: another claim makes the attempt again
    await bench.database.pool.query(
      `UPDATE webhooks.deliveries SET state = 'due', lease_token = NULL, lease_owner = NULL, lease_until = NULL`,
    )
    bench.notices.wake('work')
    await receiver.next()
    await webhooks.settled()
    first.open()
    await webhooks.settled()
    expect(receiver.requests.map(({ headers }) => headers['x-webhook-id'])).toEqual(
      Array(2).fill(receiver.requests[0]!.headers['x-webhook-id']),
    )
    expect(await webhooks.records.list(id, 5)).toMatchObject([{ status: 'delivered', attempts: 1 }])
    expect(await bench.store.counts({ now: bench.clock.now() })).toMatchObject({
      due: 0,
      leased: 0,
      later: 0,
    })
    expect(runner.names).toEqual(['webhook-deliveries'])
  })

  test('what an earlier release stored as work is taken over, each at its time, and what is over is forgotten', async () => {
    receiver.answerWith(500)
    const id = await webhooks.subscribe(receiver.url)
    const runner = await webhooks.deliver()
    const [first, late, over] = [await webhooks.raise(), await webhooks.raise(), await webhooks.raise()]
    await webhooks.settled()
    await runner.stop()
    const { pool } = bench.database
    const now = bench.clock.now()
    // as it left them: a first attempt, a redelivery in a minute, and one whose work was about to end
    for (const [eventId, attempts, next] of [
      [first, 0, now],
      [late, 1, now + 60_000],
      [over, 1, null],
    ] as const) {
      await pool.query(
        'UPDATE webhooks.deliveries SET state = NULL, host = NULL, attempts = $2, next_attempt_at = $3 WHERE event_id = $1',
        [eventId, attempts, next],
      )
      await pool.query(
        `INSERT INTO runtime.work (process_manager, kind, key, payload, concurrency_key, due_at, state, correlation_id, causation_id)
         VALUES ('webhook-deliveries', $2, $1, '{"host":"h"}', 's', $3, $4, 'request', 'cause')`,
        [
          derivedId(eventId, id),
          attempts ? 'redeliver' : 'deliver',
          next ?? 0,
          next === now ? 'due' : 'later',
        ],
      )
    }
    await pool.query('UPDATE webhooks.events SET correlation_id = NULL, causation_id = NULL')
    receiver.answerWith(200)
    const sent = receiver.requests.length
    const idsSince = () => receiver.requests.slice(sent).map(({ headers }) => headers['x-webhook-id'])
    await webhooks.deliver()
    await webhooks.settled()
    expect(idsSince()).toEqual([first])
    await webhooks.advance(60)
    expect(idsSince()).toEqual([first, late])
    expect((await pool.query('SELECT FROM runtime.work')).rows).toEqual([])
    const { rows } = await pool.query('SELECT DISTINCT correlation_id, causation_id FROM webhooks.events')
    expect(rows).toEqual([{ correlation_id: 'request', causation_id: 'cause' }])
  })

  test('a stretch of the log that comes again delivers nothing twice', async () => {
    const id = await webhooks.subscribe(receiver.url)
    const runner = await webhooks.deliver()
    await webhooks.raise()
    await webhooks.settled()
    await runner.stop()
    await bench.database.pool.query('UPDATE runtime.process_managers SET position = 0')
    await webhooks.deliver()
    await webhooks.settled()
    expect(receiver.requests).toHaveLength(1)
    expect(await webhooks.records.list(id, 5)).toHaveLength(1)
  })

  test('an event that is read after 48 hours is dropped, with a record and the operator told, also where a crash came first', async () => {
    const id = await webhooks.subscribe(receiver.url)
    const first = await webhooks.deliver()
    await webhooks.raise()
    await webhooks.settled()
    await first.stop()
    const [unread, halfway] = [await webhooks.raise(), await webhooks.raise()]
    // recorded, and a crash came before the work was stored
    const createdAt = bench.clock.now()
    await webhooks.records.add(
      [eventOf({ eventId: halfway, body: '{}', createdAt })],
      [{ deliveryId: derivedId(halfway, id), eventId: halfway, subscriptionId: id, createdAt }],
    )
    await webhooks.pass(48 * HOUR)
    await webhooks.deliver()
    await webhooks.settled()
    expect(receiver.requests).toHaveLength(1)
    const records = await webhooks.records.list(id, 5)
    for (const eventId of [unread, halfway]) {
      expect(records.find(({ event_id }) => event_id === eventId)).toMatchObject({
        status: 'failed',
        attempts: 0,
        last_error: 'The event was not accepted within 48 hours',
      })
      const stream = await bench.log.readStream(`webhookEvent-${eventId}`)
      expect(stream.map(({ type }) => type)).toEqual(['WebhookEventRaised', 'WebhookDeliveryDropped'])
    }
  })

  // the ones beside it read a stretch again, and an event after 48 hours
  test('a log that is read anew sends nothing that is older than 48 hours, and the rest under its old ids', {
    tags: 'long',
  }, async () => {
    const id = await webhooks.subscribe(receiver.url)
    const first = await webhooks.deliver()
    await webhooks.raise()
    await webhooks.advance(47 * HOUR)
    const second = await webhooks.raise()
    await webhooks.advance(HOUR)
    await first.stop()
    for (const table of ['events', 'deliveries', 'health']) {
      await bench.database.pool.query(`TRUNCATE webhooks.${table}`)
    }
    await bench.database.pool.query('UPDATE runtime.process_managers SET position = 0')
    await webhooks.deliver()
    await webhooks.settled()
    expect(receiver.requests).toHaveLength(3)
    expect(receiver.requests[2]!.headers['x-webhook-id']).toBe(second)
    expect(await webhooks.records.list(id, 5)).toMatchObject([{ event_id: second, status: 'delivered' }])
    expect(await webhooks.metrics.text()).toContain('webhook_deliveries_total{outcome="missed"} 1')
  })

  test('a subscription event that cannot be read stops the events of its tenant, and nobody else', async () => {
    const other = newId()
    const id = await webhooks.subscribe(`${receiver.url}/own`)
    await webhooks.subscribe(`${receiver.url}/other`, { tenantId: other })
    const stream = `webhookSubscriptions-${other}_live`
    const [stored] = await bench.log.readStream(stream)
    const { hash: _, ...metadata } = JSON.parse(stored!.metadata)
    await bench.log.append(stream, 0, [
      { type: 'WebhookSubscriptionMelted', data: '{}', metadata: JSON.stringify(metadata) },
    ])
    const stopped = await webhooks.raise({ tenantId: other })
    await webhooks.raise()
    await webhooks.raise({ tenantId: other })
    await webhooks.raise()
    await webhooks.deliver()
    await receiver.next()
    await receiver.next()
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/own', '/own'])
    expect(await webhooks.records.list(id, 5)).toHaveLength(2)
    await expect
      .poll(() => bench.reports.filter((report) => report.startsWith('reaction_parked')).length)
      .toBe(2)
    expect(bench.reports.join()).toContain(`webhookEvent-${stopped}`)
    expect(bench.reports.join()).not.toContain('process_manager_restarted')
  })

  test('many results at once count each once, successes and failures in their order', async () => {
    const { records } = webhooks
    const [subscriptionId, eventId] = [newId(), newId()]
    const ids = Array.from({ length: 40 }, newId)
    await records.add(
      [eventOf({ eventId, body: '{}', createdAt: 1 })],
      ids.map((deliveryId) => ({ deliveryId, eventId, subscriptionId, createdAt: 1 })),
    )
    const result = (deliveryId: string, counts: AttemptResult['counts']): AttemptResult => ({
      deliveryId,
      subscriptionId,
      attempt: 1,
      at: 2,
      statusCode: 200,
      error: null,
      rung: 0,
      revision: 0,
      status: counts === 'success' ? 'delivered' : 'failed',
      nextAttemptAt: counts === 'success' ? null : 9,
      counts,
    })
    const failures = ids.slice(0, 20).map((id) => records.record(result(id, 'failure')))
    expect(new Set(await Promise.all(failures))).toEqual(new Set([20]))
    const rest = ids
      .slice(20)
      .map((id, n) => result(id, n === 14 ? 'success' : n > 16 || n < 3 ? 'failure' : null))
    await Promise.all(rest.map((one) => records.record(one)))
    expect(await records.failureCounts([subscriptionId])).toEqual(new Map([[subscriptionId, 3]]))
    // the same results again change nothing
    await Promise.all(rest.map((one) => records.record(one)))
    expect(await records.failureCounts([subscriptionId])).toEqual(new Map([[subscriptionId, 3]]))
    await records.resetFailures(subscriptionId, 7)
    expect(await records.failureCounts([subscriptionId])).toEqual(new Map())
    // an attempt that was begun before does not count, nor does the same enabling begin anew
    await records.record({ ...result(ids[0]!, 'failure'), attempt: 2, revision: 6 })
    expect(await records.failureCounts([subscriptionId])).toEqual(new Map())
    await records.record({ ...result(ids[1]!, 'failure'), attempt: 2, revision: 7 })
    await records.resetFailures(subscriptionId, 7)
    expect(await records.failureCounts([subscriptionId])).toEqual(new Map([[subscriptionId, 1]]))
  })

  test('an unfinished delivery stays, however old it is, until it is dropped', async () => {
    receiver.answerWith(500)
    const id = await webhooks.subscribe(receiver.url)
    await webhooks.deliver()
    const eventId = await webhooks.raise()
    await webhooks.settled()
    const after = bench.clock.now() + 1
    expect(await webhooks.records.prune(after)).toBe(false)
    expect(await webhooks.records.list(id, 5)).toMatchObject([{ status: 'retrying' }])
    await webhooks.advance(48 * HOUR)
    const stream = await bench.log.readStream(`webhookEvent-${eventId}`)
    expect(stream.map(({ type }) => type)).toContain('WebhookDeliveryDropped')
    expect(await webhooks.records.prune(after)).toBe(false)
    expect(await webhooks.records.list(id, 5)).toEqual([])
    expect((await bench.database.pool.query('SELECT FROM webhooks.events')).rows).toEqual([])
  })

  test('the history shows bodies as they were kept, without parsing them', async () => {
    const [eventId, subscriptionId] = [newId(), newId()]
    const body = '{ "amount" : 1.0 }'
    await webhooks.records.add(
      [eventOf({ eventId, body, createdAt: 1 })],
      [{ deliveryId: newId(), eventId, subscriptionId, createdAt: 1 }],
    )
    expect(await webhooks.records.list(subscriptionId, 5)).toMatchObject([{ payload: body }])
  })

  test('history leaves after its days, bodies with their deliveries', async () => {
    const id = await webhooks.subscribe(receiver.url)
    await webhooks.deliver()
    await webhooks.raise()
    await webhooks.settled()
    const before = bench.clock.now()
    await webhooks.advance(60)
    await webhooks.raise()
    await webhooks.settled()
    expect(await webhooks.records.list(id, 5)).toHaveLength(2)
    expect(await webhooks.records.prune(before + 1)).toBe(false)
    expect(await webhooks.records.list(id, 5)).toHaveLength(1)
    const { rows } = await bench.database.pool.query('SELECT event_id FROM webhooks.events')
    expect(rows).toHaveLength(1)
  })
})
