import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type MovableLog, MoveInterrupted, MoveRefused } from '../../application/ports/movable-log.ts'
import { ConfigError, databaseUrlWithPassword } from '../../infrastructure/config/config.ts'
import { readSecretFile } from '../../infrastructure/config/secret-files.ts'
import { parseKeys } from '../../infrastructure/config/setting-kinds.ts'
import { MasterKeys } from '../../infrastructure/crypto/master-keys.ts'
import { type Database, DatabaseUnavailable, openDatabase } from '../../infrastructure/database/database.ts'
import { migrate } from '../../infrastructure/database/migrate.ts'
import {
  EmbeddedPostgresError,
  startEmbeddedPostgres,
} from '../../infrastructure/embedded-postgres/embedded-postgres.ts'
import {
  EventStoreUnavailable,
  StreamTampered,
} from '../../infrastructure/event-store/eventstoredb/errors.ts'
import { openMovableEventStoreLog } from '../../infrastructure/event-store/eventstoredb/movable-log.ts'
import { openMovablePostgresLog } from '../../infrastructure/event-store/postgres/movable-log.ts'
import { OtherEventLog } from '../../infrastructure/installation/log-pairing.ts'
import { CliError, UsageError } from './io.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Where a database of an installation is. */
export type DatabasePlace =
  | { readonly engine: 'postgresql'; readonly url: string }
  | { readonly engine: 'postgresql'; readonly dataDir: string }

/** Where a log is. */
export type Place = DatabasePlace | { readonly engine: 'eventstoredb'; readonly url: string }

/**
 * Reads where something is: an address; the name of an environment variable that holds one, or of which
 * `<NAME>_FILE` names a file with it; `embedded` for the embedded server in DATA_DIR; or a data directory.
 * @throws UsageError, ConfigError; messages never quote an address.
 */
