// @module-tag once: deliveries lie in PostgreSQL, whatever holds the log
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { derivedId } from '../../../application/commands/event-registry.ts'
import type { RunnerOptions } from '../../../application/followers/runner.ts'
import { CheckpointMoved } from '../../../application/followers/work-store.ts'
import type { WebhookAnswer, WebhookSender } from '../../../application/ports/webhooks.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { newId, WebhookBench } from '../../support/webhooks.ts'
import { openWorkbench, pieceOfWork, until, type Workbench } from '../../support/workbench.ts'

/** No look at the table but the first one, and those that are asked for. */
const UNASKED = { pollMs: 600_000 }
const NAME = 'webhook-deliveries'

let created: TestDatabase
let bench: Workbench
let webhooks: WebhookBench

beforeEach(async () => {
  created = await createTestDatabase()
  bench = await openWorkbench(created.url)
  webhooks = new WebhookBench(bench)
})
afterEach(async () => {
  vi.restoreAllMocks()
  await bench.close()
  await created.drop()
})

/** A sender that answers as it is told to, and what it was given. */
function sending(answer: (signal: AbortSignal) => Promise<WebhookAnswer> | WebhookAnswer = () => ACCEPTED) {
  const posts: string[] = []
  const sender: WebhookSender = {
    refuse: async () => null,
    async post({ eventId }, signal) {
      posts.push(eventId)
      return answer(signal)
    },
  }
  return { sender, posts }
}

const ACCEPTED: WebhookAnswer = { statusCode: 200, error: null }
/** Never answers; ends with its process. */
const silent = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

/** Starts delivering, and waits until the first look at the table is over. */
async function deliver(sender: WebhookSender, options: RunnerOptions = UNASKED) {
  const claims = vi.spyOn(bench.store, 'claim')
  const runner = await webhooks.deliver(sender, bench.clock, options)
  await until(() => claims.mock.settledResults.some(({ type }) => type === 'fulfilled'))
  claims.mockClear()
  return { runner, claims }
}

/** What is done when work was stored, before whoever stored it hears of that. */
function afterStoring(act: () => Promise<unknown>): void {
  const advance = bench.store.advance.bind(bench.store)
  vi.spyOn(bench.store, 'advance').mockImplementation(async (...args) => {
    const leased = await advance(...args)
    if (args[3].store.length > 0) await act()
    return leased
  })
}

const row = async () => (await bench.database.pool.query('SELECT * FROM webhooks.deliveries')).rows[0]

