import { setTimeout as delay } from 'node:timers/promises'
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  Events,
  type NatsConnection,
  nkeyAuthenticator,
} from 'nats'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import { NatsUnavailable } from './errors.ts'

/** What the connection tells about itself. */
export interface NatsLog {
  warn(text: string): void
  info(text: string): void
}

/** How to a server beside what its address says; null: not given. */
export interface NatsAccess {
  /** Seed of the user's nkey. */
  readonly nkeySeed: string | null
  /** Content of the user's creds file. */
  readonly creds: string | null
  /** PEM texts: CAs of the servers, and the certificate and key of this client. Any of them requires TLS. */
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
}
const NO_ACCESS: NatsAccess = { nkeySeed: null, creds: null, ca: null, cert: null, key: null }

const CONNECT_MS = 3_000
const RECONNECT_MS = 250
/** A server that stopped answering without a word is given up after two of these. */
const PING_MS = 5_000

/**
 * The one connection of this process to NATS. It reconnects for ever; what needs NATS asks
 * {@link connected} and does without it meanwhile.
 */
export class Nats {
  readonly #log: NatsLog
  readonly #listeners = new Set<(connected: boolean) => void>()
  readonly #closing = new AbortController()
  #connection: NatsConnection | null = null
  #connected = false

  private constructor(log: NatsLog) {
    this.#log = log
  }

  /**
   * @param urls `nats://` or `tls://` addresses of one server or one cluster, with user and password, or a token,
   *   before an `@` in any of them.
   * @throws NatsUnavailable when no server answers, refuses the credentials or has no JetStream.
   */
  static async open(urls: readonly string[], log: NatsLog, access = NO_ACCESS): Promise<Nats> {
    const nats = new Nats(log)
    nats.#take(await connectOnce(urls, access))
    return nats
  }

  /** As {@link open}, where no server answers: it goes on trying in the background. */
  static openLater(urls: readonly string[], log: NatsLog, access = NO_ACCESS): Nats {
    const nats = new Nats(log)
    void nats.#connectLater(urls, access)
    return nats
  }

  /** @throws NatsUnavailable while there never was a connection. */
  get connection(): NatsConnection {
    if (!this.#connection) throw new NatsUnavailable('NATS is not connected yet', { isAway: true })
    return this.#connection
  }

  /**
   * Of the server that is connected, or was last, as {@link natsAddresses} tells it.
   * @throws NatsUnavailable while there never was a connection.
   */
  get address(): string {
    return this.connection.getServer()
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
    this.#closing.abort()
    await this.#connection?.close()
  }

  async #connectLater(urls: readonly string[], access: NatsAccess): Promise<void> {
    let told = ''
    while (!this.#closing.signal.aborted) {
      try {
        const connection = await connectOnce(urls, access)
        if (this.#closing.signal.aborted) await connection.close()
        else {
          this.#take(connection)
          this.#log.info('NATS is connected')
          for (const listener of this.#listeners) listener(true)
        }
        return
      } catch (error) {
        const why = error instanceof NatsUnavailable ? error.message : 'no connection'
        if (why !== told) this.#log.warn(`${why}; the service goes on by looking from time to time`)
        told = why
        await delay(RECONNECT_MS, null, { signal: this.#closing.signal }).catch(() => undefined)
      }
    }
  }

  #take(connection: NatsConnection): void {
    this.#connection = connection
    this.#connected = true
    void this.#watch(connection)
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
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

/** Addresses as they may be shown and remembered: `host:port`, without credentials. */
export function natsAddresses(urls: readonly string[]): readonly string[] {
  return urls.map((url) => hostOf(new URL(url)))
}

/** @throws NatsUnavailable */
async function connectOnce(urls: readonly string[], access: NatsAccess): Promise<NatsConnection> {
  const servers = urls.map((url) => new URL(url))
  const where = servers.map(hostOf).join(', ')
  let connection: NatsConnection
  try {
    connection = await connect({
      servers: servers.map(hostOf),
      ...credentialsOf(servers, access),
      ...tlsOf(servers, access),
      name: 'compstream',
      // notices are delivered inside a process without a detour over the server
      noEcho: true,
      timeout: technicalDeadline(CONNECT_MS),
      pingInterval: PING_MS,
      maxPingOut: 2,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_MS,
      // credentials may be exchanged while the service runs: refusals pass
      ignoreAuthErrorAbort: true,
    })
  } catch (error) {
    throw new NatsUnavailable(`NATS at ${where}: ${reasonOf(error)}`, { isAway: isNoAnswer(error) })
  }
  try {
    await (await connection.jetstreamManager({ timeout: technicalDeadline(CONNECT_MS) })).getAccountInfo()
    return connection
  } catch (error) {
    await connection.close()
    const why = `JetStream does not answer (${reasonOf(error)})`
    throw new NatsUnavailable(`NATS at ${where}: ${why}`, { isAway: isNoAnswer(error) })
  }
}

function hostOf(url: URL): string {
  // as the client tells it
  return `${url.hostname.toLowerCase()}:${url.port || '4222'}`
}

/** The client takes credentials as options only. */
function credentialsOf(
  servers: readonly URL[],
  { nkeySeed, creds }: NatsAccess,
): Pick<ConnectionOptions, 'user' | 'pass' | 'token' | 'authenticator'> {
  if (nkeySeed !== null) return { authenticator: nkeyAuthenticator(Buffer.from(nkeySeed)) }
  // the client finds no last line that does not end
  if (creds !== null) return { authenticator: credsAuthenticator(Buffer.from(`${creds}\n`)) }
  const url = servers.find(({ username }) => username !== '')
  if (!url) return {}
  const user = decodeURIComponent(url.username)
  return url.password === '' ? { token: user } : { user, pass: decodeURIComponent(url.password) }
}

function tlsOf(servers: readonly URL[], { ca, cert, key }: NatsAccess): Pick<ConnectionOptions, 'tls'> {
  const given = { ...(ca !== null && { ca }), ...(cert !== null && key !== null && { cert, key }) }
  const isTls = servers.some(({ protocol }) => protocol === 'tls:') || Object.keys(given).length > 0
  return isTls ? { tls: given } : {}
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

/** Whether a server may be there later; one that refuses credentials, or has no JetStream, is there. */
function isNoAnswer(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return !REFUSALS.includes(String(code))
}
const REFUSALS: readonly string[] = [
  'AUTHORIZATION_VIOLATION',
  'AUTHENTICATION_EXPIRED',
  'PERMISSIONS_VIOLATION',
  '503',
]
