// @module-tag long: integration/installation/copy-events copies the same without kills
import { spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LOG_START } from '../../application/ports/event-log.ts'
import type { MovableLog } from '../../application/ports/movable-log.ts'
import { openDatabase } from '../../infrastructure/database/database.ts'
import { openMovableEventStoreLog } from '../../infrastructure/event-store/eventstoredb/movable-log.ts'
import { openMovablePostgresLog } from '../../infrastructure/event-store/postgres/movable-log.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { someEvents } from '../contract/event-store/event-log.contract.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { until } from '../support/workbench.ts'

const KILLS = 4
const source = await findEventStore()

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Starts a copy in a process of its own. */
function start(from: string, to: string): { ended: Promise<Run>; kill(): void } {
  const child = spawn(
    process.execPath,
    ['bin/compstream.js', 'events', 'copy', '--from', 'FROM', '--to', 'TO', '--log-only', '--json'],
    { env: { PATH: process.env.PATH, FROM: from, TO: to }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (text) => {
    stdout += text
  })
  child.stderr.on('data', (text) => {
    stderr += text
  })
  return {
    ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr }))),
    kill: () => void child.kill('SIGKILL'),
  }
}

if (source && source.kind !== 'given') {
  describe('events copy is killed', () => {
    const databases: TestDatabase[] = []
    let first: string
    let server: EventStoreServer
    let events: number

    async function emptyDatabase(): Promise<string> {
      const database = await createTestDatabase()
      databases.push(database)
      return database.url
    }

    beforeAll(async () => {
      server = await startEventStore()
      first = await emptyDatabase()
      const database = await openDatabase({ url: first })
      const log = await openPostgresEventLog({ database })
      const data = JSON.stringify({ text: 'x'.repeat(300) })
      events = 0
      for (let round = 0; round < 60; round += 1) {
        // many streams at once: what overtakes something shows
        const counts = Array.from({ length: 150 }, () => randomInt(1, 6))
        events += counts.reduce((sum, count) => sum + count, 0)
        await Promise.all(
          counts.map((count) => log.append(`test-${randomUUID()}`, -1, someEvents(count, { data }))),
        )
      }
      await log.close()
      await database.close()
    })
    afterAll(async () => {
      await server?.stop()
      for (const database of databases) await database.drop()
    })

    /** How many events a side holds, looked at beside the copy. */
    async function heldBy(url: string): Promise<bigint> {
      if (!url.startsWith('esdb')) {
        const database = await openDatabase({ url })
        const { rows } = await database.pool.query('SELECT count(*) AS held FROM event_log.events')
        await database.close()
        return BigInt(rows[0].held)
      }
      const log = await openMovableEventStoreLog(url)
      return log.head().finally(() => log.close())
    }

    /** Kills copies a few times, each a little later, then lets one come to its end. */
    async function copyWithKills(from: string, to: string): Promise<Run> {
      let kills = 0
      for (let attempt = 0; kills < KILLS; attempt += 1) {
        expect(attempt).toBeLessThan(4 * KILLS)
        const before = await heldBy(to)
        const run = start(from, to)
        let over = false
        void run.ended.then(() => {
          over = true
        })
        // as soon as it has written something more
        await until(async () => over || (await heldBy(to)) > before)
        if (over) break
        run.kill()
        await run.ended
        kills += 1
      }
      expect(kills).toBeGreaterThan(0)
      return start(from, to).ended
    }

    async function logHash(url: string): Promise<string> {
      const { proveLog } = await import('../../infrastructure/installation/moving/log-proof.ts')
      const prove = (log: MovableLog) => proveLog(log, () => undefined, new AbortController().signal)
      if (url.startsWith('esdb')) {
        const log = await openMovableEventStoreLog(url)
        return (await prove(log).finally(() => log.close())).log_hash
      }
      const database = await openDatabase({ url })
      const log = await openMovablePostgresLog(database)
      const { log_hash } = await prove(log).finally(() => log.close())
      await database.close()
      return log_hash
    }

    test('on its way to EventStoreDB, and completes when it is started again', {
      timeout: 300_000,
    }, async () => {
      const run = await copyWithKills(first, server.url)
      expect(run.code, run.stderr).toBe(0)
      expect(JSON.parse(run.stdout)).toMatchObject({ logs_equal: true, to: { events } })
      expect(await logHash(server.url)).toBe(await logHash(first))
    })

    test('on its way to PostgreSQL', { timeout: 300_000 }, async () => {
      const to = await emptyDatabase()
      const run = await copyWithKills(server.url, to)
      expect(run.code, run.stderr).toBe(0)
      expect(JSON.parse(run.stdout)).toMatchObject({ logs_equal: true, to: { events } })
      expect(await logHash(to)).toBe(await logHash(first))
    })

    test('the server it writes to is killed instead: it waits and goes on by itself', {
      timeout: 300_000,
    }, async () => {
      const target = await startEventStore({ keepsData: true })
      try {
        const empty = await heldBy(target.url)
        expect(empty).toBe(LOG_START)
        const run = start(first, target.url)
        let seen = empty
        for (let kill = 0; kill < 3; kill += 1) {
          let over = false
          void run.ended.then(() => {
            over = true
          })
          await until(async () => {
            const held = await heldBy(target.url)
            const went = held > seen
            seen = held
            return over || went
          })
          await target.kill()
          await target.restart()
        }
        const ended = await run.ended
        expect(ended.code, ended.stderr).toBe(0)
        expect(await logHash(target.url)).toBe(await logHash(first))
      } finally {
        await target.stop()
      }
    })
  })
} else {
  describe.skip('events copy is killed (no EventStoreDB server was found that tests may kill)', () =>
    test('skipped', () => undefined))
}
