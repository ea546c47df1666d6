import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Effort } from '../effort.ts'
import type { Row } from '../report.ts'
import { type BenchServer, startService } from '../servers.ts'
import type { Figure } from '../statistics.ts'

const ROUNDS = 5

/** From starting the program to its ready line, with the embedded server: on an empty data directory, and again on it. */
export async function measureStarting(_server: BenchServer, effort: Effort): Promise<Row[]> {
  const cold: Figure[] = []
  const warm: Figure[] = []
  for (let round = 0; round < effort.rounds(ROUNDS); round += 1) {
    const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
    // one key for both starts: the second has to open what the first stored
    const env = { DATA_DIR: dataDir, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
    try {
      for (const times of [cold, warm]) {
        const service = await startService(env)
        times.push({ value: service.readyAfterMs / 1000 })
        await service.stop()
      }
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  }
  const row = (work: string, ours: readonly Figure[], limit: number): Row => ({
    work,
    unit: 's',
    ours,
    peer: null,
    target: { kind: 'below', value: limit },
  })
  return [
    row('start to ready on an empty data directory', cold, 6),
    row('start to ready on the same data directory again', warm, 3),
  ]
}
