import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { EventRegistry } from '../../application/commands/event-registry.ts'
import { backoff, work } from '../../application/followers/process-manager.ts'
import { ProcessManagerRunner } from '../../application/followers/runner.ts'
import type { WorkQueue } from '../../application/ports/work-queue.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { InProcessNotices } from '../../infrastructure/messaging/in-process/notices.ts'
import { InProcessWorkQueue } from '../../infrastructure/messaging/in-process/work-queue.ts'
import { Nats } from '../../infrastructure/messaging/nats/connection.ts'
import { JetStreamWorkQueue } from '../../infrastructure/messaging/nats/work-queue.ts'
import { HeldLeases } from '../../infrastructure/ownership/leases.ts'
import { PostgresWorkStore } from '../../infrastructure/work/work-store.ts'
import type { Effort } from '../effort.ts'
import { startNats } from '../engines.ts'
import { openOurLog } from '../our-log.ts'
import type { Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { type Figure, inTurns, median, percentile } from '../statistics.ts'

const ROUNDS = 5
/** How many in a round, and how long before each at the most, in milliseconds. */
const BY_NATS = { count: 100, upTo: 50 }
/** At any moment between two looks. */
const POLL_MS = 1_000
const BY_POLLING = { count: 15, upTo: POLL_MS }

/** What NATS is worth between processes. */
export async function measureWakingUp(server: BenchServer, effort: Effort): Promise<Row[]> {
  const nats = await startNats()
  if (nats === null) {
    process.stderr.write(' skipped, there is no NATS server;')
    return []
  }
  try {
    return [await wakeUps(server, effort, nats.url)]
  } finally {
    await nats.stop()
  }
}

/** From the commit of a piece of work on one connection to its start by a worker that hears of it on another. */
async function wakeUps(server: BenchServer, effort: Effort, natsUrl: string): Promise<Row> {
  const url = await server.createDatabase('waking_up')
  const { log, database, close } = await openOurLog({ url })
  const connections = await Promise.all(
    [1, 2].map(() => Nats.open([natsUrl], { info: () => undefined, warn: () => undefined })),
  )
  const [told, heard] = connections.map((connection) => new JetStreamWorkQueue(connection)) as [
    JetStreamWorkQueue,
    JetStreamWorkQueue,
  ]
  const sample = async (
    tell: WorkQueue,
    hear: WorkQueue,
    { count, upTo }: { count: number; upTo: number },
  ): Promise<Figure> => {
    const store = new PostgresWorkStore(database.pool)
    const leases = await HeldLeases.open(database, { owner: randomBytes(8).toString('hex') })
    let started: (at: number) => void = () => undefined
    const declared = { payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 }
    const deliver = work(declared, async () => {
      started(performance.now())
      return { outcome: 'done' }
    })
    const runner = new ProcessManagerRunner(
      {
        log,
        registry: new EventRegistry(aggregates),
        clock: systemClock,
        store,
        queue: hear,
        notices: new InProcessNotices(),
        leases,
        report: () => undefined,
      },
      [{ name: 'bench', startAt: 'beginning', on: [], work: { deliver } }],
      { pollMs: POLL_MS },
    )
    await runner.start()
    // stored as by another process manager, whose position does not matter
    const from = { position: await store.takeOver('bench-sender', 1), epoch: 1 }
    const times: number[] = []
    for (let n = 0; n < effort.amount(count); n += 1) {
      // a piece starts with a look, so that a random pause meets every moment between two looks alike
      await delay(Math.random() * upTo)
      const start = new Promise<number>((resolve) => {
        started = resolve
      })
      const piece = { processManager: 'bench', kind: 'deliver', key: randomUUID(), payload: {}, dueAt: 0 }
      const because = { correlationId: 'c', causationId: 'c', tenantId: null, environment: null }
      const changes = { store: [{ ...piece, ...because }], cancel: [] }
      await store.advance('bench-sender', from, from.position, changes)
      const committed = performance.now()
      await tell.offer([piece])
      times.push((await start) - committed)
    }
    await runner.stop()
    await leases.close()
    return { value: median(times), p99: percentile(times, 0.99) }
  }
  const figures = await inTurns(effort.rounds(ROUNDS), {
    nats: () => sample(told, heard, BY_NATS),
    polling: () => sample(new InProcessWorkQueue(), new InProcessWorkQueue(), BY_POLLING),
  })
  await Promise.all(connections.map((connection) => connection.close()))
  await close()
  return {
    work: 'wake-up over NATS, commit of work to its start, median of each round',
    unit: 'ms',
    ours: figures.nats,
    peer: { name: 'by looking once a second', rounds: figures.polling },
    target: { kind: 'below', value: 5 },
  }
}
