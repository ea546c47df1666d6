// @module-tag once: it has the log that it needs itself
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EventLog } from '../../../application/ports/event-log.ts'
import { ServiceUnavailable } from '../../../application/ports/unavailable.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import { FailFastLog } from '../../../infrastructure/event-store/fail-fast.ts'
import { openPostgresEventLog } from '../../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { createTestDatabase } from '../../support/database.ts'
import { type HoldingProxy, startHoldingProxy } from '../../support/holding-proxy.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { untilAnswered } from '../../support/until-answered.ts'

deadlinesOfTheProduct()

/** More than the log has connections. */
const READS = 20

let proxy: HoldingProxy
let database: Database
let log: EventLog
let failFast: FailFastLog
/** How often the server was asked for a sign of life, and how often it gave one. */
let asked: number
let alive: number

beforeEach(async () => {
  const created = await createTestDatabase()
  const url = new URL(created.url)
  proxy = await startHoldingProxy(Number(url.port))
  url.host = `127.0.0.1:${proxy.port}`
  database = await openDatabase({ url: url.toString() })
  log = await openPostgresEventLog({ database })
  asked = 0
  alive = 0
  return async () => {
    await failFast.close()
    await database.close()
    await proxy.close()
    await created.drop()
  }
})

function openFailFast(answerMs?: number): void {
  failFast = new FailFastLog(log, {
    askAfterMs: 5,
    ...(answerMs === undefined ? {} : { answerMs }),
    ask: async () => {
      asked += 1
      await database.leases.query('SELECT 1')
      alive += 1
    },
  })
}

const underWay: Promise<unknown>[] = []
afterEach(async () => {
  await Promise.all(underWay.splice(0))
})

function settled(reads: readonly Promise<unknown>[]): Promise<PromiseSettledResult<unknown>[]> {
  const outcome = Promise.allSettled(reads)
  underWay.push(outcome)
  return outcome
}

test('no read of a busy log is refused while its server answers', async () => {
  openFailFast()
  await database.withOwner(async (client) => {
    await client.query('BEGIN')
    await client.query('LOCK TABLE event_log.events')
    // slow reads of others hold all connections
    const others = settled(Array.from({ length: READS }, () => log.readAll({ after: 0n, maxCount: 1 })))
    const reads = settled(Array.from({ length: READS }, () => failFast.readStream('any')))
    await expect.poll(() => alive).toBeGreaterThan(20)
    await client.query('ROLLBACK')
    expect((await reads).filter(({ status }) => status === 'rejected')).toEqual([])
    expect((await others).filter(({ status }) => status === 'rejected')).toEqual([])
  })
})

test('reads are answered when the server is back, whatever connections of before are waited for', async () => {
  openFailFast(200)
  await untilAnswered(() => failFast.head())
  proxy.vanish()
  underWay.push(log.readStream('hung').catch(() => undefined))
  const refused = await settled([failFast.readStream('a'), failFast.head()])
  for (const read of refused) {
    expect(read).toMatchObject({ status: 'rejected', reason: expect.any(ServiceUnavailable) })
  }
  await expect(failFast.head()).rejects.toBeInstanceOf(ServiceUnavailable)
  // looks that hang keep none from being made
  const before = asked
  await expect.poll(() => asked).toBeGreaterThan(before + 1)
  proxy.comeBackUnnoticed()
  const head = () => failFast.head().catch(() => null)
  await expect.poll(head).toBe(0n)
  await proxy.cut()
})
