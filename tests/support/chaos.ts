import { join } from 'node:path'
import { listServerProcesses, signal } from '../../infrastructure/embedded-postgres/processes.ts'
import type { RunningService } from './service.ts'

/** The processes of the embedded server of a data directory. */
export function databaseProcesses(dataDir: string): Promise<readonly number[]> {
  return listServerProcesses(join(dataDir, 'postgres'))
}

/** kill -9 of the service and of every process of its database at once. */
export async function killTree(service: RunningService): Promise<void> {
  const processes = await databaseProcesses(service.dataDir)
  const dead = service.kill()
  for (const pid of processes) signal(pid, 'SIGKILL')
  await dead
}
