import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import { ServiceUnavailable } from '../../application/ports/unavailable.ts'

const CONNECT_TIMEOUT_MS = 10_000
/** How long a statement waits for a connection of its pool, or for a new one. */
const CHECK_OUT_MS = 5_000
/** How much longer than the server may take a statement is waited for: the server's own answer comes first. */
const GRACE_MS = 2_000
/** How long nothing at all comes as an answer before the server is asked, on another connection, what it does on this one. */
const SILENT_MS = 2_000
/** The same for a connection that was last heard of before another one was found to lead nowhere. */
const SUSPECT_MS = 200
/** How long what the server has sent may be on its way. */
const ON_THE_WAY_MS = 500

/**
 * How long a statement may take, in milliseconds, by what it is for. The server ends it then, unless the url sets a
 * `statement_timeout` of its own; {@link GRACE_MS} later this side ends the connection, whatever became of the server.
 */
export const STATEMENT_LIMIT_MS = {
  /** What a caller waits for. */
  request: 10_000,
  /** Shorter than a lease lasts. */
  lease: 3_000,
  /** A page of a projection, a step of a process manager. */
  background: 60_000,
  /** A page of the event log. */
  log: 10_000,
  /** What appends to the log; its connection counts as lost sooner, when nothing at all comes from the server. */
  append: 30_000,
  /** Making and dropping tables, holding two generations of a read model against each other, migrations, moves. */
  long: 60 * 60_000,
} as const

/** Settings of a session whose locks tell of its process: PostgreSQL ends that of a machine that vanished within 30 seconds. */
export const KEEPALIVES = {
  tcp_keepalives_idle: '15',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '30s',
} as const

/** Where the database part reports; pino's loggers fit. Messages never hold statements' values or passwords. */
export interface DatabaseLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** The database cannot be reached or used in time; the message is one clear line without the password. */
export class DatabaseUnavailable extends ServiceUnavailable {
  /** The address without the user: `host:port/name`. */
  readonly target: string
  constructor(
    target: string,
    why: string,
    cause?: unknown,
    options: { passes: boolean; retryAfterSeconds?: number } = { passes: true },
  ) {
    super(`PostgreSQL at ${target}: ${why}`, { cause, ...options })
    this.name = 'DatabaseUnavailable'
    this.target = target
  }
}

const SOCKET_ERRORS: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTCONN'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN'],
])

/** Whether an error means that the connection is gone, so that the outcome of what ran on it is unknown. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnavailable) return true
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (typeof code === 'string') {
    // connection exceptions, shutdowns and terminated sessions, sessions that idled too long
    return /^(08...|57P0[1-5]|25P0[34])$/.test(code) || SOCKET_ERRORS.has(code) || syscall === 'connect'
  }
  return /^(Connection terminated|Client (has encountered a connection error|was closed)|timeout e|the connection was closed|Query read timeout)/.test(
    error.message,
  )
}

/** The server ended a statement whose time was up. */
const TIME_IS_UP = '57014'

/** Whether an error is about the server or the way to it, not about what was asked of it. */
function isUnavailable(error: unknown): boolean {
  // the statement's time is up, a resource ran out, a standby has not taken over yet, sessions are refused
  return (
    isConnectionLoss(error) ||
    codeOf(error) === TIME_IS_UP ||
    /^(53...|25006|28...|3D000)$/.test(codeOf(error))
  )
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown })?.code)
}

/** The error as {@link DatabaseUnavailable} where it is about the server, else as it is. */
export function orUnavailable(target: string, error: unknown): unknown {
  if (error instanceof DatabaseUnavailable || !isUnavailable(error)) return error
  // a server that answers is not away: what was asked may take too long whenever it is asked, or not
  const options = codeOf(error) === TIME_IS_UP ? { passes: false, retryAfterSeconds: 2 } : { passes: true }
  return new DatabaseUnavailable(target, oneLine(error), error, options)
}

