import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Asks, asksOf, bareAsks, startBareExpress } from '../asks.ts'
import type { Effort } from '../effort.ts'
import { type Ask, sendLoad } from '../load.ts'
import type { Row } from '../report.ts'
import { POPULATION } from '../reports.ts'
import { type BenchServer, startService } from '../servers.ts'
import { inTurns, type Round } from '../statistics.ts'

const ROUNDS = 3
const CONNECTIONS = 1_000
const SECONDS = 10
const WARM_UP_SECONDS = 6

/** How long the slowest answers take where far more callers come at once than can be served. */
export async function measureManyConnections(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const service = await startService({
    DATA_DIR: dataDir,
    DATABASE_URL: await server.createDatabase('many_connections'),
    LOG_LEVEL: 'info',
  })
  const bare = await startBareExpress(server, 'many_connections')
  try {
    const people = effort.amount(POPULATION)
    const ours = await asksOf(service.ready, people)
    const theirs = bareAsks(bare.ready.bareExpress, people)
    const slowest =
      (ask: Ask): Round =>
      async () => {
        const load = { asks: [ask], connections: CONNECTIONS, warmUp: WARM_UP_SECONDS, mayBeRefused: true }
        const { p99, p50, served, refused, lost } = await sendLoad({
          ...load,
          length: { seconds: effort.seconds(SECONDS) },
        })
        return { value: p99, p50, served, refused, lost }
      }
    const rows: Row[] = []
    for (const [work, name, peerWork] of [
      ['report of 3 employees', 'report', 'one insert'],
      ['file status read', 'status', 'one indexed read'],
    ] satisfies [string, keyof Asks, string][]) {
      const figures = await inTurns(effort.rounds(ROUNDS), {
        ours: slowest(ours[name]),
        bare: slowest(theirs[name]),
      })
      rows.push({
        work: `${work}, ${CONNECTIONS.toLocaleString('en-US')} connections, p99 of what is served`,
        unit: 'ms',
        ours: figures.ours,
        peer: { name: `bare Express, ${peerWork}`, rounds: figures.bare },
        target: { kind: 'at most', ratio: 3 },
      })
    }
    return rows
  } finally {
    await Promise.all([service.stop(), bare.stop()])
    await rm(dataDir, { recursive: true, force: true })
  }
}
