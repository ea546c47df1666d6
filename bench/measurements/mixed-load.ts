import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { asksOf } from '../asks.ts'
import type { Effort } from '../effort.ts'
import { sendLoad } from '../load.ts'
import type { Row } from '../report.ts'
import { POPULATION } from '../reports.ts'
import { secondAndLastFifth } from '../resident-size.ts'
import { type BenchServer, memoryOf, startService } from '../servers.ts'

const CONNECTIONS = 16
const SAMPLE_MS = 1_000
const LONG_SECONDS = 300

/**
 * Resident size of the one process with the embedded database under a mixed load: what it comes to, and whether it grows.
 * Of the five parts of the time the last is held against the second: by then everything has been used.
 */
export async function measureMixedLoad(_server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const service = await startService({ DATA_DIR: dataDir })
  try {
    const { status, report, keyedReport, newPeople, toolCall, largerReport } = await asksOf(
      service.ready,
      effort.amount(POPULATION),
    )
    const seconds = effort.mixedLoadSeconds
    let isOver = false
    const load = sendLoad({
      // of ten requests four are status reads; the last is a report of a hundred
      asks: [
        ...[report, status, keyedReport, status, report],
        ...[status, newPeople, status, toolCall, largerReport],
      ],
      connections: CONNECTIONS,
      warmUp: 0,
      length: { seconds },
    }).finally(() => {
      isOver = true
    })
    const sizes: number[] = []
    while (!isOver) {
      sizes.push((await memoryOf(service.child.pid!)).resident / 2 ** 20)
      await Promise.race([delay(SAMPLE_MS), load])
    }
    const { value: rate } = await load
    const { early, late } = secondAndLastFifth(sizes)
    // what a short load leaves says nothing
    const isLong = seconds >= LONG_SECONDS
    const work = `resident size after ${seconds / 60} minutes of mixed load, ${CONNECTIONS} connections`
    return [
      {
        work,
        unit: 'MiB',
        ours: late,
        peer: null,
        target: isLong ? { kind: 'below', value: 450 } : { kind: 'none' },
        note: `${Math.round(Math.min(...sizes))} MiB at the start, ${Math.round(Math.max(...sizes))} at the highest, ${Math.round(rate)} requests/s`,
      },
      {
        work: `${work}: its growth`,
        unit: 'MiB',
        ours: late,
        peer: { name: 'in the second fifth of the time', rounds: early },
        target: isLong ? { kind: 'at most', ratio: 1.1 } : { kind: 'none' },
      },
    ]
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
