// @module-tag once: it has the log that it needs itself
// @module-tag long: contract/eventstoredb-outages has it for each call
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { CommandHandler } from '../../application/command-handling/command-handler.ts'
import { EventRegistry } from '../../application/event-registry.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import {
  backoff,
  on as onEvent,
  perform,
  processManager,
  work,
} from '../../application/process-managers/runtime/process-manager.ts'
import { ProcessManagerRunner } from '../../application/process-managers/runtime/runner.ts'
import { integer, table, text } from '../../application/read-models/table.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import { type EventOf, eventType } from '../../domain/kernel/event-type.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { InProcessNotices } from '../../infrastructure/messaging/in-process/notices.ts'
import { InProcessWorkQueue } from '../../infrastructure/messaging/in-process/work-queue.ts'
import { HeldLeases, PostgresLeaseStore } from '../../infrastructure/ownership/leases.ts'
import { PostgresProjectionStore } from '../../infrastructure/read-models/projection-store.ts'
import { PostgresWorkStore } from '../../infrastructure/work/work-store.ts'
import { projection } from '../../projections/runtime/projection.ts'
import { Projections } from '../../projections/runtime/projections.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../support/eventstoredb.ts'
import { deadlinesOfTheProduct } from '../support/technical-deadlines.ts'
import { QUICK, until } from '../support/workbench.ts'

deadlinesOfTheProduct()

// parcels: each is sent, and one who reacts to that delivers it
const ParcelSent = eventType({
  name: 'ParcelSent',
  schema: z.object({ parcel: z.string(), lane: z.string() }),
})
const ParcelDelivered = eventType({ name: 'ParcelDelivered', schema: z.object({ parcel: z.string() }) })
type ParcelEvent = EventOf<typeof ParcelSent | typeof ParcelDelivered>
const parcel: Decider<null, ParcelEvent, ParcelEvent> = {
  category: 'parcel',
  events: [ParcelSent, ParcelDelivered],
  initialState: null,
  evolve: () => null,
  decide: (command) => [command],
}

/** Counts, so that an event that was applied twice shows. */
const lanes = projection({
  name: 'lanes',
  version: 1,
  tables: [table('lanes', { key: ['lane'], columns: { lane: text(), sent: integer() } })],
  handlers: (on) => [
    on(ParcelSent, {
      reads: ({ data }) => ({ lanes: [[data.lane]] }),
      apply({ data }, { lanes }) {
        lanes.put({ lane: data.lane, sent: (lanes.get(data.lane)?.sent ?? 0) + 1 })
      },
    }),
  ],
})

const LANES = 10
const LIMIT_MS = 240_000
const source = await findEventStore()

