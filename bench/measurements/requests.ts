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

const ROUNDS = 5
const CONNECTIONS = 32
const SECONDS = 5
const WARM_UP_SECONDS = 2

/** Requests to the running service against a bare Express server on the same database server. */
export async function measureRequests(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const service = await startService({
    DATA_DIR: dataDir,
    DATABASE_URL: await server.createDatabase('requests'),
    LOG_LEVEL: 'info',
  })
  const bare = await startBareExpress(server, 'requests')
  try {
    const people = effort.amount(POPULATION)
    const ours = await asksOf(service.ready, people)
    const theirs = bareAsks(bare.ready.bareExpress, people)
    const rate = (ask: Ask): Round => roundOf(ask, effort)
    const compare = async (
      work: string,
      name: keyof Asks,
      peerWork: string,
      target: Row['target'],
    ): Promise<Row> => {
      const figures = await inTurns(effort.rounds(ROUNDS), {
        ours: rate(ours[name]),
        bare: rate(theirs[name]),
      })
      const peer = { name: `bare Express, ${peerWork}`, rounds: figures.bare }
      return { work, unit: 'per second', ours: figures.ours, peer, target }
    }
    const atLeast = (ratio: number) => ({ kind: 'at least', ratio, unit: 'percent' }) as const
    return [
      await compare('file status read', 'status', 'one indexed read', atLeast(0.8)),
      await compare('tool call: validate 3 rows', 'toolCall', 'parsing and answering', atLeast(0.5)),
      await compare('report of 3 employees', 'report', 'one insert', atLeast(0.5)),
      await compare(
        'report of 3 employees with an Idempotency-Key of its own',
        'keyedReport',
        'one insert',
        atLeast(0.45),
      ),
      await compare('report of 3 employees never reported before', 'newPeople', 'one insert', {
        kind: 'none',
      }),
    ]
  } finally {
    await Promise.all([service.stop(), bare.stop()])
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** A load of one kind of request over the usual connections. @returns figures per second, with latencies. */
export function roundOf(ask: Ask, effort: Effort): Round {
  return async () => {
    const seconds = effort.seconds(SECONDS)
    const load = { asks: [ask], connections: CONNECTIONS, warmUp: effort.seconds(WARM_UP_SECONDS) }
    const { value, p50, p99 } = await sendLoad({ ...load, length: { seconds } })
    return { value, p50, p99 }
  }
}
