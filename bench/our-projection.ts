import type pg from 'pg'
import { EventRegistry } from '../application/commands/event-registry.ts'
import { systemClock } from '../infrastructure/clock/system-clock.ts'
import { HeldLeases } from '../infrastructure/ownership/leases.ts'
import { PostgresProjectionStore } from '../infrastructure/read-models/projection-store.ts'
import { Projections } from '../projections/runtime/projections.ts'
import { type LogPlace, openOurLog } from './our-log.ts'
import { type Layout, timesheet, timesheetsProjection } from './timesheets.ts'

/** Whether a commit of read models waits for the disk. The service does not wait: the log has the events. */
export type Commit = 'waits for the disk' | 'does not wait'

/**
 * Catches up by the service's projections in a process that knows nothing of the log; then checks what was counted.
 * @param table of the read model; a new one each time.
 * @returns milliseconds from starting the projection until its read model is at the head.
 */
export async function catchUp(
  place: LogPlace,
  table: string,
  { streams, events }: Layout,
  commit: Commit = 'does not wait',
): Promise<number> {
  const { log, database, close } = await openOurLog(place)
  const leases = await HeldLeases.open(database, { owner: table })
  const projection = timesheetsProjection(`timesheets_${table}`)
  const durable = commit === 'waits for the disk' ? waitingForDisk(database.background) : null
  const projections = new Projections({
    projections: [projection],
    log,
    registry: new EventRegistry([timesheet]),
    store: new PostgresProjectionStore(database, durable?.pool),
    leases,
    clock: systemClock,
  })
  let elapsed: number
  try {
    const started = performance.now()
    await projections.start()
    const reached = await projections.reached([projection.name], await log.head(), { timeoutMs: 120_000 })
    if (!reached) throw new Error('The projection did not catch up')
    elapsed = performance.now() - started
  } finally {
    await projections.stop()
  }
  durable?.check()
  const { rows } = await database.pool.query<{ timesheets: number; entries: number }>(
    `SELECT count(*)::int AS timesheets, sum(entries)::int AS entries FROM read_model.timesheets_${table}`,
  )
  expectCount(rows[0]!.timesheets, streams)
  expectCount(rows[0]!.entries, streams * events)
  await leases.close()
  await close()
  return elapsed
}

export function expectCount(found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${found} were counted instead of ${wanted}`)
}

const DOES_NOT_WAIT = "set_config('synchronous_commit', 'off', true)"
const WAITS = "set_config('synchronous_commit', 'on', true)"

/** A pool whose statements wait for the disk where the service's do not. `check` throws when there was none. */
function waitingForDisk(pool: pg.Pool): { pool: pg.Pool; check(): void } {
  let changed = 0
  const query = (config: pg.QueryConfig) => {
    const text = config.text.replace(DOES_NOT_WAIT, WAITS)
    if (text !== config.text) changed += 1
    return pool.query({ ...config, text })
  }
  return {
    // private fields of a pool are found through the pool itself only
    pool: new Proxy(pool, {
      get: (target, name) => {
        if (name === 'query') return query
        const value = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    }),
    check() {
      if (changed === 0) throw new Error(`No statement had ${DOES_NOT_WAIT}: nothing was made durable`)
    },
  }
}
