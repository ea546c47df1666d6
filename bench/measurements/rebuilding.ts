import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { asksOf } from '../asks.ts'
import type { Effort } from '../effort.ts'
import { sendLoad } from '../load.ts'
import { openOurLog } from '../our-log.ts'
import type { Row } from '../report.ts'
import { type BenchServer, OPERATOR_TOKEN, processorTimeOf, startService } from '../servers.ts'
import { type Figure, throughput } from '../statistics.ts'
import { idOf } from '../timesheets.ts'

const ROUNDS = 3
const CONNECTIONS = 16
const SECONDS = 5
const PROJECTION = 'payroll-files'
const LIMIT_MS = 600_000
const LOOK_MS = 100

interface Status {
  readonly generation: number
  readonly rebuild: unknown
}

/**
 * A rebuild of the files' read model, with comparison and switch, while connections read the status of files at half of the
 * rate that they reach alone.
 */
export async function measureRebuilding(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase('rebuilding')
  const service = await startService({ DATA_DIR: dataDir, DATABASE_URL: url })
  const { ops } = service.ready
  const projection = `${ops}/ops/v1/projections/${PROJECTION}`
  try {
    const { status } = await asksOf(service.ready, 99)
    const events = await copyFile(url, fileIdOf(status), effort.logEvents)
    await reached(`${ops}/ops/v1/projections`)
    const seconds = effort.seconds(SECONDS)
    const load = { asks: [status], connections: CONNECTIONS, warmUp: 1 }
    const { value: most } = await sendLoad({ ...load, length: { seconds } })
    const paced = { ...load, perSecond: most / 2 }
    const rates: Figure[] = []
    const alone: Figure[] = []
    const beside: Figure[] = []
    const busy: Figure[] = []
    for (let n = 0; n < effort.rounds(ROUNDS); n += 1) {
      const quiet = await sendLoad({ ...paced, length: { seconds } })
      const before = await processorTimeOf(service.child.pid!)
      const rebuilt = rebuild(projection)
      // reads until the rebuild has answered, and a little longer, warmed up like those without it
      const reads: Awaited<ReturnType<typeof sendLoad>>[] = []
      let isOver = false
      const ended = rebuilt.finally(() => {
        isOver = true
      })
      while (!isOver) reads.push(await sendLoad({ ...paced, length: { seconds: 2 } }))
      const ms = await ended
      const spent = (await processorTimeOf(service.child.pid!)) - before
      busy.push({ value: (spent * 100_000) / events })
      rates.push({ value: (events / ms) * 1000 })
      alone.push({ value: quiet.p99 })
      beside.push({ value: Math.max(...reads.map(({ p99 }) => p99)) })
    }
    const work = `rebuild of ${events.toLocaleString('en-US')} events with comparison and switch, ${CONNECTIONS} connections reading at half their rate`
    return [
      {
        work,
        unit: 'per second',
        ours: rates,
        peer: null,
        target: { kind: 'none' },
        note: `${Math.round(most / 2)} reads/s`,
      },
      {
        work: `${work}: processor time in the service for 100,000 events, reads included`,
        unit: 's',
        ours: busy,
        peer: null,
        target: { kind: 'none' },
      },
      {
        work: `${work}: p99 of the readers`,
        unit: 'ms',
        ours: beside,
        peer: { name: 'the same reads without a rebuild', rounds: alone },
        target: { kind: 'at most', ratio: 1.5 },
      },
    ]
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

function fileIdOf(status: Awaited<ReturnType<typeof asksOf>>['status']): string {
  if (status.kind !== 'get') throw new Error('A status is not read by GET')
  return status.urls[0]!.split('/').at(-1)!
}

/** Appends the events of a file again and again, each time as another file. @returns how many events it was. */
async function copyFile(url: string, fileId: string, wanted: number): Promise<number> {
  const { log, close } = await openOurLog({ url })
  try {
    const { events: some } = await log.readAll({ after: 0n, maxCount: 5_000 })
    const stream = some.find((one) => one.stream.endsWith(`-${fileId}`))!.stream
    const stored = await log.readStream(stream, { maxCount: 100 })
    const files = Math.ceil(wanted / stored.length)
    await throughput(files, 256, (n) => {
      const id = idOf(`copy ${n}`)
      const copies = stored.map(({ type, data, metadata }) => ({
        type,
        data: data.replaceAll(fileId, id),
        metadata: metadata.replace(/,"hash":"[0-9a-f]{64}"\}$/, '}'),
      }))
      return log.append(stream.replace(fileId, id), -1, copies)
    })
    return files * stored.length
  } finally {
    await close()
  }
}

async function ask<Answer>(url: string, method = 'GET'): Promise<Answer> {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } })
  const answer = (await response.json()) as { data?: Answer }
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${JSON.stringify(answer)}`)
  return answer.data ?? (answer as Answer)
}

interface Followed {
  readonly lag: { readonly events: number }
}

/** Resolves when all read models are at the end of the log. */
async function reached(projections: string): Promise<void> {
  const limit = performance.now() + LIMIT_MS
  const isThere = ({ lag }: Followed) => lag.events === 0
  for (;;) {
    const answer = await ask<readonly Followed[]>(projections)
    if (answer.every(isThere)) return
    if (performance.now() > limit) throw new Error('The read models did not catch up')
    await delay(LOOK_MS)
  }
}

/** @returns milliseconds until the rebuilt tables answer. */
async function rebuild(projection: string): Promise<number> {
  const { generation } = await ask<Status>(projection)
  const started = performance.now()
  await ask(`${projection}/rebuild`, 'POST')
  for (;;) {
    const now = await ask<Status>(projection)
    if (now.generation !== generation) return performance.now() - started
    if (now.rebuild === null) throw new Error('The rebuild ended without a switch')
    if (performance.now() - started > LIMIT_MS) throw new Error('The rebuild did not switch')
    await delay(LOOK_MS)
  }
}
