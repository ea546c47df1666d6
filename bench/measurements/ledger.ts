import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Effort } from '../effort.ts'
import { sendLoad } from '../load.ts'
import { carrierOf, EMPLOYERS, employerOf, fillLedger, policyOf } from '../our-ledger.ts'
import type { Row } from '../report.ts'
import { type BenchServer, seedParticipants, startService } from '../servers.ts'
import { type Figure, sameRandoms } from '../statistics.ts'

const ROWS = 1_000_000
const ROUNDS = 3
const SECONDS = 3
/** Pages of a list that are looked at. */
const PAGES = 100
/** Urls of each kind that are asked in turn. */
const URLS = 300
/** Up to so many rows that match a page comes within the first time, else within the second, in milliseconds. */
const MANY = 100_000
const [LIMIT_MS, LIMIT_OF_MANY_MS] = [50, 250]

/** A filter; `random` makes numbers from 0 to below its argument. */
type Filter = (random: (below: number) => number) => Readonly<Record<string, string>>

const FILTERS: Readonly<Record<string, Filter>> = {
  'no filter': () => ({}),
  'a carrier of most rows': () => ({ carrier_id: carrierOf(0) }),
  'a carrier of a tenth': () => ({ carrier_id: carrierOf(1) }),
  'a small carrier': (random) => ({ carrier_id: carrierOf(2 + random(20)) }),
  'an employer': (random) => ({ employer_id: employerOf(random(EMPLOYERS)) }),
  'a policy': (random) => ({ policy_id: policyOf(random(2 * EMPLOYERS)) }),
  'status PENDING': () => ({ status: 'PENDING' }),
  'status COMPLETED': () => ({ status: 'COMPLETED' }),
  'status FAILED': () => ({ status: 'FAILED' }),
  'status RETURNED': () => ({ status: 'RETURNED' }),
  'status sb_remit': () => ({ status: 'sb_remit' }),
  'a carrier of a tenth, COMPLETED': () => ({ carrier_id: carrierOf(1), status: 'COMPLETED' }),
  'an employer, FAILED': (random) => ({ employer_id: employerOf(random(EMPLOYERS)), status: 'FAILED' }),
  'a month': (random) => {
    const month = String(1 + random(12)).padStart(2, '0')
    return { from_date: `2024-${month}-01`, to_date: `2024-${month}-28` }
  },
  'since a day': () => ({ from_date: '2025-06-01' }),
  'a carrier of a tenth in a year': () => ({
    carrier_id: carrierOf(1),
    from_date: '2024-01-01',
    to_date: '2024-12-31',
  }),
  ...sorted('amount_cents'),
  ...sorted('status'),
  ...sorted('effective_date'),
  'oldest first': () => ({ sort_order: 'asc' }),
}

/** A sort order of everything, and of less. */
function sorted(sort_by: string): Readonly<Record<string, Filter>> {
  return {
    [`by ${sort_by}`]: () => ({ sort_by }),
    [`a carrier of a tenth by ${sort_by}`]: () => ({ carrier_id: carrierOf(1), sort_by }),
    [`an employer by ${sort_by}`]: (random) => ({ employer_id: employerOf(random(EMPLOYERS)), sort_by }),
    [`FAILED by ${sort_by}`]: () => ({ status: 'FAILED', sort_by }),
  }
}

/** `GET /ach/transactions` over a million rows, filter by filter, pages 1 to 100 of 50 rows. */
export async function measureLedger(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase('ledger')
  const service = await startService({ DATA_DIR: dataDir, DATABASE_URL: url, LOG_LEVEL: 'info' })
  try {
    const { tenantId, partnerHeaders } = await seedParticipants(service.ready)
    const rows = effort.amount(ROWS)
    await fillLedger(url, rows, tenantId)
    const list = `${service.ready.payments}/api/v1/ach/transactions`
    const measured: Row[] = []
    for (const [name, filter] of Object.entries(FILTERS)) {
      const next = sameRandoms()
      const random = (below: number) => Math.floor(next() * below)
      const matching = await totalOf(list, partnerHeaders, filter(random))
      const pages = Math.min(PAGES, Math.ceil(matching / 50))
      const urls = Array.from({ length: URLS }, (_, n) => {
        const page = String(1 + (n % Math.max(1, pages)))
        return `${list}?${new URLSearchParams({ ...filter(random), page })}`
      })
      const ours: Figure[] = []
      for (let round = 0; round < effort.rounds(ROUNDS); round += 1) {
        const asks = [{ kind: 'get', urls, headers: partnerHeaders } as const]
        const length = { seconds: effort.seconds(SECONDS) }
        const { p50, p99 } = await sendLoad({ asks, connections: 1, warmUp: effort.seconds(1), length })
        ours.push({ value: p99, p50 })
      }
      measured.push({
        work: `ledger of ${rows.toLocaleString('en-US')}: ${name}, p99`,
        unit: 'ms',
        ours,
        peer: null,
        target: { kind: 'below', value: matching > MANY ? LIMIT_OF_MANY_MS : LIMIT_MS },
        note: `${matching.toLocaleString('en-US')} match`,
      })
    }
    return measured
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function totalOf(
  list: string,
  headers: Readonly<Record<string, string>>,
  filter: Readonly<Record<string, string>>,
): Promise<number> {
  const answer = await fetch(`${list}?${new URLSearchParams({ ...filter, limit: '1' })}`, { headers })
  if (!answer.ok) throw new Error(`${list} answered ${answer.status}: ${await answer.text()}`)
  return ((await answer.json()) as { pagination: { total: number } }).pagination.total
}
