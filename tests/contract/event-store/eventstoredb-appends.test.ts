import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Appends } from '../../../infrastructure/event-store/eventstoredb/appends.ts'
import { EventStoreUnavailable } from '../../../infrastructure/event-store/eventstoredb/errors.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { gate } from '../../support/gate.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { aStream } from './event-log.contract.ts'

deadlinesOfTheProduct()

/** How long the server may take over an append, in milliseconds. */
const LIMIT_MS = 8_000

describe.skipIf((await findEventStore())?.kind !== 'program')(
  'appends to EventStoreDB whose connection is given up (needs the program)',
  () => {
    /** Has the first call wait for what the server answers to the question what it can do. */
    function holdFirstCall(): () => void {
      const client = EventStoreDBClient.prototype as unknown as { readonly capabilities: Promise<unknown> }
      const { get } = Object.getOwnPropertyDescriptor(client, 'capabilities')!
      const { opened: held, open: goOn } = gate()
      const spy = vi.spyOn(client, 'capabilities', 'get')
      spy.mockImplementationOnce(function (this: unknown) {
        const answer = get!.call(this)
        return held.then(() => answer)
      })
      onTestFinished(async () => void spy.mockRestore())
      return goOn
    }

    test('a call that gets its stream only then disturbs none that are sent after it', async () => {
      const server = await startEventStore()
      onTestFinished(() => server.stop())
      const clients = vi.spyOn(EventStoreDBClient, 'connectionString')
      const appends = new Appends(server.url)
      const told = vi.spyOn(clients.mock.results[0]!.value as EventStoreDBClient, 'dispose')
      clients.mockRestore()
      onTestFinished(() => appends.close())
      const append = () =>
        appends.append({
          stream: aStream(),
          revision: -1,
          events: [jsonEvent({ type: 'A', data: {} })],
          bytes: 2,
        })
      /** Begins an append; where it is sent at once, its time is over. */
      const giveUp = async (given: () => Promise<unknown>) => {
        vi.useFakeTimers({ toFake: ['setTimeout'] })
        const append = given()
        vi.advanceTimersByTime(LIMIT_MS)
        vi.useRealTimers()
        return append
      }
      const goOn = holdFirstCall()
      await expect(giveUp(append)).rejects.toThrow(EventStoreUnavailable)

      let isAnswered = false
      const second = append().finally(() => {
        isAnswered = true
      })
      // it waits for the end of the first one, whose connection is told to again and again; were it sent, it is answered
      await expect.poll(() => isAnswered || told.mock.calls.length > 2).toBe(true)
      server.freeze()
      goOn()
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
      const third = giveUp(append)
      third.catch(() => undefined)
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
      server.thaw()
      // what comes for the first one where another stream has failed, the client throws where nobody can catch it
      await expect(Promise.all([second, third])).resolves.toHaveLength(2)
      await expect(append()).resolves.toMatchObject({ revision: 0 })
    })
  },
)
