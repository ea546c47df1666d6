import { setTimeout as delay } from 'node:timers/promises'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { whileOwned } from '../../followers/while-owned.ts'
import type { Leases } from '../../ports/leases.ts'
import { ProviderUnavailable } from '../../ports/provider.ts'
import { lookAfterFile } from './expose-files.ts'
import type { FileApp } from './file-app.ts'
import { filesLookedAfter } from './list-files.ts'
import { takeReports } from './take-reports.ts'

/** Until another process may take over, or a look that failed is repeated, in real milliseconds. */
const PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 60_000

/** What a look into both folders found. */
export interface FolderLook {
  /** Files that came and were taken. */
  readonly taken: number
  /** Files that were fetched since the last look, and those that are gone without that. */
  readonly fetched: number
  readonly uncertain: number
}

/**
 * Looks into both folders: sees what became of what was to be fetched, then takes what has come, which may answer to it.
 * Events of a look have no actor, also where an operator asked for it.
 * @throws ProviderUnavailable
 */
export async function lookAtFolders(
  app: Pick<Application, 'read'> & FileApp,
  asked: Omit<CommandContext, 'actor'>,
): Promise<FolderLook> {
  const context: CommandContext = { ...asked, actor: { type: 'system', id: 'bank-folders' } }
  const found = { fetched: 0, uncertain: 0 }
  let taken = 0
  try {
    for (const fileId of await filesLookedAfter(app)) {
      const outcome = await lookAfterFile(app, fileId, context)
      if (outcome !== null) found[outcome] += 1
    }
  } finally {
    // one folder that cannot be used does not hold up the other
    taken = await takeReports(app, context)
  }
  // also while nothing is looked for in it
  const [away] = await app.bankFiles.folders.unusable()
  if (away !== undefined) throw new ProviderUnavailable(`The ${away} of the bank cannot be used`)
  return { taken, ...found }
}

/**
 * Looks into the folders again and again, in one process at a time, until `stopping` aborts. All pauses are real
 * milliseconds: others put files there and fetch them in real time.
 */
export async function followFolders(
  app: Application & FileApp,
  {
    leases,
    everyMs,
    failed,
  }: {
    readonly leases: Leases
    readonly everyMs: number
    /** Told of a look that failed; the next one comes by itself. */
    readonly failed: (error: unknown) => void
  },
  stopping: AbortSignal,
): Promise<void> {
  await whileOwned({
    leases,
    name: 'bank-folders',
    stopping,
    failed,
    pauseMs: PAUSE_MS,
    longestPauseMs: LONGEST_PAUSE_MS,
    async run(_lease, ended, progressed) {
      while (!ended.aborted) {
        await lookAtFolders(app, {
          tenantId: null,
          environment: null,
          correlationId: app.randomness.id(),
          commandId: app.randomness.commandId(),
        })
        progressed()
        await delay(everyMs, null, { signal: ended }).catch(() => undefined)
      }
    },
  })
}
