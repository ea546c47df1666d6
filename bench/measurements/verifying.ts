import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Effort } from '../effort.ts'
import { readLog } from '../peers/plain-postgres.ts'
import type { Row } from '../report.ts'
import { type BenchServer, OPERATOR_TOKEN, processorTimeOf, startService } from '../servers.ts'
import { type Figure, inTurns } from '../statistics.ts'
import { fill } from './catching-up.ts'

const ROUNDS = 3
const EVENTS_OF_STREAM = 10
const PAGE = 1_000

/** `audit verify` over the whole log, against a bare loop that reads it in pages and hashes every event. */
export async function measureVerifying(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase('verifying')
  const service = await startService({ DATA_DIR: dataDir, DATABASE_URL: url })
  try {
    // the service takes no log that it does not hold the keys of
    await fill(
      { url },
      { streams: effort.logEvents / EVENTS_OF_STREAM, events: EVENTS_OF_STREAM, interleaved: true },
    )
    const busy: Figure[] = []
    const { ours, bare } = await inTurns(effort.rounds(ROUNDS), {
      ours: async () => {
        const before = await processorTimeOf(service.child.pid!)
        const started = performance.now()
        const events = await verify(service.ready.ops)
        const ms = performance.now() - started
        const spent = (await processorTimeOf(service.child.pid!)) - before
        busy.push({ value: (spent * 100_000) / events })
        return { value: (events / ms) * 1000 }
      },
      bare: async () => {
        const started = performance.now()
        const events = await readLog(url, PAGE, 'hash')
        return { value: (events / (performance.now() - started)) * 1000 }
      },
    })
    const work = `audit verify of ${effort.logEvents.toLocaleString('en-US')} events`
    return [
      {
        work,
        unit: 'per second',
        ours,
        peer: { name: 'reading the pages and hashing', rounds: bare },
        target: { kind: 'none' },
      },
      {
        work: `${work}: processor time in the service for 100,000`,
        unit: 's',
        ours: busy,
        peer: null,
        target: { kind: 'none' },
      },
    ]
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** @returns how many events were checked. @throws Error when the log is not whole. */
async function verify(ops: string): Promise<number> {
  const response = await fetch(`${ops}/ops/v1/audit/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: '{}',
  })
  const answer = (await response.json()) as Verified & { data?: Verified }
  const { verified, events } = answer.data ?? answer
  if (!verified) throw new Error(`The verification answered ${JSON.stringify(answer)}`)
  return events
}

interface Verified {
  readonly verified: boolean
  readonly events: number
}
