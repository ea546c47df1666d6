// @module-tag long: integration/webhook-deliveries repeats what a crash cut off, pipeline-kill kills under load
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type RunningService, startProcess } from '../support/service.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { WEBHOOK_BENCH_KEY, WebhookBench } from '../support/webhooks.ts'
import { openWorkbench, until, type Workbench } from '../support/workbench.ts'

const EVENTS_A_ROUND = 60
const ROUNDS = 2

let database: TestDatabase
let dataDir: string
let service: RunningService
let bench: Workbench
let webhooks: WebhookBench
let receiver: Receiver

beforeEach(async () => {
  database = await createTestDatabase()
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-chaos-'))
  receiver = await startReceiver()
  await start()
  bench = await openWorkbench(database.url, { clock: systemClock })
  webhooks = new WebhookBench(bench)
})
afterEach(async () => {
  await bench?.close()
  await service?.kill()
  await receiver.stop()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

async function start(): Promise<void> {
  service = await startProcess({
    dataDir,
    env: {
      DATABASE_URL: database.url,
      CLOCK: 'system',
      MASTER_KEY: WEBHOOK_BENCH_KEY.toString('base64'),
      OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    },
  })
}

const pairOf = ({ headers, path }: ReceivedRequest) => `${headers['x-webhook-id']} ${path}`

test('killed again and again while it delivers, it loses no delivery and alters no byte', async () => {
  // one receiver in three refuses everything at first, one says nothing now and then
  const asked = new Set<string>()
  const accepted = new Set<string>()
  receiver.answerWith((request) => {
    const isFirst = !asked.has(pairOf(request))
    asked.add(pairOf(request))
    if (request.path === '/flaky' && isFirst) return asked.size % 2 === 0 ? 500 : 'reset'
    if (request.path === '/silent' && isFirst && asked.size % 20 === 0) return 'silent'
    accepted.add(pairOf(request))
    return 200
  })
  const paths = ['/steady', '/flaky', '/silent']
  for (const path of paths) await webhooks.subscribe(`${receiver.url}${path}`)
  const eventIds: string[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = accepted.size
    for (let n = 0; n < EVENTS_A_ROUND; n += 1) eventIds.push(await webhooks.raise())
    // in the midst of them
    await until(() => accepted.size >= before + EVENTS_A_ROUND / 2)
    await service.kill()
    await start()
  }
  const wanted = eventIds.flatMap((eventId) => paths.map((path) => `${eventId} ${path}`))
  const missing = () => wanted.filter((pair) => !accepted.has(pair))
  await until(() => missing().length === 0).catch(() => undefined)
  expect(missing()).toEqual([])
  const { rows } = await bench.database.pool.query<{ event_id: string; body: string }>(
    'SELECT event_id, body FROM webhooks.events',
  )
  const bodies = new Map(rows.map(({ event_id, body }) => [event_id, body]))
  expect(bodies.size).toBe(eventIds.length)
  for (const { headers, body } of receiver.requests) {
    expect(body.toString()).toBe(bodies.get(headers['x-webhook-id']!))
  }
  // nothing is left, and every accepted one is known to be
  await until(async () => {
    const { due, leased, later } = await bench.store.counts({ now: systemClock.now() })
    return due + leased + later === 0
  })
  const { rows: left } = await bench.database.pool.query(
    `SELECT FROM webhooks.deliveries WHERE status <> 'delivered'`,
  )
  expect(left).toHaveLength(0)
})
