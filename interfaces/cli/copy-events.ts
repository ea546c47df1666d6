import { isSameDatabase } from '../../infrastructure/database/database.ts'
import { PostgresMovedDatabase } from '../../infrastructure/installation/moved-database.ts'
import { type LogAccount, proveLog } from '../../infrastructure/installation/moving/log-proof.ts'
import { type MoveAccount, moveLog } from '../../infrastructure/installation/moving/move-log.ts'
import { UsageError } from './io.ts'
import {
  type DatabasePlace,
  GOES_ON,
  isSamePlace,
  masterKeysFor,
  OpenPlaces,
  type Place,
  placeOf,
  withClosers,
} from './log-places.ts'

/** What a command works with: settings, where it reports, and when it is to stop. */
export interface Given {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Told of every page: events so far, and the share of the log that they are, 0 to 1. */
  readonly report: (phase: string, events: number, share: number) => void
  readonly signal: AbortSignal
}

interface CopyOptions {
  readonly from: string
  readonly to: string
  readonly fromDatabase?: string
  readonly toDatabase?: string
  readonly logOnly?: boolean
}

/** Copies a whole log, with what belongs to it unless the log alone is wanted. @throws CliError, UsageError */
export function copyEvents(options: Given & CopyOptions): Promise<MoveAccount> {
  const { env, signal } = options
  return withPlaces(signal, async (places) => {
    const from = placeOf('--from', options.from, env)
    const to = placeOf('--to', options.to, env)
    // a log in EventStoreDB may stay while its database moves
    const stays = isSamePlace(from, to)
    if (stays && (to.engine === 'postgresql' || options.toDatabase === undefined)) {
      throw new UsageError('--from and --to name the same log.')
    }
    const given = options.logOnly ? noDatabases(options) : databasesOf(options, from, to, env)
    if (stays && given && isSamePlace(given.from, given.to)) {
      throw new UsageError('--from-database and --to-database name the same database, beside the same log.')
    }
    const source = await places.log(from)
    const target = await places.log(to)
    const database = given && (await openDatabases(places, given, { from, to }, env))
    return moveLog({
      ...{ source, target, database, signal },
      report: ({ phase, events, share }) => options.report(phase, events, share),
    })
  })
}

interface Databases {
  /** Belongs to the log that is copied. */
  readonly from: DatabasePlace
  /** Shall belong to the copy. */
  readonly to: DatabasePlace
}

async function openDatabases(
  places: OpenPlaces,
  given: Databases,
  logs: { readonly from: Place; readonly to: Place },
  env: Given['env'],
): Promise<PostgresMovedDatabase> {
  const from = await places.database(given.from)
  const other = await places.database(given.to)
  // one database may go by two addresses
  const to = (await isSameDatabase(from, other)) ? from : other
  return new PostgresMovedDatabase({
    from,
    to,
    engines: { source: logs.from.engine, target: logs.to.engine },
    masterKeys: masterKeysFor(given.to, given.from, env),
  })
}

/** Checks one log. @throws CliError, UsageError */
export function verifyEvents(options: Given & { readonly at: string }): Promise<LogAccount> {
  return withPlaces(options.signal, async (places) => {
    const log = await places.log(placeOf('--at', options.at, options.env))
    return proveLog(log, (events, share) => options.report('proving', events, share), options.signal)
  })
}

function noDatabases({ fromDatabase, toDatabase }: CopyOptions): null {
  if (fromDatabase === undefined && toDatabase === undefined) return null
  throw new UsageError('--log-only takes neither --from-database nor --to-database.')
}

/** A log in PostgreSQL stands in the database that belongs to it; beside EventStoreDB it is named, or stays the same. */
function databasesOf(options: CopyOptions, from: Place, to: Place, env: Given['env']): Databases {
  const sideOf = (option: '--from-database' | '--to-database', named: string | undefined, log: Place) => {
    const place = named === undefined ? null : placeOf(option, named, env)
    if (place && !isPostgres(place)) throw new UsageError(`${option} takes a PostgreSQL database.`)
    if (!isPostgres(log)) return place
    if (place && !isSamePlace(place, log)) {
      throw new UsageError(
        `${option} differs from the log's: a log in PostgreSQL stands in its own database.`,
      )
    }
    return log
  }
  const ofSource = sideOf('--from-database', options.fromDatabase, from)
  const ofTarget = sideOf('--to-database', options.toDatabase, to)
  const database = ofSource ?? ofTarget
  if (!database) {
    throw new UsageError(
      '--from-database is missing: the database that belongs to the log; --log-only copies the log without it.',
    )
  }
  return { from: database, to: ofTarget ?? database }
}

function isPostgres(place: Place): place is DatabasePlace {
  return place.engine === 'postgresql'
}

function withPlaces<T>(signal: AbortSignal, work: (places: OpenPlaces) => Promise<T>): Promise<T> {
  return withClosers(signal, (closers) => work(new OpenPlaces(closers)), GOES_ON)
}
