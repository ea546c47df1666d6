// @module-tag long: eventstoredb-outages restarts a server for each call
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type EventLog, LOG_START, type LogPage } from '../../../application/ports/event-log.ts'
import { shareAppends } from '../../../infrastructure/event-store/eventstoredb/appends.ts'
import { connect } from '../../../infrastructure/event-store/eventstoredb/client.ts'
import { EventStoreUnavailable } from '../../../infrastructure/event-store/eventstoredb/errors.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { Live } from '../../../infrastructure/event-store/eventstoredb/live.ts'
import { LogReader } from '../../../infrastructure/event-store/eventstoredb/log-reader.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { revisionOf } from '../../support/log.ts'
import { aStream, follow, someEvents } from './event-log.contract.ts'

/** So many that a server takes a while to index them. */
const APPENDS = 160
const EVENTS = 500
const LIMIT_MS = 200_000

describe.skipIf((await findEventStore())?.kind !== 'program')(
  'a server that answers before it has indexed the end of its log (needs the program)',
  () => {
    test('is not believed until it has', { timeout: 4 * LIMIT_MS }, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'compstream-unindexed-'))
      onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
      const database = join(folder, 'db')
      const server = await startEventStore({ database })
      onTestFinished(() => server.stop())
      const { url } = server
      const open = async (options: { patienceMs: number; openingPatienceMs?: number }): Promise<EventLog> => {
        const log = await openEventStoreEventLog({ url, ...options })
        onTestFinished(() => log.close())
        return log
      }
      const log = await open({ patienceMs: LIMIT_MS })
      const { position: indexed } = await log.append(aStream(), -1, someEvents(2))
      const streams = Array.from({ length: APPENDS }, aStream)
      for (const stream of streams) await log.append(stream, -1, someEvents(EVENTS, { type: 'Bulk' }))
      const last = aStream()
      const { position: before } = await log.append(last, -1, someEvents(1))
      const { position: head } = await log.append(last, 0, someEvents(2))

      await server.kill()
      // as on a slow disk: only so far the log is indexed before the server answers
      const checkpoint = Buffer.alloc(8)
      checkpoint.writeBigInt64LE(indexed)
      await writeFile(join(database, 'chaser.chk'), checkpoint)
      const types = ['SomethingHappened']
      const all = follow(log, { after: LOG_START, types }, (events) => events.length >= 5)
      const rest = follow(log, { after: before, types }, (events) => events.length >= 2)
      const revision = revisionOf(log, last)
      const closing = new AbortController()
      const connection = connect(url)
      onTestFinished(() => connection.client.dispose())
      onTestFinished(async () => closing.abort())
      const { appends, release } = shareAppends(url)
      onTestFinished(release)
      const reader = new LogReader(connection, appends, LIMIT_MS, closing.signal)
      const parts = { connection, reader, log: { warn: () => undefined }, closing: closing.signal }
      const live = new Live(parts, LOG_START)
      live.want(types)
      const restarted = server.restart()
      let opened: EventLog | undefined
      while (!opened) {
        opened = await open({ patienceMs: LIMIT_MS, openingPatienceMs: 0 }).catch((error: unknown) => {
          expect(error).toBeInstanceOf(EventStoreUnavailable)
          return delay(5, undefined)
        })
      }

      expect(await opened.head()).toBe(head)
      expect(await revisionOf(opened, last)).toBe(2)
      expect(await revision).toBe(2)
      const told = await all
      expect(told.events.map(({ revision }) => revision)).toEqual([0, 1, 0, 1, 2])
      expect(told.pages.at(-1)!.checkpoint).toBe(head)
      expect((await rest).events.map(({ revision }) => revision)).toEqual([1, 2])
      await live.feed.beyond(head - 1n, AbortSignal.timeout(LIMIT_MS))
      const followed = live.feed.after(LOG_START, 10, undefined) as LogPage
      expect(followed.events.map(({ revision }) => revision)).toEqual([0, 1, 0, 1, 2])
      await restarted
    })
  },
)
