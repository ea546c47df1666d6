import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Effort } from '../effort.ts'
import { copyRows } from '../peers/plain-postgres.ts'
import type { Row } from '../report.ts'
import { reportBody } from '../reports.ts'
import {
  type BenchServer,
  memoryOf,
  type Participants,
  resetPeakMemory,
  seedParticipants,
  startService,
} from '../servers.ts'
import { type Figure, inTurns } from '../statistics.ts'

const ROUNDS = 5
const ROWS = 10_000
const JOBS = ['8810', '8742', '5606', '5403', '5645', '7219']
const STATES = ['CA', 'NV', 'TX', 'PA']

/** A report of 10,000 employees, nobody of whom was ever reported before: the dearest case, each needs a data key. */
function employees(group: string, count: number): Readonly<Record<string, unknown>>[] {
  return Array.from({ length: count }, (_, n) => ({
    employee_id: `${group}-${n}`,
    first_name: `First${n % 97}`,
    last_name: `Last${n % 1009}`,
    class_code: JOBS[n % JOBS.length],
    state: STATES[n % STATES.length],
    gross_wages: 1500 + (n % 4000) / 4,
  }))
}

/** From the POST of a large report to the end of phase 3, and what it costs in memory. */
export async function measurePayrollReport(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase('payroll_report')
  const service = await startService({ DATA_DIR: dataDir, DATABASE_URL: url })
  try {
    const pid = service.child.pid!
    const who = await seedParticipants(service.ready)
    const submit = (rows: readonly object[]) => submitAndWait(service.ready.core, who, rows)
    await submit(employees('warm-up', 500))
    const before = await settledMemory(pid)
    const growth: Figure[] = []
    const count = effort.amount(ROWS)
    const figures = await inTurns(effort.rounds(ROUNDS), {
      ours: async (round) => {
        await resetPeakMemory(pid)
        const took = await submit(employees(`round-${round}`, count))
        growth.push({ value: ((await memoryOf(pid)).peak - before) / 2 ** 20 })
        return { value: took / 1000 }
      },
      copy: async (round) => ({
        value: (await copyRows(url, employees(`round-${round}`, count))) / 1000,
      }),
    })
    const after = await settledMemory(pid)
    return [
      {
        work: `report of ${count.toLocaleString('en-US')} rows, POST to phase 3 complete`,
        unit: 's',
        ours: figures.ours,
        peer: { name: 'COPY of the rows into one table', rounds: figures.copy },
        target: { kind: 'below', value: 1 },
      },
      {
        work: `its memory: highest resident size above that after a report of 500 rows`,
        unit: 'MiB',
        ours: growth,
        peer: null,
        target: { kind: 'below', value: 150 },
        note: `${Math.round(before / 2 ** 20)} MiB before, ${Math.round(after / 2 ** 20)} MiB after ${growth.length} reports`,
      },
    ]
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** @returns milliseconds from sending the report to the first status that shows phase 3 complete. */
async function submitAndWait(core: string, who: Participants, rows: readonly object[]): Promise<number> {
  const body = reportBody(who, rows, { start_date: '2026-07-01', end_date: '2026-09-30' })
  const started = performance.now()
  const response = await fetch(`${core}/api/v1/payroll/reports`, {
    method: 'POST',
    headers: { ...who.clientHeaders, 'content-type': 'application/json' },
    body,
  })
  const answer = (await response.json()) as { file_id: string | null; report_id?: string }
  if (!response.ok) throw new Error(`The report was answered ${response.status}: ${JSON.stringify(answer)}`)
  const statusUrl = `${core}/api/v1/files/status/${answer.file_id ?? answer.report_id}`
  for (;;) {
    const polled = await fetch(statusUrl, { headers: who.clientHeaders })
    const status = (await polled.json()) as {
      status: string
      error?: string
      phase_3?: { status: string; processed_rows?: number }
    }
    if (!polled.ok || status.status === 'failed')
      throw new Error(`The file failed: ${JSON.stringify(status)}`)
    if (status.phase_3?.status === 'complete') {
      if (status.phase_3.processed_rows !== rows.length) throw new Error('Rows are missing from phase 3')
      return performance.now() - started
    }
    await delay(5)
  }
}

/** Resident size once it has stopped changing. */
async function settledMemory(pid: number): Promise<number> {
  let { resident } = await memoryOf(pid)
  for (let quiet = 0, waited = 0; quiet < 5 && waited < 50; waited += 1) {
    await delay(200)
    const now = (await memoryOf(pid)).resident
    quiet = Math.abs(now - resident) < 2 ** 20 ? quiet + 1 : 0
    resident = now
  }
  return resident
}
