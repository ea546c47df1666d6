import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EventRegistry } from '../../application/event-store.ts'
import type { Notices } from '../../application/ports/notices.ts'
import { ProcessManagerRunner } from '../../application/process-managers/runner.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { HeldLeases, PostgresLeaseStore } from '../../infrastructure/database/leases.ts'
import { PostgresWorkStore } from '../../infrastructure/database/work-store.ts'
import { InMemoryFaults } from '../../infrastructure/faults/in-memory-faults.ts'
import { InProcessNotices } from '../../infrastructure/messaging/in-process/notices.ts'
import { Nats } from '../../infrastructure/messaging/nats/connection.ts'
import { NatsNotices } from '../../infrastructure/messaging/nats/notices.ts'
import { natsSource, startNats } from '../../tests/support/nats.ts'
import type { Row } from '../report.ts'
import { perSecond } from '../report.ts'
import {
  type BenchServer,
  OPERATOR_TOKEN,
  openOurLog,
  type Participants,
  type ServiceAddresses,
  type StartedProcess,
  seedParticipants,
  startService,
} from '../servers.ts'
import { inTurns, median } from '../statistics.ts'

const WAKE_UPS = { nats: 500, polling: 15 }
const ROUNDS = 3
const FILES = 24
/** Every process of a round works on files before it is measured. */
const WARM_UP_FILES = 8
const ROWS_PER_FILE = 2_000
const LOOK_MS = 10

/** What NATS is worth between processes, and what a second and a fourth worker process are. */
export async function measureManyProcesses(server: BenchServer): Promise<Row[]> {
  if (natsSource === null) {
    process.stderr.write(' skipped, there is no NATS server;')
    return []
  }
  const nats = await startNats()
  try {
    return [await measureWakingUp(server, nats.url), ...(await measureWorkers(server, nats.url))]
  } finally {
    await nats.stop()
  }
}

/** From the commit of a piece of work on one connection to its start by a worker that hears of it on another. */
async function measureWakingUp(server: BenchServer, natsUrl: string): Promise<Row> {
  const url = await server.createDatabase('waking_up')
  const { log, database, close } = await openOurLog(url)
  const connections = await Promise.all(
    [1, 2].map(() => Nats.open([natsUrl], { info: () => undefined, warn: () => undefined })),
  )
  const [told, heard] = connections.map((connection) => new NatsNotices(connection)) as [
    NatsNotices,
    NatsNotices,
  ]
  const sample = async (tell: Notices, hear: Notices, count: number): Promise<number[]> => {
    const store = new PostgresWorkStore(database.pool)
    let started: (at: number) => void = () => undefined
    const deliver = async () => {
      started(performance.now())
      return { outcome: 'done' } as const
    }
    const runner = new ProcessManagerRunner(
      {
        ...{ log, registry: new EventRegistry(aggregates), clock: systemClock, store, notices: hear },
        leases: new HeldLeases(new PostgresLeaseStore(database.pool), {
          owner: randomBytes(8).toString('hex'),
        }),
        faults: new InMemoryFaults(),
        report: () => undefined,
      },
      [{ name: 'bench', handles: [], react: () => [], work: { deliver } }],
    )
    await runner.start()
    const times: number[] = []
    for (let n = 0; n < count; n += 1) {
      // at all moments between two looks
      await delay((n * 37) % 50)
      const start = new Promise<number>((resolve) => {
        started = resolve
      })
      const work = { processManager: 'bench', kind: 'deliver', key: String(n), payload: {}, dueAt: 0 }
      const because = { correlationId: 'c', causationId: 'c', tenantId: null, environment: null }
      await store.change({ store: [{ ...work, ...because }], cancel: [] })
      const committed = performance.now()
      tell.wake('work')
      times.push((await start) - committed)
    }
    await runner.stop()
    return times
  }
  const byNats = await sample(told, heard, WAKE_UPS.nats)
  const byPolling = await sample(new InProcessNotices(), new InProcessNotices(), WAKE_UPS.polling)
  for (const notices of [told, heard]) notices.close()
  await Promise.all(connections.map((connection) => connection.close()))
  await close()
  const ours = median(byNats)
  const p99 = byNats.sort((a, b) => a - b)[Math.floor(byNats.length * 0.99)]!
  return {
    work: 'wake-up over NATS, commit of work to its start',
    ours: `${ours.toFixed(1)} ms`,
    peer: { name: 'by looking once a second', value: `${median(byPolling).toFixed(0)} ms` },
    ratio: median(byPolling) / ours,
    target: { kind: 'below', value: 5, unit: 'ms' },
    value: ours,
    note: `p99 ${p99.toFixed(1)} ms`,
  }
}

