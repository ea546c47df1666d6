import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Row, seconds } from '../report.ts'
import { startService } from '../servers.ts'
import { median } from '../statistics.ts'

const ROUNDS = 3

/** From starting the program to its ready line, with the embedded server: on an empty data directory, and again on it. */
export async function measureStarting(): Promise<Row[]> {
  const cold: number[] = []
  const warm: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
    // one key for both starts: the second has to open what the first stored
    const env = { DATA_DIR: dataDir, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
    try {
      for (const times of [cold, warm]) {
        const service = await startService(env)
        times.push(service.readyAfterMs)
        await service.stop()
      }
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  }
  const row = (work: string, times: readonly number[], limit: number): Row => ({
    work,
    ours: seconds(median(times)),
    peer: null,
    ratio: null,
    target: { kind: 'below', value: limit, unit: 's' },
    value: median(times) / 1000,
  })
  return [
    row('start to ready on an empty data directory', cold, 6),
    row('start to ready on the same data directory again', warm, 3),
  ]
}
