import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { EventRegistry } from '../../application/commands/event-registry.ts'
import { scaleTechnicalDeadlines } from '../../application/commands/technical-deadlines.ts'
import { describeError } from '../../application/followers/describe-error.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { openDatabase } from '../../infrastructure/database/database.ts'
import { openPostgresLogReader } from '../../infrastructure/event-store/postgres/log-reader.ts'
import type { CatchUpMessage, CatchUpTask } from '../../infrastructure/read-models/catch-up-thread.ts'
import { PostgresProjectionStore } from '../../infrastructure/read-models/projection-store.ts'
import { projections } from '../../projections/index.ts'
import { catchUp } from '../../projections/runtime/catch-up.ts'
import { categoryOf } from '../../projections/runtime/failures.ts'

/**
 * What a thread runs that catches up on a generation of a read model: with connections of its own, until it is there or is
 * told to stand still.
 */
async function main({ databaseUrl, eventStoreUrl, technicalDeadlineScale, arrears }: CatchUpTask) {
  scaleTechnicalDeadlines(technicalDeadlineScale)
  const main = parentPort!
  const standingStill = new AbortController()
  main.once('message', () => standingStill.abort())
  const say = (message: CatchUpMessage) => main.postMessage(message)
  const database = await openDatabase({ url: databaseUrl, applicationName: 'compstream catch-up' })
  const log = await openLog()
  try {
    await catchUp(
      {
        projections,
        log,
        registry: new EventRegistry(aggregates),
        store: new PostgresProjectionStore(database),
      },
      arrears,
      {
        reached: (position) => say({ kind: 'reached', position }),
        stored: (events, ms) => say({ kind: 'stored', events, ms }),
      },
      standingStill.signal,
    )
  } catch (error) {
    say({ kind: 'failed', category: categoryOf(error), message: describeError(error) })
  } finally {
    await log.close()
    await database.close()
    main.close()
  }

  async function openLog() {
    if (eventStoreUrl === null) return openPostgresLogReader(database, arrears.upTo)
    const { openEventStoreEventLog } = await import(
      '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
    )
    return openEventStoreEventLog({ url: eventStoreUrl })
  }
}

// requests go first; elsewhere a priority is that of the whole process
if (process.platform === 'linux') setPriority(10)
void main(workerData)
