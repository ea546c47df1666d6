import type { ClientRequest } from 'node:http'
import { Agent, type AgentOptions } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, createSecureContext, rootCertificates } from 'node:tls'
import { hostOf } from './target-addresses.ts'
import type { TargetGuard } from './target-guard.ts'

/** How long a connection waits for its next request, in milliseconds: less than common servers keep theirs. */
const IDLE_MS = 3_000
/** Connections that wait, of one target and of all together. */
const IDLE_OF_TARGET = 64
const IDLE_IN_ALL = 1_024
/** How long connections are opened before others have their turn, in milliseconds. */
const DIALLING_MS = 4

type Connected = (error: Error | null, socket?: Duplex) => void

/**
 * Connections to targets, kept for the next request. The addresses of a host are found and checked for each new
 * connection, which is made to them and no others: what the host resolves to afterwards does not matter.
 */
export class CheckedAgent extends Agent {
  readonly #guard: Pick<TargetGuard, 'addressesOf'>
  readonly #idle = new Set<Duplex>()
  readonly #dials: (() => void)[] = []

  /** @param extraCa PEM text of further authorities. */
  constructor(guard: Pick<TargetGuard, 'addressesOf'>, extraCa: string | null) {
    const options: AgentOptions = {
      keepAlive: true,
      maxFreeSockets: IDLE_OF_TARGET,
      timeout: IDLE_MS,
      scheduling: 'lifo',
      // one for all connections: each would read all certificates again
      secureContext: createSecureContext(extraCa === null ? {} : { ca: [...rootCertificates, extraCa] }),
    }
    super(options)
    this.#guard = guard
  }

  override createConnection(options: ConnectionOptions, connected: Connected): undefined {
    const hostname = hostOf(String(options.host))
    this.#guard.addressesOf(hostname).then(
      (addresses) => this.#inTurn(() => connected(null, this.#dial(options, hostname, addresses))),
      (error) => connected(error as Error),
    )
  }

  /** A handshake costs a good part of a millisecond: a thousand at once would hold up everything else of the process. */
  #inTurn(dial: () => void): void {
    this.#dials.push(dial)
    if (this.#dials.length === 1) setImmediate(() => this.#dialSome())
  }

  #dialSome(): void {
    const until = performance.now() + DIALLING_MS
    let dialled = 0
    while (dialled < this.#dials.length && performance.now() < until) this.#dials[dialled++]!()
    this.#dials.splice(0, dialled)
    if (this.#dials.length > 0) setImmediate(() => this.#dialSome())
  }

  #dial(options: ConnectionOptions, hostname: string, addresses: readonly string[]): Duplex {
    const checked = addresses.map((address) => ({ address, family: isIP(address) }))
    const lookup: LookupFunction = (_, { all }, found) => {
      if (all) found(null, checked)
      else found(null, checked[0]!.address, checked[0]!.family)
    }
    // for a host that is an address no look-up is made: it is what was checked
    const socket = super.createConnection({
      ...options,
      host: hostname,
      lookup,
    } as never) as unknown as Duplex
    return socket.once('close', () => this.#idle.delete(socket))
  }

  /** @returns false where it is closed; its type says that nothing is returned. */
  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#idle.size >= IDLE_IN_ALL) return false
    const isKept: unknown = super.keepSocketAlive(socket)
    if (isKept === false) return false
    this.#idle.add(socket)
    return true
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#idle.delete(socket)
    super.reuseSocket(socket, request)
  }
}
