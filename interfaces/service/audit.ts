import { verifierOf } from '../../application/audit/checkpoint-note.ts'
import { followCheckpoints } from '../../application/audit/follow-checkpoints.ts'
import { LogTree, type LogTreeParts } from '../../application/audit/log-tree.ts'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import type { Leases } from '../../application/ports/leases.ts'
import { CheckpointFolder } from '../../infrastructure/audit/checkpoint-folder.ts'
import { PostgresLogTreeStore } from '../../infrastructure/audit/log-tree-store.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'
import type { Metrics } from '../../infrastructure/telemetry/metrics.ts'
import { checkFolder } from './folders.ts'

/** How long the stop of a process waits for its last checkpoint, in milliseconds. */
const LAST_CHECKPOINT_MS = 5_000

/**
 * The tree over the log.
 * @throws ConfigError when the folder of checkpoints cannot be used.
 */
export async function logTreeOf(
  {
    auditCheckpointsDir: folder,
    auditWitnessKeys: witnessKeys,
    dataDir,
  }: Pick<Config, 'auditCheckpointsDir' | 'auditWitnessKeys' | 'dataDir'>,
  database: Pick<Database, 'background' | 'transaction'>,
  parts: Pick<LogTreeParts, 'log' | 'vault' | 'clock'>,
): Promise<LogTree> {
  if (folder !== null) await checkFolder('AUDIT_CHECKPOINTS_DIR', folder, dataDir)
  const { log, vault, clock } = parts
  const store = new PostgresLogTreeStore(database)
  return new LogTree({
    log,
    vault,
    clock,
    store,
    copies: folder === null ? null : new CheckpointFolder(folder),
    witnesses: witnessKeys.flatMap((key) => verifierOf(key) ?? []),
  })
}

/** Signs checkpoints while the process runs, and a last one at its end. @returns how to end it. */
export function keepCheckpoints(
  tree: LogTree,
  { leases, logger, metrics }: { leases: Leases; logger: Logger; metrics: Metrics },
): () => Promise<void> {
  const stopping = new AbortController()
  const failed = (error: unknown) => logger.error('checkpoint of the log not signed', {}, error)
  const covered = (isCovered: boolean) => metrics.covered(isCovered)
  const following = followCheckpoints(tree, { leases, covered, failed }, stopping.signal)
  return async () => {
    stopping.abort()
    await following
    await tree.checkpoint(AbortSignal.timeout(technicalDeadline(LAST_CHECKPOINT_MS))).catch(failed)
  }
}
