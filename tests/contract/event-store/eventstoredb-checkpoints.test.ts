import { EVENT_TYPE, type Filter, START } from '@eventstore/db-client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { LOG_START, type LogPage } from '../../../application/ports/event-log.ts'
import { shareAppends } from '../../../infrastructure/event-store/eventstoredb/appends.ts'
import { connect } from '../../../infrastructure/event-store/eventstoredb/client.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { Live } from '../../../infrastructure/event-store/eventstoredb/live.ts'
import { LogReader } from '../../../infrastructure/event-store/eventstoredb/log-reader.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { aStream, follow, someEvents } from './event-log.contract.ts'

const LIMIT_MS = 200_000

describe.skipIf((await findEventStore())?.kind !== 'program')(
  'following EventStoreDB from a checkpoint (needs the program)',
  () => {
    async function aLive(url: string, head: bigint) {
      const closing = new AbortController()
      const connection = connect(url)
      onTestFinished(() => connection.client.dispose())
      onTestFinished(async () => closing.abort())
      const { appends, release } = shareAppends(url)
      onTestFinished(release)
      const reader = new LogReader(connection, appends, LIMIT_MS, closing.signal)
      const parts = { connection, reader, log: { warn: () => undefined }, closing: closing.signal }
      return { live: new Live(parts, head), reader }
    }

    /** All that the server tells somebody of who is interested in nothing, up to a position. */
    async function checkpointsUpTo(url: string, last: bigint): Promise<bigint[]> {
      const { client } = connect(url)
      onTestFinished(() => client.dispose())
      const told: bigint[] = []
      await new Promise<void>((resolve, reject) => {
        const filter: Filter = {
          filterOn: EVENT_TYPE,
          regex: '^no event at all$',
          maxSearchWindow: 1,
          checkpointInterval: 1,
          checkpointReached: (_, { commit }) => {
            told.push(commit)
            if (commit >= last) resolve()
          },
        }
        client.subscribeToAll({ fromPosition: START, filter }).on('error', reject).resume()
      })
      return told.filter((position) => position > LOG_START)
    }

    test('leaves out no event after it, also where the server was restarted', {
      timeout: 3 * LIMIT_MS,
    }, async () => {
      const server = await startEventStore({ keepsData: true })
      onTestFinished(() => server.stop())
      const { url } = server
      const log = await openEventStoreEventLog({ url, patienceMs: LIMIT_MS })
      onTestFinished(() => log.close())
      await log.append(aStream(), -1, someEvents(2))
      await server.kill()
      await server.restart()
      await log.append(aStream(), -1, someEvents(1))
      const { position: last } = await log.append(aStream(), -1, someEvents(2))
      const all = (await log.readAll({ after: LOG_START, maxCount: 100 })).events
      expect(all).toHaveLength(5)

      const checkpoints = await checkpointsUpTo(url, last)
      // between what was stored before the restart and after it, where no event stands
      const between = checkpoints.filter((one) => one > all[1]!.position && one < all[2]!.position)
      expect(between).not.toEqual([])
      for (const after of checkpoints) {
        const rest = all.filter(({ position }) => position > after)
        const { events } = await log.readAll({ after, maxCount: 100 })
        expect(events, `read after ${after}`).toEqual(rest)
        const told = await follow(log, { after }, (_, { checkpoint }) => checkpoint >= last)
        expect(told.events, `followed after ${after}`).toEqual(rest)
      }
      for (const after of between) {
        const { live } = await aLive(url, after)
        live.want(undefined)
        live.reaches(last)
        await live.feed.beyond(last - 1n, AbortSignal.timeout(LIMIT_MS))
        const page = live.feed.after(after, 100, undefined) as LogPage
        expect(page.events, `told after ${after}`).toEqual(all.slice(2))
      }
    })

    test('asks one look at a time whether it is silent', async () => {
      const server = await startEventStore()
      onTestFinished(() => server.stop())
      const log = await openEventStoreEventLog({ url: server.url })
      onTestFinished(() => log.close())
      const { position } = await log.append(aStream(), -1, someEvents(1))
      vi.useFakeTimers({ toFake: ['setInterval'] })
      onTestFinished(async () => void vi.useRealTimers())
      const { live, reader } = await aLive(server.url, position)
      let answer: (head: bigint) => void = () => undefined
      const looks = vi.spyOn(reader, 'head').mockImplementation(
        () =>
          new Promise((resolve) => {
            answer = resolve
          }),
      )
      live.want(undefined)
      vi.advanceTimersByTime(60_000)
      expect(looks).toHaveBeenCalledTimes(1)
      answer(position)
      await new Promise(setImmediate)
      vi.advanceTimersByTime(60_000)
      expect(looks).toHaveBeenCalledTimes(2)
    })
  },
)