describe.skipIf(!source || source.kind === 'given')(
  'while the server of the log is killed and comes back',
  () => {
    let server: EventStoreServer
    let testDatabase: TestDatabase
    let database: Database
    let log: EventLog
    let commands: CommandHandler
    const registry = new EventRegistry([parcel])
    const cleanups: (() => Promise<unknown>)[] = []

    beforeEach(async () => {
      server = await startEventStore({ keepsData: true })
      cleanups.unshift(() => server.stop())
      testDatabase = await createTestDatabase()
      cleanups.unshift(() => testDatabase.drop())
      database = await openDatabase({ url: testDatabase.url })
      cleanups.unshift(() => database.close())
      log = await openEventStoreEventLog({ url: server.url, patienceMs: 40_000 })
      cleanups.unshift(() => log.close())
      commands = new CommandHandler(log, registry, systemClock)
    })
    afterEach(async () => {
      for (const work of cleanups.splice(0)) await work()
    })
    const leases = () =>
      new HeldLeases(new PostgresLeaseStore(database.pool), { owner: randomUUID(), ttlMs: 5_000 })

    async function happen(event: ParcelEvent, commandId: string = randomUUID()): Promise<bigint> {
      const context = { actor: { type: 'system', id: 'test' }, tenantId: null, environment: null } as const
      const done = await commands.execute(parcel, event.data.parcel, event, {
        ...context,
        correlationId: 'test',
        commandId,
      })
      if (isRejection(done)) throw new Error(done.message)
      return done.position ?? 0n
    }

    /** Sends parcels on all lanes while the server is killed and restarted twice. @returns how many on each lane. */
    async function sendThroughOutages(): Promise<{
      sent: Map<string, number>
      names: string[]
      last: bigint
    }> {
      const sent = new Map<string, number>()
      const names: string[] = []
      let last = 0n
      let running = true
      const sending = Promise.all(
        Array.from({ length: LANES }, async (_, n) => {
          const lane = `lane-${n}`
          while (running) {
            const name = randomUUID()
            const position = await happen(ParcelSent.of({ parcel: name, lane }))
            names.push(name)
            sent.set(lane, (sent.get(lane) ?? 0) + 1)
            if (position > last) last = position
          }
        }),
      )
      sending.catch(() => undefined)
      try {
        for (let round = 0; round < 2; round += 1) {
          const before = names.length
          await until(() => names.length > before + 50, LIMIT_MS)
          await server.kill()
          await server.restart()
        }
        const before = names.length
        await until(() => names.length > before + 50, LIMIT_MS)
      } finally {
        running = false
      }
      await sending
      return { sent, names, last }
    }

    test('a projection applies every event once, by itself', { timeout: 2 * LIMIT_MS }, async () => {
      const projections = new Projections({
        projections: [lanes],
        log,
        registry,
        clock: systemClock,
        retryMs: 20,
        store: new PostgresProjectionStore(database),
        leases: leases(),
      })
      await projections.start()
      cleanups.unshift(() => projections.stop())
      const { sent, last } = await sendThroughOutages()
      expect(await projections.reached(['lanes'], last, { timeoutMs: LIMIT_MS })).toBe(true)
      const { rows } = await database.pool.query<{ lane: string; sent: number }>(
        'SELECT lane, sent FROM read_model.lanes ORDER BY lane',
      )
      expect(new Map(rows.map(({ lane, sent }) => [lane, sent]))).toEqual(new Map([...sent].sort()))
      expect((await projections.list())[0]).toMatchObject({ state: 'active', failure: null })
    })

    test('a process manager reacts to every event once, by itself', { timeout: 2 * LIMIT_MS }, async () => {
      const deliveries: string[] = []
      const couriers = processManager({
        name: 'couriers',
        startAt: 'beginning',
        on: [onEvent(ParcelSent, ({ data }) => [perform('deliver', data.parcel, {})])],
        work: {
          deliver: work(
            { payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 },
            async ({ key, commandId }) => {
              deliveries.push(key)
              await happen(ParcelDelivered.of({ parcel: key }), commandId)
              return { outcome: 'done' }
            },
          ),
        },
      })
      const store = new PostgresWorkStore(database.pool)
      const runner = new ProcessManagerRunner(
        {
          log,
          registry,
          clock: systemClock,
          store,
          leases: leases(),
          notices: new InProcessNotices(),
          queue: new InProcessWorkQueue(),
          report: () => undefined,
        },
        [couriers],
        // work waits for the server as long as it takes
        { ...QUICK, workLeaseMs: 10_000 },
      )
      await runner.start()
      cleanups.unshift(() => runner.stop())
      const { names } = await sendThroughOutages()
      const done = async () => {
        const { due, leased, later } = await store.counts({ now: systemClock.now() })
        return new Set(deliveries).size >= names.length && due + leased + later === 0
      }
      await until(done, LIMIT_MS)
      expect(deliveries.toSorted()).toEqual(names.toSorted())
      for (const name of names) {
        const events = await log.readStream(`parcel-${name}`)
        expect(events.map(({ type }) => type)).toEqual(['ParcelSent', 'ParcelDelivered'])
      }
      expect(await store.counts({ now: systemClock.now() })).toMatchObject({ failed: 0 })
    })
  },
)
