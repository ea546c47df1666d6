import { getPriority, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { EventRegistry } from '../../application/commands/event-registry.ts'
import { scaleTechnicalDeadlines } from '../../application/commands/technical-deadlines.ts'
import { describeError } from '../../application/followers/describe-error.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { openPostgresLogReader } from '../../infrastructure/event-store/postgres/log-reader.ts'
import type { CatchUpMessage, CatchUpTask } from '../../infrastructure/read-models/catch-up-thread.ts'
import { PostgresProjectionStore } from '../../infrastructure/read-models/projection-store.ts'
import { projections } from '../../projections/index.ts'
import { catchUp } from '../../projections/runtime/catch-up.ts'
import { categoryOf } from '../../projections/runtime/failures.ts'
import type { Progress, RunnerParts } from '../../projections/runtime/projection-runner.ts'

/**
 * What a thread runs that catches up on a generation of a read model: with connections of its own, until it is there or is
 * told to stand still.
 */
async function main(task: CatchUpTask): Promise<void> {
  scaleTechnicalDeadlines(task.technicalDeadlineScale)
  const starter = parentPort!
  const say = (message: CatchUpMessage) => starter.postMessage(message)
  const standingStill = new AbortController()
  starter.once('message', () => standingStill.abort())
  // a client of the log may reject where nobody can catch it
  process.on('unhandledRejection', (error) => say({ kind: 'disturbed', reason: describeError(error) }))
  const progress: Progress = {
    reached: (position) => say({ kind: 'reached', position }),
    stored: (events, ms) => say({ kind: 'stored', events, ms }),
  }
  try {
    await withStorage(task, (database, log) => {
      say({ kind: 'opened' })
      return catchUp(
        {
          projections,
          log,
          registry: new EventRegistry(aggregates),
          store: new PostgresProjectionStore(database),
        },
        task.arrears,
        progress,
        standingStill.signal,
      )
    })
  } catch (error) {
    say({ kind: 'failed', category: categoryOf(error), message: describeError(error) })
  }
  // the thread ends, whatever a client has left open
  process.exit(0)
}

async function withStorage(
  { databaseUrl, eventStoreUrl, arrears }: CatchUpTask,
  work: (database: Database, log: RunnerParts['log']) => Promise<void>,
): Promise<void> {
  const database = await openDatabase({ url: databaseUrl, applicationName: 'compstream catch-up' })
  try {
    const log =
      eventStoreUrl === null
        ? openPostgresLogReader(database, arrears.upTo)
        : await openEventStore(eventStoreUrl)
    try {
      await work(database, log)
    } finally {
      await log.close()
    }
  } finally {
    await database.close()
  }
}

async function openEventStore(url: string) {
  const { openEventStoreEventLog } = await import(
    '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
  )
  return openEventStoreEventLog({ url })
}

// requests go first; elsewhere the priority would be that of the whole process
if (process.platform === 'linux' && getPriority() < 10) setPriority(10)
void main(workerData)
