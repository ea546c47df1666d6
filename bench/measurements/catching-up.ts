import { EventRegistry } from '../../application/event-store.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { HeldLeases, PostgresLeaseStore } from '../../infrastructure/database/leases.ts'
import { PostgresProjectionStore } from '../../infrastructure/database/projection-store.ts'
import { Projections } from '../../projections/runtime/projections.ts'
import { openEmmett } from '../peers/emmett.ts'
import { readLog } from '../peers/plain-postgres.ts'
import { perSecond, type Row } from '../report.ts'
import { type BenchServer, openOurLog } from '../servers.ts'
import { inTurns, throughput } from '../statistics.ts'
import { encodedEvents, idOf, timesheet, timesheetsProjection } from '../timesheets.ts'

const ROUNDS = 3
export const STREAMS = 5_000
export const EVENTS = 20
/** emmett takes minutes for all of them; its rate does not depend on how many there are. */
const EMMETT_STREAMS = 250
/** What a page of the projection runtime holds. */
const PAGE = 1_000

/** A projection that catches up with a log it has not seen, one row per stream, checkpointed. */
export async function measureCatchingUp(server: BenchServer): Promise<Row[]> {
  const url = await server.createDatabase('catching_up')
  await fill({ url })
  const emmett = await openEmmett(await server.createDatabase('catching_up_emmett'))
  try {
    // one after another: what is appended side by side, its consumer may skip
    await throughput(EMMETT_STREAMS, 1, (index) => emmett.append(idOf(`stream ${index}`), EVENTS))
    const all = STREAMS * EVENTS
    await catchUp({ url }, 'warm_up')
    const rates = await inTurns(ROUNDS, {
      ours: async (round) => (all / (await catchUp({ url }, `round_${round}`))) * 1000,
      limit: async () =>
        rateOf(all, async () => {
          expect(await readLog(url, PAGE), all)
        }),
      emmett: async (round) => emmettRate(emmett, `as_shipped_${round}`),
      tuned: async (round) =>
        emmettRate(emmett, `tuned_${round}`, { batchSize: PAGE, pullingFrequencyInMs: 0 }),
    })
    const common = {
      work: `catch-up of ${all.toLocaleString('en-US')} events, one row for each of ${STREAMS.toLocaleString('en-US')} streams`,
      ours: perSecond(rates.ours),
    }
    const scaled = `of ${(EMMETT_STREAMS * EVENTS).toLocaleString('en-US')} events`
    return [
      {
        ...common,
        peer: { name: `emmett's consumer as it ships, ${scaled}`, value: perSecond(rates.emmett) },
        target: { kind: 'at least', ratio: 50, unit: 'times' },
        ratio: rates.ours / rates.emmett,
      },
      {
        ...common,
        peer: { name: `emmett's consumer, pages of ${PAGE} without pauses`, value: perSecond(rates.tuned) },
        target: { kind: 'none' },
        ratio: rates.ours / rates.tuned,
      },
      {
        ...common,
        peer: { name: 'reading the pages and JSON.parse', value: perSecond(rates.limit) },
        target: { kind: 'at least', ratio: 0.6, unit: 'percent' },
        ratio: rates.ours / rates.limit,
      },
    ]
  } finally {
    await emmett.close()
  }
}

/** Where the log is: in PostgreSQL, or in EventStoreDB with its read models in PostgreSQL. */
export interface LogPlace {
  readonly url: string
  readonly eventStoreUrl?: string
}

/** Appends the events to catch up with. */
export async function fill({ url, eventStoreUrl }: LogPlace): Promise<void> {
  const { log, close } = await openOurLog(url, eventStoreUrl)
  await throughput(STREAMS, 64, (index) => {
    const id = idOf(`stream ${index}`)
    return log.append(`timesheet-${id}`, 'noStream', encodedEvents(id, EVENTS))
  })
  await close()
}

/**
 * From starting a projection, in a process that knows nothing of the log, until its read model is at the head;
 * then checks what it counted.
 * @returns milliseconds.
 */
export async function catchUp({ url, eventStoreUrl }: LogPlace, table: string): Promise<number> {
  const { log, database, close } = await openOurLog(url, eventStoreUrl)
  const leaseStore = new PostgresLeaseStore(database.pool)
  const projection = timesheetsProjection(`timesheets_${table}`)
  const projections = new Projections({
    projections: [projection],
    log,
    registry: new EventRegistry([timesheet]),
    store: new PostgresProjectionStore(database),
    leases: new HeldLeases(leaseStore, { owner: table }),
    holders: (names) => leaseStore.holders(names),
    clock: systemClock,
  })
  let elapsed: number
  try {
    const started = performance.now()
    await projections.start({ takeOver: true })
    const reached = await projections.reached([projection.name], await log.head(), { timeoutMs: 120_000 })
    if (!reached) throw new Error('The projection did not catch up')
    elapsed = performance.now() - started
  } finally {
    await projections.stop()
  }
  const { rows } = await database.pool.query<{ timesheets: number; entries: number }>(
    `SELECT count(*)::int AS timesheets, sum(entries)::int AS entries FROM read_model.timesheets_${table}`,
  )
  expect(rows[0]!.timesheets, STREAMS)
  expect(rows[0]!.entries, STREAMS * EVENTS)
  await close()
  return elapsed
}

async function emmettRate(
  emmett: Awaited<ReturnType<typeof openEmmett>>,
  table: string,
  pulling?: { batchSize: number; pullingFrequencyInMs: number },
): Promise<number> {
  const all = EMMETT_STREAMS * EVENTS
  return rateOf(all, async () => {
    const { timesheets, entries } = await emmett.catchUp(table, pulling)
    expect(timesheets, EMMETT_STREAMS)
    expect(entries, all)
  })
}

async function rateOf(events: number, work: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await work()
  return (events / (performance.now() - started)) * 1000
}

function expect(found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${found} were counted instead of ${wanted}`)
}