export function placeOf(option: string, given: string, env: Env): Place {
  const address = /^[A-Z][A-Z0-9_]*$/.test(given) ? fromEnvironment(option, given, env) : given
  if (/^(postgres|postgresql):\/\//.test(address)) return { engine: 'postgresql', url: address }
  if (/^(esdb|kurrentdb)(\+discover)?:\/\//.test(address)) return { engine: 'eventstoredb', url: address }
  if (address.includes('://') || address !== given) {
    throw new UsageError(`${option} takes an address that begins with postgresql:// or esdb://.`)
  }
  const dataDir = resolve(given === 'embedded' ? env.DATA_DIR?.trim() || 'data' : given)
  // a mistyped name must not become a new, empty server
  if (!existsSync(join(dataDir, 'postgres', 'PG_VERSION'))) {
    throw new UsageError(`${option}: ${dataDir} holds no embedded server.`)
  }
  return { engine: 'postgresql', dataDir }
}

function fromEnvironment(option: string, name: string, env: Env): string {
  const address = settingOf(name, env)
  if (!address) throw new UsageError(`${option}: the variable ${name} is not set, nor is ${name}_FILE.`)
  if (name !== 'DATABASE_URL') return address
  const password = settingOf('DATABASE_PASSWORD', env)
  return password ? databaseUrlWithPassword(address, password) : address
}

/**
 * The master keys to open and wrap keys with when they move: the first is that of the service on the target, from
 * MASTER_KEY, MASTER_KEY_FILE or the target's data directory; the one in the source's data directory only opens.
 * @param source null: nothing moves, the service's own keys are wanted.
 * @returns null when the target's is not known.
 * @throws ConfigError
 */
export function masterKeysFor(
  target: DatabasePlace,
  source: DatabasePlace | null,
  env: Env,
): MasterKeys | null {
  const ofTarget = settingOf('MASTER_KEY', env) ?? keyFileOf(target)
  if (ofTarget === null) return null
  const texts = [ofTarget, source && keyFileOf(source)].filter((text) => text !== null)
  const keys = texts.map((text) => {
    const parsed = parseKeys(text)
    if (!parsed)
      throw new ConfigError('MASTER_KEY is malformed: expected 32 bytes in base64, or a comma list of such')
    return parsed
  })
  return new MasterKeys(keys.flat())
}

/** The master key beside an embedded server; null when it has none. */
function keyFileOf(place: DatabasePlace): string | null {
  if (!('dataDir' in place)) return null
  const path = join(place.dataDir, 'master-key')
  return existsSync(path) ? readSecretFile(path, path) : null
}

/** A setting from the environment, or from the file that `<NAME>_FILE` names; null where there is none. @throws ConfigError */
export function settingOf(name: string, env: Env): string | null {
  const file = env[`${name}_FILE`]?.trim()
  return (file ? readSecretFile(`${name}_FILE`, file) : env[name]?.trim()) || null
}

/** How what was opened is closed, in reverse order. */
export type Closers = (() => Promise<unknown>)[]

/** What is said of a command that may be started again. */
export const GOES_ON = '; the same command goes on from here'

/** Failures whose message is one clear line. */
const EXPECTED = [
  ...[MoveRefused, MoveInterrupted, OtherEventLog, ConfigError, StreamTampered],
  ...[DatabaseUnavailable, EmbeddedPostgresError, EventStoreUnavailable],
]

/** Does the work of a command on storage, and closes what it opened. @param goesOn see {@link GOES_ON}. @throws CliError */
export async function withClosers<T>(
  signal: AbortSignal,
  work: (closers: Closers) => Promise<T>,
  goesOn = '',
): Promise<T> {
  const closers: Closers = []
  try {
    return await work(closers)
  } catch (error) {
    if (signal.aborted) throw new CliError(`stopped${goesOn}`)
    if (!EXPECTED.some((kind) => error instanceof kind)) throw error
    throw new CliError(`${(error as Error).message}${error instanceof MoveInterrupted ? goesOn : ''}`)
  } finally {
    for (const close of closers.reverse()) await close().catch(() => undefined)
  }
}

/** Starts the embedded server of a data directory. */
export async function embeddedUrl(dataDir: string, closers: Closers): Promise<string> {
  const server = await startEmbeddedPostgres({ dataDir })
  closers.push(() => server.stop())
  return server.url
}

/** How messages call the database of a place. */
export function nameOf(place: DatabasePlace): { readonly name?: string } {
  return 'dataDir' in place ? { name: place.dataDir } : {}
}

/** Opens places, each once however often it is asked for. */
export class OpenPlaces {
  readonly #databases = new Map<string, Promise<Database>>()
  readonly #closers: Closers

  constructor(closers: Closers) {
    this.#closers = closers
  }

  /** @throws what the engine says when it cannot be used, or is in use. */
  async log(place: Place): Promise<MovableLog> {
    const log =
      place.engine === 'eventstoredb'
        ? await openMovableEventStoreLog(place.url)
        : await openMovablePostgresLog(await this.database(place))
    this.#closers.push(() => log.close())
    return log
  }

  /** Brings the database to this program's schema, as a start of the service does. */
  database(place: DatabasePlace): Promise<Database> {
    const key = 'url' in place ? place.url : place.dataDir
    const known = this.#databases.get(key)
    if (known) return known
    const opening = this.#open(place)
    this.#databases.set(key, opening)
    return opening
  }

  async #open(place: DatabasePlace): Promise<Database> {
    const url = 'url' in place ? place.url : await embeddedUrl(place.dataDir, this.#closers)
    await migrate({ url })
    // not the name that services have: they are told apart by it
    const database = await openDatabase({ url, ...nameOf(place), applicationName: 'compstream-copy' })
    this.#closers.push(() => database.close())
    return database
  }
}

/** Whether two places are the same one, as far as their addresses tell. */
export function isSamePlace(one: Place, other: Place): boolean {
  if ('dataDir' in one || 'dataDir' in other) {
    return 'dataDir' in one && 'dataDir' in other && one.dataDir === other.dataDir
  }
  return withoutUser(one.url) === withoutUser(other.url)
}

function withoutUser(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//').replace(/\?.*$/s, '')
}