/** What went wrong with a connection in one line; never the url. */
export function oneLine(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return oneLine(error.errors[0])
  const { message, code } = error as { message?: string; code?: string }
  const text = (message || code || String(error)).replace(/\s+/g, ' ').trim()
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

/** A checked database url. */
export interface DatabaseTarget {
  /** `host:port/name`, for messages. */
  readonly name: string
  /**
   * pg's configuration with session settings beside those of the url.
   * @param statementMs how long the server may take over a statement, see {@link STATEMENT_LIMIT_MS}.
   */
  config(
    applicationName: string,
    statementMs: number,
    settings?: Readonly<Record<string, string>>,
  ): pg.ClientConfig
}

/** @throws DatabaseUnavailable when it is no PostgreSQL url. */
export function parseDatabaseUrl(url: string): DatabaseTarget {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw new DatabaseUnavailable(
      'the given address',
      'it is no url, expected postgresql://user:password@host:port/name',
    )
  }
  if (!/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new DatabaseUnavailable('the given address', `${parsed.protocol}// is not postgresql://`)
  }
  const host = parsed.hostname || parsed.searchParams.get('host') || 'localhost'
  // what stands in a connection string wins over all else in pg, so settings of ours are merged into it
  const given = parsed.searchParams.get('options')
  parsed.searchParams.delete('options')
  parsed.searchParams.delete('application_name')
  const connectionString = parsed.toString()
  return {
    name: `${host}:${parsed.port || '5432'}${parsed.pathname}`,
    config: (applicationName, statementMs, settings = {}) => {
      const own = Object.entries({
        TimeZone: 'UTC',
        client_min_messages: 'warning',
        ...(given?.includes('statement_timeout')
          ? {}
          : { statement_timeout: String(technicalDeadline(statementMs)) }),
        ...settings,
      })
      const options = own.map(([name, value]) => `-c ${name}=${value.replace(/([\\ ])/g, '\\$1')}`)
      return {
        connectionString,
        application_name: applicationName,
        options: [...(given ? [given] : []), ...options].join(' '),
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000,
        connectionTimeoutMillis: technicalDeadline(CONNECT_TIMEOUT_MS),
        query_timeout: technicalDeadline(statementMs + GRACE_MS),
      }
    },
  }
}

/** @param ms how long it took, its answer included, in milliseconds. */
export type OnStatement = (name: string, ms: number) => void

/** The configuration of a connection that tells which prepared statements it made. */
type TimedConfig = pg.ClientConfig & { readonly onStatement?: OnStatement | undefined }

/** When a connection was last found to lead nowhere, real milliseconds of this process. */
let lastDeadEnd = Number.NEGATIVE_INFINITY
/** One question at a time: a server that is slow gets one more session from this process, not many. */
let asking: Promise<unknown> = Promise.resolve()

/**
 * A client that ends its connection when a statement's time is up on this side: what the server may still send would
 * be taken for the answer to the next statement. A connection that leads nowhere is ended within seconds, however long
 * the statement may take: an answer is awaited, nothing comes, and the server, asked on another connection, has nothing
 * to do on this one.
 */
class DeadlineClient extends pg.Client {
  readonly #config: TimedConfig | undefined
  #watch: NodeJS.Timeout | undefined
  #heardAt = performance.now()

