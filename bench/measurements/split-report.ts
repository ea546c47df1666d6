import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asksOf, bareAsks, startBareExpress } from '../asks.ts'
import type { Effort } from '../effort.ts'
import { startEventStore, startNats } from '../engines.ts'
import type { Row } from '../report.ts'
import { POPULATION } from '../reports.ts'
import { type BenchServer, startService } from '../servers.ts'
import { inTurns } from '../statistics.ts'
import { roundOf } from './requests.ts'

const ROUNDS = 5
const ROLES = ['projector', 'worker', 'api'] as const

/**
 * Small reports of other people each time to an installation of three processes on EventStoreDB and NATS, against bare
 * Express with one insert and against the one process by default.
 */
export async function measureSplitReport(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const ends: (() => Promise<void>)[] = []
  try {
    const nats = await startNats()
    if (nats) ends.push(nats.stop)
    const eventStore = nats && (await startEventStore())
    if (!eventStore) {
      process.stderr.write(' skipped, there is no NATS or EventStoreDB server;')
      return []
    }
    ends.push(eventStore.stop)
    const start = async (env: Parameters<typeof startService>[0]) => {
      const started = await startService(env)
      ends.push(() => started.stop())
      return started.ready
    }
    const single = await start({ DATA_DIR: join(dataDir, 'single') })
    const shared = {
      DATA_DIR: join(dataDir, 'split'),
      DATABASE_URL: await server.createDatabase('split_report'),
      MASTER_KEY: randomBytes(32).toString('base64'),
      EVENTSTORE_URL: eventStore.url,
      NATS_URL: nats.url,
    }
    const split = []
    for (const role of ROLES) split.push(await start({ ...shared, ROLES: role }))
    const bare = await startBareExpress(server, 'split_report')
    ends.push(() => bare.stop())
    const people = effort.amount(POPULATION)
    const figures = await inTurns(effort.rounds(ROUNDS), {
      split: roundOf((await asksOf(split.at(-1)!, people)).report, effort),
      single: roundOf((await asksOf(single, people)).report, effort),
      bare: roundOf(bareAsks(bare.ready.bareExpress, people).report, effort),
    })
    const common = {
      work: 'report of 3 employees, EventStoreDB, NATS and three processes by role',
      unit: 'per second',
      ours: figures.split,
    } as const
    return [
      {
        ...common,
        peer: { name: 'bare Express, one insert', rounds: figures.bare },
        target: { kind: 'at least', ratio: 0.12, unit: 'percent' },
      },
      {
        ...common,
        peer: { name: 'one process, embedded', rounds: figures.single },
        target: { kind: 'none' },
      },
    ]
  } finally {
    for (const end of ends.reverse()) await end()
    await rm(dataDir, { recursive: true, force: true })
  }
}
