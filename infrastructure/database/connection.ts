import pg from 'pg'

const CONNECT_TIMEOUT_MS = 10_000

/** Where the database part reports; pino's loggers fit. Messages never hold statements' values or passwords. */
export interface DatabaseLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** The database cannot be reached or used; the message is one clear line without the password. */
export class DatabaseUnavailable extends Error {
  /** Where without who: `host:port/name`. */
  readonly target: string
  constructor(target: string, why: string) {
    super(`PostgreSQL at ${target}: ${why}`)
    this.name = 'DatabaseUnavailable'
    this.target = target
  }
}

/** Whether an error means that the connection is gone, so that the outcome of what ran on it is unknown. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnavailable) return true
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string') {
    // connection exceptions, shutdowns and terminated sessions, sessions that idled too long, errors of the socket
    return /^(08...|57P0[1-5]|25P0[34]|E[A-Z_]+)$/.test(code)
  }
  return /^(Connection terminated|Client (has encountered a connection error|was closed)|timeout exceeded|the connection was closed)/.test(
    error.message,
  )
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
  /** pg's configuration with session settings beside those of the url. */
  config(applicationName: string, settings: Readonly<Record<string, string>>): pg.ClientConfig
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
    config: (applicationName, settings) => {
      const own = Object.entries({ TimeZone: 'UTC', client_min_messages: 'warning', ...settings })
      const options = own.map(([name, value]) => `-c ${name}=${value.replace(/([\\ ])/g, '\\$1')}`)
      return {
        connectionString,
        application_name: applicationName,
        options: [...(given ? [given] : []), ...options].join(' '),
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      }
    },
  }
}

/** Connects once. @throws DatabaseUnavailable */
export async function connectClient(target: DatabaseTarget, config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(config)
  // a session that is ended as soon as it stands would end the process; who uses it hears of its end
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
export async function endClient(client: pg.Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, END_LIMIT_MS)
  })
  await Promise.race([client.end().catch(() => undefined), limit])
  clearTimeout(timer)
}