describe('a delivery', () => {
  test('is begun by the process that stores it, without a claim, and nobody looks for more when it has ended', async () => {
    const { sender, posts } = sending()
    const { claims } = await deliver(sender)
    const subscription = await webhooks.subscribe('https://partner.example/hooks')
    const events: string[] = []
    // one after another: a subscription has two slots
    for (let count = 1; count <= 3; count += 1) {
      events.push(await webhooks.raise())
      await until(() => posts.length === count)
      await until(async () => (await bench.store.counts({ now: bench.clock.now() })).leased === 0)
    }
    expect(claims).not.toHaveBeenCalled()
    expect(posts).toEqual(events)
    expect(await webhooks.records.list(subscription, 5)).toMatchObject(
      Array(3).fill({ status: 'delivered', attempts: 1 }),
    )
  })

  test('waits for a claim where its subscription has as many under way as it may', async () => {
    const held = gate()
    const { sender, posts } = sending(() => held.opened.then(() => ACCEPTED))
    await deliver(sender)
    await webhooks.subscribe('https://partner.example/hooks')
    const events = [await webhooks.raise(), await webhooks.raise(), await webhooks.raise()]
    await until(async () => (await bench.store.counts({ now: bench.clock.now() })).due === 1)
    await until(() => posts.length === 2)
    held.open()
    await until(() => posts.length === 3)
    expect([...posts].sort()).toEqual(events.sort())
    await webhooks.settled()
  })

  test('is sent by another process when the one that stored it dies', async () => {
    const dying = sending(silent)
    await deliver(dying.sender)
    const subscription = await webhooks.subscribe('https://partner.example/hooks')
    const eventId = await webhooks.raise()
    await until(() => dying.posts.length === 1)
    expect(await row()).toMatchObject({ state: 'leased', lease_owner: bench.leases.owner, tries: 1 })
    const other = await openWorkbench(created.url, { clock: bench.clock })
    try {
      const living = sending()
      const theirs = new WebhookBench(other)
      await theirs.deliver(living.sender)
      const looks = vi.spyOn(other.store, 'makeDue')
      await until(() => looks.mock.settledResults.filter(({ type }) => type === 'fulfilled').length > 1)
      expect(living.posts).toEqual([])
      // as the database does when the process is gone
      await bench.leases.close()
      await until(() => living.posts.length === 1)
      await theirs.settled()
      expect(living.posts).toEqual([eventId])
      expect(await webhooks.records.list(subscription, 5)).toMatchObject([
        { status: 'delivered', attempts: 1 },
      ])
    } finally {
      await other.close()
    }
  })

  test('that a stopping process has just stored is left to others, and no attempt counts', async () => {
    const { sender, posts } = sending()
    const { runner } = await deliver(sender)
    await webhooks.subscribe('https://partner.example/hooks')
    const stopped = gate()
    afterStoring(async () => {
      void runner.stop().then(stopped.open)
      await new Promise((resolve) => setImmediate(resolve))
    })
    await webhooks.raise()
    await stopped.opened
    expect(posts).toEqual([])
    expect(await row()).toMatchObject({ state: 'due', lease_owner: null, lease_token: null, tries: 0 })
  })

  test('whose storing had no answer is sent after the next look, once', async () => {
    const { sender, posts } = sending()
    await deliver(sender, {})
    await webhooks.subscribe('https://partner.example/hooks')
    let isLost = false
    afterStoring(async () => {
      if (isLost) return
      isLost = true
      throw new Error('connection lost')
    })
    const eventId = await webhooks.raise()
    await until(() => posts.length === 1)
    await webhooks.settled()
    expect([isLost, posts]).toEqual([true, [eventId]])
  })

  test('whose lease may have lapsed before the answer to its storing waits for a claim', async () => {
    const lapses = vi.spyOn(bench.leases, 'onLapse')
    const { sender, posts } = sending()
    const { claims } = await deliver(sender)
    const [[lapsed]] = lapses.mock.calls as [[() => void]]
    await webhooks.subscribe('https://partner.example/hooks')
    afterStoring(async () => lapsed())
    const eventId = await webhooks.raise()
    await until(() => posts.length === 1)
    await webhooks.settled()
    expect(posts).toEqual([eventId])
    expect(claims).toHaveBeenCalled()
  })

  test('that is being stored has not lost its lease when somebody looks for lost ones', async () => {
    const { sender, posts } = sending()
    await deliver(sender)
    await webhooks.subscribe('https://partner.example/hooks')
    const order: string[] = []
    const makeDue = bench.store.makeDue.bind(bench.store)
    vi.spyOn(bench.store, 'makeDue').mockImplementation((...args) => {
      order.push(args[2] ? 'looked for lost ones' : 'looked')
      return makeDue(...args)
    })
    afterStoring(async () => {
      bench.notices.wake('work')
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      order.push('stored')
    })
    await webhooks.raise()
    await until(() => posts.length > 0)
    await webhooks.settled()
    expect(order.slice(0, 2)).toEqual(['looked', 'stored'])
    expect(posts).toHaveLength(1)
    expect(bench.reports).toEqual([])
  })
})

describe('storing under a lease', () => {
  const [eventId, subscriptionId] = [newId(), newId()]
  const createdAt = Date.parse('2026-01-01T00:00:00Z')
  const event = { eventId, tenantId: 't', environment: 'live', eventType: 'installment.paid', createdAt }
  const key = derivedId(eventId, subscriptionId)
  const delivery = { ...event, deliveryId: key, subscriptionId, host: 'h', body: '{"kept":2}' }
  const name = { processManager: NAME, kind: 'deliver', key }
  const piece = pieceOfWork({ ...name, payload: delivery, leaseTo: 'me' })
  const changes = { store: [piece], cancel: [] }

  test('an owner that was replaced stores nothing', async () => {
    const position = await bench.store.takeOver(NAME, 2)
    const late = bench.store.advance(NAME, { position, epoch: 1 }, position, changes)
    await expect(late).rejects.toThrow(CheckpointMoved)
    expect(await row()).toBeUndefined()
  })

  test('tells what the count of its failures is', async () => {
    const position = await bench.store.takeOver(NAME, 1)
    await bench.database.pool.query(
      'INSERT INTO webhooks.health (subscription_id, failure_count) VALUES ($1, 9)',
      [subscriptionId],
    )
    const leased = await bench.store.advance(NAME, { position, epoch: 1 }, position, changes)
    expect([...leased]).toEqual([
      [piece, expect.objectContaining({ key, attempt: 1, payload: { ...delivery, failureCount: 9 } })],
    ])
    // the same stretch of the log, read again
    expect(await bench.store.advance(NAME, { position, epoch: 1 }, position, changes)).toEqual(new Map())
    expect(await row()).toMatchObject({ state: 'leased', lease_owner: 'me', tries: 1 })
  })

  test('a delivery of an event whose bytes are kept already waits for a claim, which brings these', async () => {
    await webhooks.records.add([{ ...event, body: '{"kept":1}' }], [])
    const position = await bench.store.takeOver(NAME, 1)
    expect(await bench.store.advance(NAME, { position, epoch: 1 }, position, changes)).toEqual(new Map())
    const kinds = [{ processManager: NAME, kind: 'deliver', slots: 9 }]
    const [claim] = await bench.store.claim({ owner: 'me', kinds })
    expect(claim).toMatchObject({ key, payload: { body: '{"kept":1}' } })
  })
})
