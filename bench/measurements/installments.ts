import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Effort } from '../effort.ts'
import { expectEachCreatedOnce, storeArrangedPlans, whileAnyIsLeft } from '../our-installments.ts'
import type { Row } from '../report.ts'
import {
  type BenchServer,
  memoryOf,
  OPERATOR_TOKEN,
  processorTimeOf,
  resetPeakMemory,
  type ServiceAddresses,
  type StartedProcess,
  seedParticipants,
  startService,
} from '../servers.ts'

const INSTALLMENTS = 100_000
const LIMIT_S = 120
const LIMIT_MIB = 450
/** How often the service is killed, and how long it works before that. */
const KILLS = 5
const BETWEEN_KILLS_MS = 5_000
const DRAIN_S = 60

interface Created {
  readonly seconds: number
  /** Processor time of the service, of all its lives, in seconds. */
  readonly busy: number
  /** At the highest, MiB. */
  readonly resident: number
}

/**
 * Installments of as many plans that fall due at one 17:00 UTC: how long until each is debited and its partner told, and how
 * large the service becomes; then the same while it is killed on the way.
 */
export async function measureInstallments(server: BenchServer, effort: Effort): Promise<Row[]> {
  const count = effort.amount(INSTALLMENTS)
  const undisturbed = await createInstallments(server, count, 0)
  const killed = await createInstallments(server, count, KILLS)
  const work = `${count.toLocaleString('en-US')} installments due at one 17:00 UTC`
  return [
    ...rowsOf(`${work}: each created once, and told`, undisturbed),
    ...rowsOf(`${work}, the service killed ${KILLS} times on the way`, killed),
  ]
}

function rowsOf(work: string, { seconds, busy, resident }: Created): Row[] {
  return [
    {
      work,
      unit: 's',
      ours: [{ value: seconds }],
      peer: null,
      target: { kind: 'below', value: LIMIT_S },
      note: `${busy.toFixed(1)} s of processor time in the service`,
    },
    {
      work: `${work}: resident size at the highest`,
      unit: 'MiB',
      ours: [{ value: resident }],
      peer: null,
      target: { kind: 'below', value: LIMIT_MIB },
    },
  ]
}

async function createInstallments(server: BenchServer, count: number, kills: number): Promise<Created> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase(`installments_${randomBytes(4).toString('hex')}`)
  const settings = {
    DATA_DIR: dataDir,
    DATABASE_URL: url,
    CLOCK: 'virtual',
    NODE_ENV: 'test',
    LOG_LEVEL: 'info',
    MASTER_KEY: randomBytes(32).toString('base64'),
  }
  let service = await startService(settings)
  try {
    const participants = await seedParticipants(service.ready)
    const carrier = await ask(service, 'GET', `carriers/${participants.carrierId}`)
    const { now } = await ask(service, 'GET', 'clock')
    await service.stop()
    const dueAt = await storeArrangedPlans(url, count, {
      ...participants,
      tenantId: carrier.tenant_id!,
      at: Date.parse(now!),
    })
    service = await startService(settings)
    await drained(service, url)

    await resetPeakMemory(service.child.pid!)
    let resident = 0
    let busy = -(await processorTimeOf(service.child.pid!))
    const began = performance.now()
    // the answer may die with the service; the time that was moved to stays
    const moved = ask(service, 'POST', 'clock/advance', { to: new Date(dueAt).toISOString() }).catch(
      () => null,
    )
    for (let kill = 0; kill < kills; kill += 1) {
      await delay(BETWEEN_KILLS_MS)
      resident = Math.max(resident, await peakOf(service))
      busy += await processorTimeOf(service.child.pid!)
      service.child.kill('SIGKILL')
      await service.stop()
      service = await startService(settings)
    }
    await moved
    await drained(service, url)
    const seconds = (performance.now() - began) / 1000
    resident = Math.max(resident, await peakOf(service))
    busy += await processorTimeOf(service.child.pid!)
    await expectEachCreatedOnce(url, count)
    return { seconds, busy, resident }
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Running = StartedProcess<ServiceAddresses>

async function peakOf({ child }: Running): Promise<number> {
  return (await memoryOf(child.pid!)).peak / 2 ** 20
}

/** Waits until nothing is left to do; looks seldom, since each look costs the service some work. */
async function drained(service: Running, url: string): Promise<void> {
  await whileAnyIsLeft(url)
  while ((await ask(service, 'POST', 'drain', { timeout_seconds: DRAIN_S })).drained === undefined);
}

/** Asks the operator API. @returns its data; of what it refuses, nothing. */
async function ask(
  { ready }: Running,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<Readonly<Record<string, string | undefined>>> {
  const response = await fetch(`${ready.ops}/ops/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const { data } = (await response.json()) as { data?: Record<string, string> }
  return response.ok ? (data ?? {}) : {}
}
