import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Effort } from '../effort.ts'
import { storePendingDebits } from '../our-debits.ts'
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

const DEBITS = 100_000
const LIMIT_S = 30
const DRAIN_S = 60

/**
 * Debits that wait, of a thousand employers: how long one run of the batch worker takes to look at each by all four gates
 * and to put it into its batch, until that can be read, and how large the service becomes.
 */
export async function measureDebitBatch(server: BenchServer, effort: Effort): Promise<Row[]> {
  const count = effort.amount(DEBITS, 100)
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase(`debits_${randomBytes(4).toString('hex')}`)
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
    const { carrierId } = await seedParticipants(service.ready)
    const { tenant_id } = await ask(service, 'GET', `carriers/${carrierId}`)
    const { now } = await ask(service, 'GET', 'clock')
    await service.stop()
    const sent = { carrierId, tenantId: String(tenant_id), at: Date.parse(String(now)) }
    const expected = await storePendingDebits(url, count, sent)
    service = await startService(settings)
    const pid = service.child.pid!
    await drained(service)

    await resetPeakMemory(pid)
    const { resident: before } = await memoryOf(pid)
    const busy = -(await processorTimeOf(pid))
    const began = performance.now()
    const run = await ask(service, 'POST', 'debit-batches', {})
    const seconds = (performance.now() - began) / 1000
    for (const [outcome, debits] of Object.entries({ ...expected, unreadable: 0 })) {
      if (run[outcome] !== debits) {
        throw new Error(`${outcome}: ${run[outcome]} debits, not ${debits}`)
      }
    }
    await drained(service)
    const settled = (performance.now() - began) / 1000
    const work = `${count.toLocaleString('en-US')} debits through all four gates`
    const processor = (busy + (await processorTimeOf(pid))).toFixed(1)
    const mib = (bytes: number) => bytes / 2 ** 20
    return [
      {
        work: `${work} into their batch`,
        unit: 's',
        ours: [{ value: seconds }],
        peer: null,
        target: { kind: 'below', value: LIMIT_S },
        note: `${processor} s of processor time in the service; ${settled.toFixed(1)} s until all is at rest`,
      },
      {
        work: `${work}: resident size at the highest`,
        unit: 'MiB',
        peer: null,
        ours: [{ value: mib((await memoryOf(pid)).peak) }],
        target: { kind: 'below', value: 450 },
        note: `${mib(before).toFixed(0)} MiB before`,
      },
    ]
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Running = StartedProcess<ServiceAddresses>

async function drained(service: Running): Promise<void> {
  while ((await ask(service, 'POST', 'drain', { timeout_seconds: DRAIN_S })).drained === undefined);
}

/** Asks the operator API. @returns its data; of what it refuses, nothing. */
async function ask(
  { ready }: Running,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${ready.ops}/ops/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const { data } = (await response.json()) as { data?: Record<string, unknown> }
  return response.ok ? (data ?? {}) : {}
}
