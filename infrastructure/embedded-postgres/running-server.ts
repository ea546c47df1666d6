import { join } from 'node:path'
import { readPrivate } from '../private-files.ts'
import { DATABASE, ROLE } from './cluster.ts'
import { listServerProcesses, readPostmasterFile } from './processes.ts'

/**
 * The superuser connection url of the embedded server that a service runs on a data directory; null when none runs.
 * @throws ConfigError when this user may not read its password.
 */
export async function runningServerUrl(dataDir: string): Promise<string | null> {
  const clusterDir = join(dataDir, 'postgres')
  const postmaster = await readPostmasterFile(clusterDir)
  if (postmaster === null || !(await listServerProcesses(clusterDir)).includes(postmaster.pid)) return null
  const password = await readPrivate(join(dataDir, 'postgres-password'))
  return password === null
    ? null
    : `postgresql://${ROLE}:${password}@127.0.0.1:${postmaster.port}/${DATABASE}`
}