  constructor(config?: TimedConfig) {
    super(config)
    this.#config = config
    this.on('drain', () => {
      this.#heardAt = performance.now()
      this.#unwatch()
    })
    this.on('end', () => this.#unwatch())
  }

  #unwatch(): void {
    clearTimeout(this.#watch)
    this.#watch = undefined
  }

  #watchFor(ms: number): void {
    const stream = this.connection.stream as Socket
    const heard = stream.bytesRead
    const watch = setTimeout(async () => {
      const isSilent = () => this.#watch === watch && stream.bytesRead === heard
      if (isSilent() && (await this.#isIdle(isSilent))) {
        await delay(technicalDeadline(ON_THE_WAY_MS))
        if (isSilent()) {
          lastDeadEnd = performance.now()
          stream.destroy(Object.assign(new Error('the connection leads nowhere'), { code: 'ETIMEDOUT' }))
        }
      }
      if (this.#watch === watch) this.#watchFor(SILENT_MS)
    }, technicalDeadline(ms))
    watch.unref()
    this.#watch = watch
  }

  /** Whether the server waits for a statement of this session. False where it does not say. */
  #isIdle(isWanted: () => boolean): Promise<boolean> {
    const { processID } = this as { processID?: number | null }
    const asked = asking.then(async () => {
      if (!isWanted() || !processID) return false
      const limit = technicalDeadline(SILENT_MS)
      const other = new pg.Client({
        ...this.#config,
        connectionTimeoutMillis: limit,
        query_timeout: limit,
      })
      other.on('error', () => undefined)
      try {
        await other.connect()
        // what a session does is shown to the user that it belongs to
        await other.query('SET ROLE NONE')
        const { rowCount } = await other.query(
          `SELECT FROM pg_stat_activity
           WHERE pid = $1 AND application_name = current_setting('application_name') AND state LIKE 'idle%'`,
          [processID],
        )
        return rowCount === 1
      } catch {
        return false
      } finally {
        void endClient(other)
      }
    })
    asking = asked
    return asked
  }

  /** @returns what is called when the statement of a name, begun now, is over. */
  #timed(name: string | undefined): (() => void) | undefined {
    const onStatement = this.#config?.onStatement
    if (!onStatement || name === undefined) return undefined
    const begun = performance.now()
    return () => onStatement(name, performance.now() - begun)
  }

  // biome-ignore lint/suspicious/noExplicitAny: stands for all overloads
  override query(...statement: any[]): any {
    if (!this.#watch) this.#watchFor(this.#heardAt < lastDeadEnd ? SUSPECT_MS : SILENT_MS)
    const told = this.#timed(statement[0]?.name)
    const callback: unknown = statement.at(-1)
    if (told && typeof callback === 'function') {
      statement[statement.length - 1] = (...answer: unknown[]) => {
        told()
        callback(...answer)
      }
    }
    const answer: unknown = super.query(...(statement as [string]))
    if (told && answer instanceof Promise) answer.then(told, told)
    // a caller with a callback, as the pool, ends the connection by itself
    if (answer instanceof Promise) {
      answer.catch((error: Error) => {
        if (error.message === 'Query read timeout') void this.end()
      })
    }
    return answer
  }
}

/** A pool whose failures are {@link DatabaseUnavailable} where they are about the server; takes no callbacks. */
export class DeadlinePool extends pg.Pool {
  readonly #target: string

  constructor(target: DatabaseTarget, config: pg.PoolConfig & TimedConfig) {
    super({ ...config, Client: DeadlineClient, connectionTimeoutMillis: technicalDeadline(CHECK_OUT_MS) })
    this.#target = target.name
  }

  // biome-ignore lint/suspicious/noExplicitAny: stands for all overloads
  override connect(callback?: any): any {
    // the pool itself gives one
    if (callback) return super.connect(callback)
    return super.connect().catch((error: unknown) => {
      throw orUnavailable(this.#target, error)
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: stands for all overloads
  override async query(...statement: any[]): Promise<any> {
    try {
      return await super.query(...(statement as [string]))
    } catch (error) {
      throw orUnavailable(this.#target, error)
    }
  }
}

/** Connects once. @throws DatabaseUnavailable */
export async function connectClient(target: DatabaseTarget, config: TimedConfig): Promise<pg.Client> {
  const client = new DeadlineClient(config)
  // a session that is ended as soon as it stands would end the process; its user gets the error
  client.on('error', () => undefined)
  try {
    await client.connect()
    return client
  } catch (error) {
    void endClient(client)
    throw new DatabaseUnavailable(target.name, oneLine(error))
  }
}

const END_LIMIT_MS = 2_000

/** Ends a connection; does not wait for a server that has vanished. Never rejects. */
export function endClient(client: pg.Client): Promise<void> {
  return ended(client.end())
}

/** Waits for an end, but not for a server that has vanished. Never rejects. */
export async function ended(end: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, END_LIMIT_MS)
  })
  await Promise.race([end.catch(() => undefined), limit])
  clearTimeout(timer)
}
