import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findEventStore, startEventStore } from '../../tests/support/eventstoredb.ts'
import { natsSource, startNats } from '../../tests/support/nats.ts'
import { type Load, sendLoad } from '../load.ts'
import { perSecond, type Row } from '../report.ts'
import {
  type BenchServer,
  type ServiceAddresses,
  type StartedProcess,
  seedParticipants,
  startService,
} from '../servers.ts'
import { inTurns, median } from '../statistics.ts'

const ROUNDS = 3
const CONNECTIONS = 32
const SECONDS = 5
const WARM_UP_SECONDS = 3
const ROLES = ['projector', 'worker', 'api'] as const

/** Small reports to an installation of three processes on EventStoreDB and NATS, and to the one process by default. */
export async function measureSplitReport(server: BenchServer): Promise<Row[]> {
  if (natsSource === null || (await findEventStore()) === null) {
    process.stderr.write(' skipped, there is no NATS or EventStoreDB server;')
    return []
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const [nats, eventStore] = await Promise.all([startNats(), startEventStore()])
  const processes: StartedProcess<ServiceAddresses>[] = []
  try {
    const single = await startService({ DATA_DIR: join(dataDir, 'single') })
    processes.push(single)
    const shared = {
      DATA_DIR: join(dataDir, 'split'),
      DATABASE_URL: await server.createDatabase('split_report'),
      MASTER_KEY: randomBytes(32).toString('base64'),
      EVENTSTORE_URL: eventStore.url,
      NATS_URL: nats.url,
    }
    for (const role of ROLES) processes.push(await startService({ ...shared, ROLES: role }))
    const requests = {
      single: await reportTo(single.ready),
      split: await reportTo(processes.at(-1)!.ready),
    }
    const p99: Record<keyof typeof requests, number[]> = { single: [], split: [] }
    const load = (name: keyof typeof requests, seconds: number) =>
      sendLoad({ ...requests[name], connections: CONNECTIONS, seconds })
    for (const name of ['single', 'split'] as const) await load(name, WARM_UP_SECONDS)
    const contender = (name: keyof typeof requests) => async () => {
      const result = await load(name, SECONDS)
      p99[name].push(result.p99)
      return result.requestsPerSecond
    }
    const rates = await inTurns(ROUNDS, { single: contender('single'), split: contender('split') })
    const value = (name: keyof typeof requests) => `${perSecond(rates[name])}, p99 ${median(p99[name])} ms`
    return [
      {
        work: 'report of 3 employees, EventStoreDB, NATS and three processes by role',
        ours: value('split'),
        peer: { name: 'one process, embedded', value: value('single') },
        ratio: rates.split / rates.single,
        target: { kind: 'at least', ratio: 0.6, unit: 'percent' },
      },
    ]
  } finally {
    for (const each of processes.reverse()) await each.stop()
    await Promise.all([nats.stop(), eventStore.stop()])
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function reportTo(addresses: ServiceAddresses): Promise<Omit<Load, 'connections' | 'seconds'>> {
  const who = await seedParticipants(addresses)
  const employees = Array.from({ length: 3 }, (_, n) => ({
    ...{ employee_id: `E${n}`, first_name: 'Rosa', last_name: 'Okafor' },
    ...{ class_code: '5403', state: 'CA', gross_wages: 1893.38 },
  }))
  return {
    url: `${addresses.core}/api/v1/payroll/reports`,
    method: 'POST',
    headers: who.clientHeaders,
    body: JSON.stringify({
      employer_fein: who.fein,
      policy_number: who.policyNumber,
      pay_period: { start_date: '2026-08-01', end_date: '2026-08-15' },
      employees,
    }),
  }
}
