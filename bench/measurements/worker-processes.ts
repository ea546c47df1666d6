import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Effort } from '../effort.ts'
import { startEventStore, startNats } from '../engines.ts'
import type { Row } from '../report.ts'
import { reportBody } from '../reports.ts'
import {
  type BenchServer,
  OPERATOR_TOKEN,
  type Participants,
  type ServiceAddresses,
  type StartedProcess,
  seedParticipants,
  startService,
} from '../servers.ts'
import { inTurns } from '../statistics.ts'

const ROUNDS = 5
const FILES = 8
const ROWS_PER_FILE = 10_000
/** For each process of a round, before it is measured. */
const WARM_UP_FILES = 2
const LOOK_MS = 20

/** What a second and a fourth worker process are worth, on both engines. */
export async function measureWorkerProcesses(server: BenchServer, effort: Effort): Promise<Row[]> {
  const nats = await startNats()
  if (nats === null) {
    process.stderr.write(' skipped, there is no NATS server;')
    return []
  }
  try {
    const rows = await measureOn('PostgreSQL', effort, 1.2, {
      DATABASE_URL: await server.createDatabase('worker_processes'),
      NATS_URL: nats.url,
    })
    const eventStore = await startEventStore()
    if (eventStore === null) {
      process.stderr.write(' EventStoreDB skipped, there is none;')
      return rows
    }
    try {
      const more = await measureOn('EventStoreDB', effort, 1.6, {
        DATABASE_URL: await server.createDatabase('worker_processes_eventstoredb'),
        NATS_URL: nats.url,
        EVENTSTORE_URL: eventStore.url,
      })
      return [...rows, ...more]
    } finally {
      await eventStore.stop()
    }
  } finally {
    await nats.stop()
  }
}

/** @param atLeast times what one process does, by two. */
async function measureOn(
  engine: string,
  effort: Effort,
  atLeast: number,
  env: Readonly<Record<string, string>>,
): Promise<Row[]> {
  const fleet = await openFleet(env)
  const files = effort.amount(FILES)
  try {
    const workOff = (workers: number) => async () => {
      const processes: StartedProcess<ServiceAddresses>[] = []
      for (let n = 0; n < workers; n += 1) processes.push(await fleet.startWorker())
      await fleet.workOff(effort.amount(WARM_UP_FILES * workers))
      const ms = await fleet.workOff(files)
      await Promise.all(processes.map((each) => each.stop()))
      return { value: (files * ROWS_PER_FILE * 1000) / ms }
    }
    const figures = await inTurns(effort.rounds(ROUNDS), {
      one: workOff(1),
      two: workOff(2),
      four: workOff(4),
    })
    const row = (name: 'two' | 'four', target: Row['target']): Row => ({
      work: `${files} files of ${ROWS_PER_FILE.toLocaleString('en-US')} rows on ${engine} by ${name} worker processes`,
      unit: 'rows per second',
      ours: figures[name],
      peer: { name: 'by one', rounds: figures.one },
      target,
    })
    return [row('two', { kind: 'at least', ratio: atLeast, unit: 'times' }), row('four', { kind: 'none' })]
  } finally {
    await fleet.close()
  }
}

/** An installation whose workers are started and stopped; everything else is one process in front of them. */
interface Fleet {
  startWorker(): Promise<StartedProcess<ServiceAddresses>>
  /**
   * Stores so many files while the pipeline is held, then lets go and waits until the workers have done them all.
   * Read models stand still meanwhile. @returns the milliseconds from letting go on.
   */
  workOff(files: number): Promise<number>
  close(): Promise<void>
}

async function openFleet(given: Readonly<Record<string, string>>): Promise<Fleet> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const env = {
    DATA_DIR: dataDir,
    MASTER_KEY: randomBytes(32).toString('base64'),
    // faults, with which the backlog is held back, are for the virtual clock alone
    CLOCK: 'virtual',
    NODE_ENV: '',
    ...given,
  }
  const front = await startService({ ...env, ROLES: 'api,projector' })
  const who = await seedParticipants(front.ready)
  const projections = ((await ask(front.ready, '/projections')) as { name: string }[]).map(({ name }) => name)
  let sent = 0
  return {
    startWorker: () => startService({ ...env, ROLES: 'worker' }),
    async workOff(files) {
      const operate = (path: string, body: object) => ask(front.ready, path, body)
      const all = (verb: string) =>
        Promise.all(projections.map((name) => operate(`/projections/${name}/${verb}`, {})))
      await operate('/faults', { point: 'pipeline', mode: 'hold' })
      for (let n = 0; n < files; n += 1) {
        sent += 1
        await submit(front.ready, who, sent)
      }
      await operate('/drain', { timeout_seconds: 120 })
      await all('pause')
      const started = performance.now()
      await operate('/faults', { point: 'pipeline', times: 0 })
      while (!(await isWorkDone(front.ready))) await delay(LOOK_MS)
      const took = performance.now() - started
      await all('resume')
      await operate('/drain', { timeout_seconds: 120 })
      return took
    },
    async close() {
      await front.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function ask({ ops }: ServiceAddresses, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${ops}/ops/v1${path}`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return ((await response.json()) as { data: unknown }).data
}

async function isWorkDone(addresses: ServiceAddresses): Promise<boolean> {
  const { counts } = (await ask(addresses, '/work')) as {
    counts: Record<'due' | 'leased' | 'failed', number>
  }
  if (counts.failed > 0) throw new Error('Work failed')
  return counts.due + counts.leased === 0
}

async function submit({ core }: ServiceAddresses, who: Participants, file: number): Promise<void> {
  // people who were reported before: their keys are there, and what is measured is the pipeline
  const employees = Array.from({ length: ROWS_PER_FILE }, (_, n) => ({
    employee_id: `worker-${n}`,
    first_name: `First${n % 97}`,
    last_name: `Last${n % 1009}`,
    class_code: '8810',
    state: 'CA',
    gross_wages: 1500 + ((n + file) % 4000) / 4,
  }))
  const response = await fetch(`${core}/api/v1/payroll/reports`, {
    method: 'POST',
    headers: { ...who.clientHeaders, 'content-type': 'application/json' },
    body: reportBody(who, employees, { start_date: '2026-07-01', end_date: '2026-09-30' }),
  })
  if (!response.ok) throw new Error(`The report was answered ${response.status}: ${await response.text()}`)
}
