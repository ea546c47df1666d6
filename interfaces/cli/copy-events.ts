import { LogsDiffer } from '../../application/moving/comparison.ts'
import { ChainBroken, type LogAccount, proveLog } from '../../application/moving/log-proof.ts'
import {
  type MoveAccount,
  type MovePhase,
  moveLog,
  SourceTooShort,
  WrittenMeanwhile,
} from '../../application/moving/move-log.ts'
import { MoveInterrupted } from '../../application/ports/movable-log.ts'
import { ConfigError } from '../../infrastructure/config/config.ts'
import { DatabaseUnavailable } from '../../infrastructure/database/database.ts'
import { EmbeddedPostgresError } from '../../infrastructure/database/embedded-postgres.ts'
import { OtherEventLog } from '../../infrastructure/database/log-binding.ts'
import { DatabaseInUse, PostgresStoredPositions } from '../../infrastructure/database/stored-positions.ts'
import {
  EventStoreUnavailable,
  StreamTampered,
} from '../../infrastructure/event-store/eventstoredb/errors.ts'
import { projections } from '../../projections/index.ts'
import { CliError, UsageError } from './io.ts'
import { isSamePlace, OpenPlaces, type Place, placeOf } from './log-places.ts'

/** What a command works with: settings, where it reports, and when it is to stop. */
interface Given {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Told of every page: events so far, and the share of the log that they are, 0 to 1. */
  readonly report: (phase: MovePhase, events: number, share: number) => void
  readonly signal: AbortSignal
}

/** Failures whose message is one clear line. */
const EXPECTED = [
  ...[LogsDiffer, ChainBroken, WrittenMeanwhile, SourceTooShort, MoveInterrupted, OtherEventLog, ConfigError],
  ...[DatabaseInUse, DatabaseUnavailable, EmbeddedPostgresError, EventStoreUnavailable, StreamTampered],
]

/** Copies a whole log. @throws CliError, UsageError */
export function copyEvents(
  options: Given & { readonly from: string; readonly to: string; readonly checkpointsOf?: string },
): Promise<MoveAccount> {
  const { env, signal } = options
  return withPlaces(signal, async (places) => {
    const from = placeOf('--from', options.from, env)
    const to = placeOf('--to', options.to, env)
    if (isSamePlace(from, to)) throw new UsageError('--from and --to name the same log.')
    const installation = databaseOf(options.checkpointsOf, from, to, env)
    const source = await places.log(from)
    const target = await places.log(to)
    const positions =
      installation &&
      new PostgresStoredPositions(await places.database(installation), {
        from: from.engine,
        to: to.engine,
        tables: projections.flatMap(({ tables }) => tables),
      })
    const report = ({ phase, events, share }: { phase: MovePhase; events: number; share: number }) =>
      options.report(phase, events, share)
    return moveLog({ source, target, positions, report, signal })
  })
}

/** Checks one log. @throws CliError, UsageError */
export function verifyEvents(options: Given & { readonly at: string }): Promise<LogAccount> {
  return withPlaces(options.signal, async (places) => {
    const log = await places.log(placeOf('--at', options.at, options.env))
    return proveLog(log, (events, share) => options.report('proving', events, share), options.signal)
  })
}

/** The database whose checkpoints move along; null for none. */
function databaseOf(
  named: string | undefined,
  from: Place,
  to: Place,
  env: Given['env'],
): Extract<Place, { engine: 'postgresql' }> | null {
  if (named === 'none') return null
  if (named !== undefined) {
    const place = placeOf('--checkpoints-of', named, env)
    if (place.engine !== 'postgresql') throw new UsageError('--checkpoints-of takes a PostgreSQL database.')
    // opened once, under whichever name
    return [from, to].filter(isPostgres).find((side) => isSamePlace(side, place)) ?? place
  }
  const sides = [from, to].filter(isPostgres)
  return sides.length === 1 ? sides[0]! : null
}

function isPostgres(place: Place): place is Extract<Place, { engine: 'postgresql' }> {
  return place.engine === 'postgresql'
}

async function withPlaces<T>(signal: AbortSignal, work: (places: OpenPlaces) => Promise<T>): Promise<T> {
  const places = new OpenPlaces()
  try {
    return await work(places)
  } catch (error) {
    if (signal.aborted) throw new CliError('stopped; the same command goes on from here')
    if (!EXPECTED.some((kind) => error instanceof kind)) throw error
    const hint = error instanceof MoveInterrupted ? '; the same command goes on from here' : ''
    throw new CliError(`${(error as Error).message}${hint}`)
  } finally {
    await places.close()
  }
}
