// @module-tag once
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { followThroughput } from '../../../application/operations/follow-throughput.ts'
import { recordClock } from '../../../application/operations/machinery-alerts.ts'
import { SystemRandomness } from '../../../infrastructure/randomness.ts'
import { PostgresThroughput } from '../../../infrastructure/telemetry/throughput.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { newId } from '../../support/payroll.ts'
import { openWorkbench } from '../../support/workbench.ts'

let database: TestDatabase
let pool: pg.Pool
let samples: PostgresThroughput
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  samples = new PostgresThroughput(pool)
})
beforeEach(() => pool.query('DELETE FROM runtime.throughput'))
afterAll(async () => {
  await pool?.end()
  await database?.drop()
})

/** Puts a sample so many seconds before the current minute began, or after. */
const put = (seconds: number, { events = 30, behind = 0, of = 30 } = {}) =>
  pool.query(
    `INSERT INTO runtime.throughput (at, seconds, events, events_behind, seconds_behind)
     VALUES (date_trunc('minute', now()) + make_interval(secs => $1), $2, $3, $4, $5)`,
    [seconds, of, events, behind, behind / 10],
  )

describe('the throughput of the last hour', () => {
  test('has the rate and the greatest lag of each minute, and nothing where nothing was measured', async () => {
    await put(-60, { events: 15, behind: 40 })
    await put(-30, { events: 45, behind: 20 })
    // the first of a process: there was none before it
    await put(-120, { events: 0, of: 0 })
    const slots = await samples.slots(60, 60)
    expect(slots).toHaveLength(60)
    expect(slots.every(({ at }, index) => index === 0 || +at - +slots[index - 1]!.at === 60_000)).toBe(true)
    const known = slots.filter(({ secondsBehind }) => secondsBehind !== null)
    expect(known.map(({ at: _, ...figures }) => figures)).toEqual([
      { eventsPerSecond: null, eventsBehind: 0, secondsBehind: 0 },
      { eventsPerSecond: 1, eventsBehind: 40, secondsBehind: 4 },
    ])
  })

  test('is kept for little more than a day', async () => {
    await put(-26 * 3_600)
    await put(-24 * 3_600)
    await samples.add({ seconds: 30, events: 1, eventsBehind: 0, secondsBehind: 0 })
    const { rows } = await pool.query('SELECT count(*)::int AS kept FROM runtime.throughput')
    expect(rows).toEqual([{ kept: 2 }])
  })
})

test('samples count each stored event once, and tell of the lag that the process sees', async () => {
  const bench = await openWorkbench(database.url)
  const { log, leases, commands, clock } = bench
  const stopping = new AbortController()
  const failures: unknown[] = []
  const following = followThroughput(
    {
      log,
      leases,
      samples,
      lag: async () => ({ events: 3, seconds: 0.5 }),
      failed: (error) => failures.push(error),
      everyMs: 1,
    },
    stopping.signal,
  )
  const sampled = async () => {
    const { rows } = await pool.query(
      `SELECT count(*)::int AS samples, sum(events)::int AS events, max(events_behind)::int AS behind
         FROM runtime.throughput`,
    )
    return rows[0]
  }
  try {
    await expect.poll(async () => (await sampled()).samples).toBeGreaterThan(0)
    const parts = { commands, randomness: new SystemRandomness(clock) }
    for (let events = 0; events < 3; events += 1) {
      await recordClock(parts, { process_id: newId(), skew_ms: 3_600_000 })
    }
    await expect.poll(sampled).toMatchObject({ events: 3, behind: 3 })
  } finally {
    stopping.abort()
    await following
    await bench.close()
  }
  expect([failures, await sampled()]).toMatchObject([[], { events: 3 }])
})
