import type { IncomingMessage } from 'node:http'
import { HttpError } from './errors.ts'
import { addressKey } from './rate-limit.ts'

/** Seconds that a request may be expected to take behind the others; the slowest take a few times as long. */
const MAX_WAIT_S = 1
/** So many requests at work are never too many. */
const FEW = 100
/** How fast requests are served is measured while at least so many are at work, */
const BUSY = 20
/** over so many milliseconds of such time. */
const MEASURED_MS = 500
/** Requests per second, until it was measured. */
const ASSUMED_PER_SECOND = 300
const RETRY_AFTER_S = 2
/** Requests that wait for the rest of their bodies, at the most: each holds a connection and what it sent so far. */
const MOST_RECEIVING = 2_000

export interface AdmissionSettings {
  /** Told of every refusal. */
  readonly onRefused?: () => void
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

/** The sender of a request: its claims may be invented, its address is not. */
export interface Caller {
  readonly address: string
  /** The credential that it shows, proven or not; empty when it shows none. */
  readonly credential: string
}

/** Requests of which the next one gets in as long as they are few, or its caller has less than an equal share of them. */
class Lane {
  /** By address and credential; none has 0. */
  readonly #addresses = new Map<string, Map<string, number>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Addresses share equally, and the credentials of one address share what is its. */
  hasRoom({ address, credential }: Caller, limit: number): boolean {
    if (this.#size < limit) return true
    const others = this.#addresses.get(address)
    const own = others?.get(credential) ?? 0
    const addresses = this.#addresses.size + (others ? 0 : 1)
    const credentials = (others?.size ?? 0) + (own === 0 ? 1 : 0)
    return own + 1 <= limit / addresses / credentials
  }

  enter({ address, credential }: Caller): void {
    this.#size += 1
    const credentials = this.#addresses.get(address)
    if (credentials) credentials.set(credential, (credentials.get(credential) ?? 0) + 1)
    else this.#addresses.set(address, new Map([[credential, 1]]))
  }

  leave({ address, credential }: Caller): void {
    this.#size -= 1
    const credentials = this.#addresses.get(address)!
    const left = credentials.get(credential)! - 1
    if (left > 0) credentials.set(credential, left)
    else credentials.delete(credential)
    if (credentials.size === 0) this.#addresses.delete(address)
  }
}

/** How a request that was let in waits for a provider. */
interface Admitted {
  receiving<Result>(wait: () => Promise<Result>): Promise<Result>
  outside<Result>(wait: () => Promise<Result>): Promise<Result>
}
const admitted = new WeakMap<IncomingMessage, Admitted>()

/**
 * Waits for what a caller still sends: its request is not at work meanwhile, and needs room again when it has come.
 * @throws HttpError 503.
 */
export function whileReceiving<Result>(
  request: IncomingMessage,
  wait: () => Promise<Result>,
): Promise<Result> {
  return admitted.get(request)?.receiving(wait) ?? wait()
}

/**
 * Asks a provider, such as the card processor: the request is not at work meanwhile. As many may wait so as may be
 * at work, and those hold up no other requests.
 * @throws HttpError 503 before the provider is asked, when there is no room.
 */
export function whileOutside<Result>(request: IncomingMessage, ask: () => Promise<Result>): Promise<Result> {
  return admitted.get(request)?.outside(ask) ?? ask()
}

/**
 * Bounds how many requests are at work in this process, over all hosts: as many as it serves within
 * {@link MAX_WAIT_S}, by the rate at which it serves them now. Beyond that, only a caller with less than an equal share of
 * them at work gets in, so that one caller with many connections does not shut out others. Who invents credentials takes
 * from its own address alone. Requests that wait for their caller, or for a provider, are not at work.
 */
export class Admission {
  readonly #onRefused: () => void
  readonly #now: () => number
  readonly #work = new Lane()
  readonly #receiving = new Lane()
  readonly #outside = new Lane()
  #perSecond = ASSUMED_PER_SECOND
  #measuredSince = 0
  /** When there were last fewer than {@link BUSY} at work; the time until there are as many again does not count. */
  #pausedAt = 0
  #served = 0

  constructor({ onRefused = () => undefined, now = () => performance.now() }: AdmissionSettings = {}) {
    this.#onRefused = onRefused
    this.#now = now
  }

  /** Requests that may be at work before shares count. */
  get limit(): number {
    return Math.max(FEW, Math.floor(this.#perSecond * MAX_WAIT_S))
  }

  /**
   * Does a request's work; it is at work until that is done, also if the caller has gone.
   * @param caller see {@link callerOf}.
   * @throws HttpError 503 at once, and nothing is done, when there is no room.
   */
  async during<Result>(
    request: IncomingMessage,
    caller: Caller,
    work: () => Result | Promise<Result>,
  ): Promise<Result> {
    this.#expectRoom(this.#work, caller, this.limit)
    this.#begin(caller)
    let isAtWork = true
    let isOver = false
    const aside = async <Waited>(lane: Lane, limit: number, wait: () => Promise<Waited>): Promise<Waited> => {
      if (!isAtWork) return wait()
      this.#expectRoom(lane, caller, limit)
      this.#end(caller)
      isAtWork = false
      lane.enter(caller)
      try {
        return await wait()
      } finally {
        lane.leave(caller)
        // a request may end before what it asked for
        if (!isOver) {
          this.#begin(caller)
          isAtWork = true
        }
      }
    }
    admitted.set(request, {
      receiving: (wait) =>
        aside(this.#receiving, MOST_RECEIVING, async () => {
          const received = await wait()
          this.#expectRoom(this.#work, caller, this.limit)
          return received
        }),
      // what was asked for may have happened, which is told whatever there is to do
      outside: (ask) => aside(this.#outside, this.limit, ask),
    })
    try {
      return await work()
    } finally {
      isOver = true
      if (this.#work.size >= BUSY) this.#measure(this.#now())
      if (isAtWork) this.#end(caller)
    }
  }

  /** @throws HttpError 503. */
  #expectRoom(lane: Lane, caller: Caller, limit: number): void {
    if (lane.hasRoom(caller, limit)) return
    this.#onRefused()
    const message = `The service has more requests than it can answer soon; try again in ${RETRY_AFTER_S} s`
    throw new HttpError(503, null, message, { headers: { 'Retry-After': String(RETRY_AFTER_S) } })
  }

  #begin(caller: Caller): void {
    this.#work.enter(caller)
    if (this.#work.size === BUSY) this.#measuredSince += this.#now() - this.#pausedAt
  }

  #end(caller: Caller): void {
    if (this.#work.size === BUSY) this.#pausedAt = this.#now()
    this.#work.leave(caller)
  }

  #measure(now: number): void {
    this.#served += 1
    const ms = now - this.#measuredSince
    if (ms < MEASURED_MS) return
    this.#perSecond = (this.#perSecond + (this.#served * 1000) / ms) / 2
    this.#measuredSince = now
    this.#served = 0
  }
}

/** Where the credential of a host's callers stands; any other header may be invented for each request. */
export type CredentialHeader = 'authorization' | 'x-client-id'

/** The sender of a request: nothing is looked up for what may be refused. */
export function callerOf({ headers, socket }: IncomingMessage, header: CredentialHeader): Caller {
  return { address: addressKey(socket.remoteAddress), credential: headers[header]?.toString() ?? '' }
}
