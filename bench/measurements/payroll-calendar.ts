import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Arrivals, type Played, play } from '../arrivals.ts'
import type { Effort } from '../effort.ts'
import { makeTenants, type Tenants } from '../our-tenants.ts'
import {
  CALENDAR,
  KINDS,
  PER_REPORT,
  peakRate,
  type RequestKind,
  SIMULATED_TENANTS,
  SIZES,
} from '../payroll-calendar.ts'
import { RECEIVER_CERTIFICATE } from '../peers/receiver-certificate.ts'
import { startReceivers } from '../peers/webhook-receiver.ts'
import { processorTimeOfPostgres } from '../processor-time.ts'
import type { Row } from '../report.ts'
import { type BenchServer, memoryOf, OPERATOR_TOKEN, processorTimeOf, startService } from '../servers.ts'

/** Requests of one kind per second, while the cost of a kind is measured; and before, so that its code is compiled. */
const ALONE_PER_SECOND = 100
const WARM_UP_S = 5
/** How long the service is left to itself, to know what it takes at rest. */
const REST_S = 10
const DRAIN_S = 600

const KIND_NAMES = Object.keys(PER_REPORT) as RequestKind[]

/**
 * Ten tenants on their payroll calendar: what each kind of request costs by itself, then the busiest five minutes of a Friday
 * that ends a month as installations of three sizes have them, compressed so that ten tenants make all of it. Requests
 * come as they are planned, and latencies are from those moments. Each part ends when the service is at rest.
 */
