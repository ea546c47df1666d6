import { connect, Events, type NatsConnection } from 'nats'

/** NATS cannot be used; the message is one clear line without credentials. */
export class NatsUnavailable extends Error {
  override readonly name = 'NatsUnavailable'
}

/** What the connection tells about itself. */
export interface NatsLog {
  warn(text: string): void
  info(text: string): void
}

const CONNECT_MS = 3_000
const RECONNECT_MS = 250
/** A server that stopped answering without a word is given up after two of these. */
const PING_MS = 5_000

/**
 * The one connection of this process to NATS. It reconnects for ever; what needs NATS asks
 * {@link connected} and does without it meanwhile.
 */
export class Nats {
  readonly connection: NatsConnection
  readonly #log: NatsLog
  readonly #listeners = new Set<(connected: boolean) => void>()
  #connected = true

  private constructor(connection: NatsConnection, log: NatsLog) {
    this.connection = connection
    this.#log = log
    void this.#watch()
  }

  /**
   * @param urls `nats://` or `tls://` addresses of one server or one cluster, with user and password, or a token,
   *   before an `@` in any of them.
   * @throws NatsUnavailable when no server answers, refuses the credentials or has no JetStream.
   */
  static async open(urls: readonly string[], log: NatsLog): Promise<Nats> {
    const servers = urls.map((url) => new URL(url))
    const where = servers.map(hostOf).join(', ')
    let connection: NatsConnection
    try {
      connection = await connect({
        servers: servers.map(hostOf),
        ...credentialsOf(servers),
        ...(servers.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}),
        name: 'compstream',
        // notices are delivered inside a process without a detour over the server
        noEcho: true,
        timeout: CONNECT_MS,
        pingInterval: PING_MS,
        maxPingOut: 2,
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_MS,
        // credentials may be exchanged while the service runs: refusals pass
        ignoreAuthErrorAbort: true,
      })
    } catch (error) {
      throw new NatsUnavailable(`NATS at ${where}: ${reasonOf(error)}`)
    }
    try {
      await (await connection.jetstreamManager({ timeout: CONNECT_MS })).getAccountInfo()
    } catch (error) {
      await connection.close()
      throw new NatsUnavailable(`NATS at ${where}: JetStream does not answer (${reasonOf(error)})`)
    }
    return new Nats(connection, log)
  }

  get connected(): boolean {
    return this.#connected && !this.connection.isClosed()
  }

  /** Hears of every loss and every return of the connection. @returns how to stop. */
  onChange(listener: (connected: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Resolves when it is connected; with the signal's abort at the latest. */
  async available(signal: AbortSignal): Promise<void> {
    if (this.connected || signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = () => {
        stop()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const stop = this.onChange((connected) => {
        if (connected) done()
      })
      signal.addEventListener('abort', done)
    })
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    await this.connection.close()
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.connection.status()) {
      if (type === Events.Disconnect) this.#become(false)
      else if (type === Events.Reconnect) this.#become(true)
    }
  }

  #become(connected: boolean): void {
    if (connected === this.#connected) return
    this.#connected = connected
    if (connected) this.#log.info('NATS is connected again')
    else this.#log.warn('the connection to NATS was lost; the service goes on by looking from time to time')
    for (const listener of this.#listeners) listener(connected)
  }
}

function hostOf(url: URL): string {
  return `${url.hostname}:${url.port || '4222'}`
}

/** The client takes credentials as options only. */
function credentialsOf(
  servers: readonly URL[],
): { readonly user: string; readonly pass: string } | { readonly token: string } | Record<never, never> {
  const url = servers.find(({ username }) => username !== '')
  if (!url) return {}
  const user = decodeURIComponent(url.username)
  return url.password === '' ? { token: user } : { user, pass: decodeURIComponent(url.password) }
}

const REASONS: Readonly<Record<string, string>> = {
  CONNECTION_REFUSED: 'connection refused',
  TIMEOUT: 'no answer',
  AUTHORIZATION_VIOLATION: 'the credentials are refused',
  '503': 'it is not enabled',
}

/** Texts of the client may quote the address with its credentials: only codes are told. */
function reasonOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string'
    ? (REASONS[code] ?? code.toLowerCase().replaceAll('_', ' '))
    : 'no connection'
}
