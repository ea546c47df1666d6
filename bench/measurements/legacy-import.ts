import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Effort } from '../effort.ts'
import type { Row } from '../report.ts'
import {
  type BenchServer,
  memoryOf,
  OPERATOR_TOKEN,
  type Participants,
  processorTimeOf,
  resetPeakMemory,
  type ServiceAddresses,
  seedParticipants,
  startService,
} from '../servers.ts'

const LINES = 1_000_000
const LEAST_PER_SECOND = 20_000
const LIMIT_MIB = 450
const EMPLOYERS = 300
/** Lines that are written at once. */
const AT_ONCE = 500
const DAY_MS = 86_400_000
const STATUSES = ['sb_remit', 'sb_remit', 'sb_remit', 'legacy_collected', 'at_sb', 'returned', 'canceled']

/**
 * Records of the legacy service, streamed in as fast as they are taken: until they are stored and the ledger has them; then
 * the same once more, of which nothing is stored.
 */
export async function measureLegacyImport(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase(`legacy_import_${randomBytes(4).toString('hex')}`)
  const service = await startService({ DATA_DIR: dataDir, DATABASE_URL: url, LOG_LEVEL: 'info' })
  try {
    const count = effort.amount(LINES)
    const participants = await seedParticipants(service.ready)
    const employers = await newEmployers(service.ready, participants)
    const pid = service.child.pid!
    await resetPeakMemory(pid)
    const busyBefore = await processorTimeOf(pid)
    const first = await send(service.ready, linesOf(count, employers))
    const busy = (await processorTimeOf(pid)) - busyBefore
    const resident = (await memoryOf(pid)).peak / 2 ** 20
    expectCounts(first, { stored: count, repeated: 0 })
    const again = await send(service.ready, linesOf(count, employers))
    expectCounts(again, { stored: 0, repeated: count })
    const work = `import of ${count.toLocaleString('en-US')} records of the legacy service`
    const perSecond = ({ seconds }: Imported) =>
      `${Math.round(count / seconds).toLocaleString('en-US')} rows per second`
    return [
      {
        work,
        unit: 's',
        ours: [{ value: first.seconds }],
        peer: null,
        target: { kind: 'below', value: count / LEAST_PER_SECOND },
        note: `${perSecond(first)}, ${busy.toFixed(1)} s of processor time in the service`,
      },
      {
        work: `${work}: again`,
        unit: 's',
        ours: [{ value: again.seconds }],
        peer: null,
        target: { kind: 'none' },
        note: perSecond(again),
      },
      {
        work: `${work}: resident size at the highest`,
        unit: 'MiB',
        ours: [{ value: resident }],
        peer: null,
        target: { kind: 'below', value: LIMIT_MIB },
      },
    ]
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

interface Imported {
  readonly stored: number
  readonly repeated: number
  readonly refused_count: number
  readonly seconds: number
}

function expectCounts(imported: Imported, wanted: Pick<Imported, 'stored' | 'repeated'>): void {
  const { stored, repeated, refused_count } = imported
  if (stored === wanted.stored && repeated === wanted.repeated && refused_count === 0) return
  throw new Error(`An import answered ${JSON.stringify(imported)}`)
}

async function newEmployers(
  { ops }: ServiceAddresses,
  { tenantId: tenant_id }: Participants,
): Promise<readonly string[]> {
  const employers: string[] = []
  for (let n = 0; n < EMPLOYERS; n += 1) {
    const response = await fetch(`${ops}/ops/v1/employers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        tenant_id,
        legal_name: `Employer ${n}`,
        fein: `98-${String(n).padStart(7, '0')}`,
      }),
    })
    const { data } = (await response.json()) as { data: { employer_id: string } }
    employers.push(data.employer_id)
  }
  return employers
}

/** Records of all employers in turn, of seven years, in no order that a table has. */
function* linesOf(count: number, employers: readonly string[]): Generator<Buffer> {
  const from = Date.UTC(2018, 0, 1)
  const dayOf = (day: number) => new Date(from + day * DAY_MS).toISOString().slice(0, 10)
  const days = Array.from({ length: 2_600 }, (_, day) => dayOf(day))
  let text = ''
  for (let n = 0; n < count; n += 1) {
    const day = (n * 31) % 2_500
    const employer_id = employers[(n * 7_919) % employers.length]
    const premium_cents = 1_000 + ((n * 37) % 900_000)
    const period = { period_start: days[day], period_end: days[day + 6] }
    text += `${JSON.stringify({ employer_id, ...period, premium_cents, status: STATUSES[n % STATUSES.length] })}\n`
    if (n % AT_ONCE !== AT_ONCE - 1 && n !== count - 1) continue
    yield Buffer.from(text)
    text = ''
  }
}

function send({ ops }: ServiceAddresses, lines: Iterable<Buffer>): Promise<Imported> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const sending = request(`${ops}/ops/v1/legacy-collections/import?import_id=bench`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/x-ndjson' },
    })
    sending.on('error', reject)
    sending.on('response', async (response) => {
      let text = ''
      for await (const part of response) text += part
      const seconds = (performance.now() - began) / 1000
      if (response.statusCode === 200) resolve({ ...JSON.parse(text).data, seconds })
      else reject(new Error(`The import was answered ${response.statusCode}: ${text}`))
    })
    Readable.from(lines, { objectMode: false }).on('error', reject).pipe(sending)
  })
}