export async function measurePayrollCalendar(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const ca = join(dataDir, 'receivers.pem')
  await writeFile(ca, RECEIVER_CERTIFICATE.cert)
  const receivers = await startReceivers()
  const url = await server.createDatabase('payroll_calendar')
  const service = await startService({
    DATA_DIR: dataDir,
    DATABASE_URL: url,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_EXTRA_CA_FILE: ca,
  })
  try {
    const { ops } = service.ready
    const pid = service.child.pid!
    const employers = effort.amount(CALENDAR.employersPerTenant)
    const tenants = await makeTenants(service.ready, SIMULATED_TENANTS, employers, `${receivers.https}/ok`)
    const postgres = await processorTimeOfPostgres(url)
    const clocks = async (): Promise<Times> => ({
      service: await processorTimeOf(pid),
      postgres: await postgres(),
    })
    await drained(ops)

    const asked = new Map<RequestKind, number>()
    /** Plays, and waits until the service is at rest. */
    const part = async (rates: Partial<Record<RequestKind, number>>, seconds: number): Promise<Part> => {
      if (rates.linkPaid !== undefined) {
        await tenants.prepareLinks(Math.ceil(rates.linkPaid * seconds * 1.5) + 50)
        await drained(ops)
      }
      await receivers.posts()
      const [from, began] = [await clocks(), performance.now()]
      const played = await play(arrivalsOf(tenants, rates, asked), seconds)
      const due = await workDue(ops)
      const ended = performance.now()
      await drained(ops)
      if (played.debit) {
        // else their gates are work of the next minute, and of the next part
        await operate(ops, '/debit-batches', {})
        await drained(ops)
      }
      const to = await clocks()
      for (const kind of KIND_NAMES) {
        asked.set(kind, (asked.get(kind) ?? 0) + (played[kind]?.scheduled ?? 0))
      }
      const { count: posts } = await receivers.posts()
      const paid = played.linkPaid?.served ?? 0
      if (posts < paid) throw new Error(`${paid} links were paid, and ${posts} webhooks came`)
      return {
        played,
        due,
        settledAfter: (performance.now() - ended) / 1_000,
        seconds: (performance.now() - began) / 1_000,
        took: { service: to.service - from.service, postgres: to.postgres - from.postgres },
      }
    }

    const idle = await part({}, effort.seconds(REST_S))
    const rows: Row[] = []
    const costs = new Map<RequestKind, Times>()
    for (const kind of KIND_NAMES) {
      const rates = { [kind]: ALONE_PER_SECOND }
      await part(rates, effort.seconds(WARM_UP_S))
      const alone = await part(rates, effort.loadSeconds / 3)
      costs.set(kind, costOf(kind, alone, idle))
      rows.push(...costRows(kind, alone, costs.get(kind)!))
    }
    for (const size of SIZES) {
      const rates = Object.fromEntries(KIND_NAMES.map((kind) => [kind, peakRate(size, kind)]))
      const { resident } = await memoryOf(pid)
      rows.push(...peakRows(size, await part(rates, effort.loadSeconds), costs, resident))
    }
    return rows
  } finally {
    await service.stop()
    await receivers.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Processor time, in seconds. */
interface Times {
  readonly service: number
  readonly postgres: number
}

interface Part {
  readonly played: Readonly<Partial<Record<RequestKind, Played>>>
  /** Pieces of work that were due when the last answer had come. */
  readonly due: number
  /** Seconds from then until all was at rest. */
  readonly settledAfter: number
  /** Of all. */
  readonly seconds: number
  readonly took: Times
}

function arrivalsOf(
  tenants: Tenants,
  rates: Partial<Record<RequestKind, number>>,
  asked: ReadonlyMap<RequestKind, number>,
): Partial<Record<RequestKind, Arrivals>> {
  return Object.fromEntries(
    Object.entries(rates).map(([name, perSecond]) => {
      const kind = name as RequestKind
      const before = asked.get(kind) ?? 0
      return [kind, { perSecond, request: (n: number) => tenants.request(kind, before + n) }]
    }),
  )
}

/** What one request takes, with all that follows from it, beyond what the service takes at rest. */
function costOf(kind: RequestKind, { played, took, seconds }: Part, idle: Part): Times {
  const each = (of: keyof Times) =>
    Math.max(0, took[of] - (idle.took[of] / idle.seconds) * seconds) / played[kind]!.served
  return { service: each('service'), postgres: each('postgres') }
}

function costRows(kind: RequestKind, { played }: Part, cost: Times): Row[] {
  const { served, p50, p99 } = played[kind]!
  const row = (of: keyof Times, where: string): Row => ({
    work: `${KINDS[kind]}: processor time of ${where}`,
    unit: 'ms',
    ours: [{ value: cost[of] * 1_000, p50, p99 }],
    peer: null,
    target: { kind: 'none' },
    note: `${served} at ${ALONE_PER_SECOND} per second`,
  })
  return [row('service', 'the service'), row('postgres', 'PostgreSQL')]
}

function peakRows(
  size: number,
  { played, due, settledAfter, seconds, took }: Part,
  costs: ReadonlyMap<RequestKind, Times>,
  resident: number,
): Row[] {
  const all = Object.values(played)
  const count = (of: 'scheduled' | 'served' | 'refused' | 'lost') =>
    all.reduce((sum, one) => sum + one[of], 0)
  const playedFor = seconds - settledAfter
  const byCost = (of: keyof Times) =>
    KIND_NAMES.reduce((sum, kind) => sum + peakRate(size, kind) * costs.get(kind)![of], 0)
  const compression = size / SIMULATED_TENANTS
  const work = `busiest minutes of ${size.toLocaleString('en-US')} tenants, by ${SIMULATED_TENANTS} compressed ${compression} times`
  const whole: Row = {
    work: `${work}: all requests`,
    unit: 'per second',
    ours: [{ value: count('served') / playedFor }],
    peer: null,
    target: { kind: 'none' },
    note:
      `${count('scheduled')} planned, ${count('refused')} refused, ${count('lost')} lost; ${due} pieces of work due at the end, ` +
      `at rest ${settledAfter.toFixed(1)} s later; of a core the service took ${share(took.service / seconds)}, by the costs ` +
      `${share(byCost('service'))}, PostgreSQL ${share(took.postgres / seconds)} and ${share(byCost('postgres'))}; ` +
      `${Math.round(resident / 2 ** 20)} MiB resident before`,
  }
  const kinds = KIND_NAMES.map((kind): Row => {
    const { scheduled, p50, p99 } = played[kind]!
    return {
      work: `${work}: ${KINDS[kind]}, p99`,
      unit: 'ms',
      ours: [{ value: p99, p50 }],
      peer: null,
      target: { kind: 'none' },
      note: `${scheduled} planned`,
    }
  })
  return [whole, ...kinds]
}

function share(cores: number): string {
  return `${Math.round(cores * 100)} %`
}

const operator = { authorization: `Bearer ${OPERATOR_TOKEN}` }

/** Waits until nothing is left to do. @throws Error when that takes ten minutes. */
function drained(ops: string): Promise<void> {
  return operate(ops, '/drain', { timeout_seconds: DRAIN_S })
}

async function operate(ops: string, path: string, body: object): Promise<void> {
  const answer = await fetch(`${ops}/ops/v1${path}`, {
    method: 'POST',
    headers: { ...operator, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}: ${await answer.text()}`)
}

async function workDue(ops: string): Promise<number> {
  const text = await (await fetch(`${ops}/metrics`, { headers: operator })).text()
  const figures = text.matchAll(/^compstream_work_(?:due|leased)(?:\{[^}]*\})? (\d+)/gm)
  return [...figures].reduce((sum, [, figure]) => sum + Number(figure), 0)
}