/** A fixed backlog of large files, held back until all of them are stored, by one, two and four worker processes. */
async function measureWorkers(server: BenchServer, natsUrl: string): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const env = {
    DATA_DIR: dataDir,
    DATABASE_URL: await server.createDatabase('many_processes'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    NATS_URL: natsUrl,
    // faults, with which the backlog is held back, are for the virtual clock alone
    ...{ CLOCK: 'virtual', NODE_ENV: '' },
  }
  const front = await startService({ ...env, ROLES: 'api,projector' })
  try {
    const who = await seedParticipants(front.ready)
    let sent = 0
    const workOff = async (workers: number): Promise<number> => {
      const processes: StartedProcess<ServiceAddresses>[] = []
      for (let n = 0; n < workers; n += 1) {
        processes.push(await startService({ ...env, ROLES: 'worker' }))
      }
      const backlog = async (files: number): Promise<number> => {
        await operate(front.ready, '/faults', { point: 'pipeline', mode: 'hold' })
        for (let n = 0; n < files; n += 1) {
          sent += 1
          await submit(front.ready, who, sent)
        }
        await operate(front.ready, '/drain', {})
        const started = performance.now()
        await operate(front.ready, '/faults', { point: 'pipeline', times: 0 })
        while (!(await isWorkDone(front.ready))) await delay(LOOK_MS)
        const took = performance.now() - started
        await operate(front.ready, '/drain', {})
        return took
      }
      await backlog(WARM_UP_FILES * workers)
      const took = await backlog(FILES)
      await Promise.all(processes.map((each) => each.stop()))
      return (FILES * ROWS_PER_FILE * 1000) / took
    }
    const rates = await inTurns(ROUNDS, {
      one: () => workOff(1),
      two: () => workOff(2),
      four: () => workOff(4),
    })
    const peer = { name: 'one worker process', value: perSecond(rates.one) }
    const row = (name: string, rate: number): Row => ({
      work: `backlog of ${FILES} files of ${ROWS_PER_FILE.toLocaleString('en-US')} rows, ${name} worker processes`,
      ours: perSecond(rate),
      peer,
      ratio: rate / rates.one,
      target: { kind: 'none' },
    })
    return [
      { ...row('two', rates.two), target: { kind: 'at least', ratio: 1.6, unit: 'times' } },
      row('four', rates.four),
    ]
  } finally {
    await front.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function operate({ ops }: ServiceAddresses, path: string, body: object): Promise<unknown> {
  const response = await fetch(`${ops}/ops/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return response.json()
}

async function isWorkDone({ ops }: ServiceAddresses): Promise<boolean> {
  const response = await fetch(`${ops}/ops/v1/work`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  })
  const { data } = (await response.json()) as {
    data: { counts: Record<'due' | 'leased' | 'failed', number> }
  }
  if (data.counts.failed > 0) throw new Error('Work failed')
  return data.counts.due + data.counts.leased === 0
}

async function submit({ core }: ServiceAddresses, who: Participants, file: number): Promise<void> {
  // people who were reported before: their keys are there, and what is measured is the pipeline
  const employees = Array.from({ length: ROWS_PER_FILE }, (_, n) => ({
    ...{ employee_id: `worker-${n}`, first_name: `First${n % 97}`, last_name: `Last${n % 1009}` },
    ...{ class_code: '8810', state: 'CA', gross_wages: 1500 + ((n + file) % 4000) / 4 },
  }))
  const response = await fetch(`${core}/api/v1/payroll/reports`, {
    method: 'POST',
    headers: { ...who.clientHeaders, 'content-type': 'application/json' },
    body: JSON.stringify({
      employer_fein: who.fein,
      policy_number: who.policyNumber,
      pay_period: { start_date: '2026-07-01', end_date: '2026-09-30' },
      employees,
    }),
  })
  if (!response.ok) throw new Error(`The report was answered ${response.status}: ${await response.text()}`)
}
