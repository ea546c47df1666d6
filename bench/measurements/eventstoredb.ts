import { randomUUID } from 'node:crypto'
import { startEventStore } from '../eventstoredb-server.ts'
import { openBareEventStore } from '../peers/bare-eventstoredb.ts'
import { perSecond, type Row } from '../report.ts'
import { type BenchServer, openOurLog } from '../servers.ts'
import { eachInTurns, median, medianRatio, throughput } from '../statistics.ts'
import { encodedEvents, idOf } from '../timesheets.ts'
import { catchUp, EVENTS, fill, type LogPlace, STREAMS } from './catching-up.ts'

const ROUNDS = { appending: 7, catchingUp: 5 }

/** Appends of one moment; `length` is how many appends a stream gets, each at the revision that the last one left. */
interface Load {
  readonly work: string
  readonly atOnce: number
  readonly size: number
  readonly length: number
  readonly streams: number
}

const LOADS: readonly Load[] = [
  { work: 'one event to a new stream', atOnce: 32, size: 1, length: 1, streams: 8_000 },
  { work: 'one event to a new stream', atOnce: 256, size: 1, length: 1, streams: 12_000 },
  { work: '10 events to a new stream', atOnce: 32, size: 10, length: 1, streams: 2_000 },
  { work: '10 events to a new stream', atOnce: 256, size: 10, length: 1, streams: 3_000 },
  { work: 'one event, 5 times to a stream', atOnce: 256, size: 1, length: 5, streams: 2_400 },
]

/** The event log in EventStoreDB against that server's own client, and against the event log in PostgreSQL. */
export async function measureEventStoreDB(server: BenchServer): Promise<Row[]> {
  const eventStore = await startEventStore()
  if (!eventStore) {
    process.stderr.write(
      ' append and catch-up on EventStoreDB are left out: there is neither TEST_EVENTSTORE_URL nor eventstored or kurrentd on the PATH;',
    )
    return []
  }
  try {
    const eventStoreUrl = eventStore.url
    const here = { url: await server.createDatabase('eventstoredb'), eventStoreUrl }
    const postgres = { url: await server.createDatabase('instead_of_eventstoredb') }
    // first, while the log holds nothing else
    const rows = await measureCatchingUp(here, postgres)
    for (const load of LOADS) rows.push(...(await measureAppends(load, here, postgres)))
    return rows
  } finally {
    await eventStore.stop()
  }
}

async function measureCatchingUp(here: Required<LogPlace>, postgres: LogPlace): Promise<Row[]> {
  const all = STREAMS * EVENTS
  await fill(here)
  await fill(postgres)
  const readLog = async () => {
    const bare = openBareEventStore(here.eventStoreUrl)
    const started = performance.now()
    await bare.readLog(all)
    const elapsed = performance.now() - started
    await bare.close()
    return (all / elapsed) * 1000
  }
  const rate = async (place: LogPlace, table: string) => (all / (await catchUp(place, table))) * 1000
  await rate(here, 'warm_up')
  await rate(postgres, 'warm_up')
  await readLog()
  const rates = await eachInTurns(ROUNDS.catchingUp, {
    ours: (round) => rate(here, `round_${round}`),
    bare: readLog,
    postgres: (round) => rate(postgres, `round_${round}`),
  })
  const work = `EventStoreDB: catch-up of ${all.toLocaleString('en-US')} events, one row for each of ${STREAMS.toLocaleString('en-US')} streams`
  return rowsOf(work, rates, 'subscribeToAll of the bare client', 0.6)
}

async function measureAppends(load: Load, here: Required<LogPlace>, postgres: LogPlace): Promise<Row[]> {
  const { size, length } = load
  /** @returns events per second. */
  const run = async (
    share: number,
    append: (id: string, count: number, revision: number) => Promise<unknown>,
  ): Promise<number> => {
    // ids are made outside the time taken
    const ids = Array.from({ length: Math.ceil(load.streams * share) }, () => idOf(randomUUID()))
    const streams = await throughput(ids.length, load.atOnce, async (index) => {
      for (let n = 0; n < length; n += 1) await append(ids[index]!, size, n * size - 1)
    })
    return streams * length * size
  }
  // opened for its turn only: it follows the log, and what others append to it is not its work
  const through = async ({ url, eventStoreUrl }: LogPlace, share = 1): Promise<number> => {
    const { log, close } = await openOurLog(url, eventStoreUrl)
    const rate = await run(share, (id, count, revision) =>
      log.append(
        `timesheet-${id}`,
        revision < 0 ? 'noStream' : { exactly: revision },
        encodedEvents(id, count, revision + 1),
      ),
    )
    await close()
    return rate
  }
  const bare = openBareEventStore(here.eventStoreUrl)
  try {
    await through(here, 0.25)
    await run(0.25, bare.append)
    await through(postgres, 0.25)
    const rates = await eachInTurns(ROUNDS.appending, {
      ours: () => through(here),
      bare: () => run(1, bare.append),
      postgres: () => through(postgres),
    })
    const work = `EventStoreDB: append of ${load.work}, ${load.atOnce} at once; events`
    return rowsOf(work, rates, 'the bare client', 0.85)
  } finally {
    await bare.close()
  }
}

/** Ours against the bare client, which it has to come near to, and against PostgreSQL. */
function rowsOf(
  work: string,
  { ours, bare, postgres }: Readonly<Record<'ours' | 'bare' | 'postgres', readonly number[]>>,
  bareName: string,
  atLeast: number,
): Row[] {
  const common = { work, ours: perSecond(median(ours)) }
  return [
    {
      ...common,
      peer: { name: bareName, value: perSecond(median(bare)) },
      target: { kind: 'at least', ratio: atLeast, unit: 'percent' },
      ratio: medianRatio(ours, bare),
    },
    {
      ...common,
      peer: { name: 'the same on PostgreSQL', value: perSecond(median(postgres)) },
      target: { kind: 'none' },
      ratio: medianRatio(ours, postgres),
    },
  ]
}
