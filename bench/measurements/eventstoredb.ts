import { randomUUID } from 'node:crypto'
import type { Effort } from '../effort.ts'
import { startEventStore } from '../engines.ts'
import { type LogPlace, openOurLog } from '../our-log.ts'
import { catchUp } from '../our-projection.ts'
import { openBareEventStore } from '../peers/bare-eventstoredb.ts'
import type { Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { type Figure, inTurns, throughput } from '../statistics.ts'
import { idOf } from '../timesheets.ts'
import { fill } from './catching-up.ts'

const ROUNDS = { appending: 7, catchingUp: 5 }
/** As in real logs: the events of a stream are spread over the log. */
const LAYOUT = { streams: 5_000, events: 20, interleaved: true }

/** Appends of one moment; `length` is how many appends a stream gets, each at the revision that the last one left. */
interface Load {
  readonly work: string
  readonly atOnce: number
  readonly size: number
  readonly length: number
  readonly streams: number
}

const LOADS: readonly Load[] = [
  { work: 'one event to a new stream', atOnce: 1, size: 1, length: 1, streams: 500 },
  { work: 'one event to a new stream', atOnce: 16, size: 1, length: 1, streams: 4_000 },
  { work: 'one event to a new stream', atOnce: 32, size: 1, length: 1, streams: 8_000 },
  { work: 'one event to a new stream', atOnce: 256, size: 1, length: 1, streams: 12_000 },
  { work: '10 events to a new stream', atOnce: 32, size: 10, length: 1, streams: 2_000 },
  { work: '10 events to a new stream', atOnce: 256, size: 10, length: 1, streams: 3_000 },
  { work: 'one event, 5 times to a stream', atOnce: 256, size: 1, length: 5, streams: 2_400 },
]

/** The event log in EventStoreDB against that server's own client, and against the event log in PostgreSQL. */
export async function measureEventStoreDB(server: BenchServer, effort: Effort): Promise<Row[]> {
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
    const rows = await measureCatchingUp(effort, here, postgres)
    for (const load of LOADS) rows.push(...(await measureAppends(effort, load, here, postgres)))
    return rows
  } finally {
    await eventStore.stop()
  }
}

async function measureCatchingUp(
  effort: Effort,
  here: Required<LogPlace>,
  postgres: LogPlace,
): Promise<Row[]> {
  const layout = { ...LAYOUT, streams: effort.amount(LAYOUT.streams) }
  const all = layout.streams * layout.events
  await fill(here, layout)
  await fill(postgres, layout)
  const figure = (elapsed: number): Figure => ({ value: (all / elapsed) * 1000 })
  const readLog = async () => {
    const bare = openBareEventStore(here.eventStoreUrl)
    const started = performance.now()
    await bare.readLog(all)
    const elapsed = performance.now() - started
    await bare.close()
    return figure(elapsed)
  }
  await catchUp(here, 'warm_up', layout)
  await catchUp(postgres, 'warm_up', layout)
  await readLog()
  const figures = await inTurns(effort.rounds(ROUNDS.catchingUp), {
    ours: async (round) => figure(await catchUp(here, `round_${round}`, layout)),
    bare: readLog,
    postgres: async (round) => figure(await catchUp(postgres, `round_${round}`, layout)),
  })
  const work = `EventStoreDB: catch-up of ${all.toLocaleString('en-US')} events, interleaved, one row for each of ${layout.streams.toLocaleString('en-US')} streams`
  return rowsOf(work, figures, 'subscribeToAll of the bare client', 0.7)
}

async function measureAppends(
  effort: Effort,
  load: Load,
  here: Required<LogPlace>,
  postgres: LogPlace,
): Promise<Row[]> {
  const { size, length } = load
  /** @returns events per second. */
  const run = async (
    share: number,
    append: (id: string, count: number, revision: number) => Promise<unknown>,
  ): Promise<Figure> => {
    // ids are made outside the time taken
    const streams = Math.ceil(effort.amount(load.streams) * share)
    const ids = Array.from({ length: streams }, () => idOf(randomUUID()))
    const pace = await throughput(streams, load.atOnce, async (index) => {
      for (let n = 0; n < length; n += 1) await append(ids[index]!, size, n * size - 1)
    })
    const value = pace.value * length * size
    return length === 1 ? { ...pace, value } : { value }
  }
  // opened for its turn only: it follows the log, and what others append to it is not its work
  const through = async (place: LogPlace, share = 1): Promise<Figure> => {
    const { append, close } = await openOurLog(place)
    const figure = await run(share, append)
    await close()
    return figure
  }
  const bare = openBareEventStore(here.eventStoreUrl)
  try {
    await through(here, 0.25)
    await run(0.25, bare.append)
    await through(postgres, 0.25)
    const figures = await inTurns(effort.rounds(ROUNDS.appending), {
      ours: () => through(here),
      bare: () => run(1, bare.append),
      postgres: () => through(postgres),
    })
    const work = `EventStoreDB: append of ${load.work}, ${load.atOnce} at once; events`
    return rowsOf(work, figures, 'the bare client', 0.9)
  } finally {
    await bare.close()
  }
}

/** Ours against the bare client, which it has to come near to, and against PostgreSQL. */
function rowsOf(
  work: string,
  { ours, bare, postgres }: Readonly<Record<'ours' | 'bare' | 'postgres', readonly Figure[]>>,
  bareName: string,
  atLeast: number,
): Row[] {
  const common = { work, unit: 'per second', ours } as const
  return [
    {
      ...common,
      peer: { name: bareName, rounds: bare },
      target: { kind: 'at least', ratio: atLeast, unit: 'percent' },
    },
    { ...common, peer: { name: 'the same on PostgreSQL', rounds: postgres }, target: { kind: 'none' } },
  ]
}
