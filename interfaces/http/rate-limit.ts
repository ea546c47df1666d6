import type { IncomingMessage } from 'node:http'
import { CallSlots } from './call-slots.ts'
import { tooManyRequests } from './errors.ts'

/** Seconds of refill that a bucket holds at the most. */
const BURST_SECONDS = 2
/** Requests per second of one address that presents no valid credential. */
const UNAUTHENTICATED_PER_SECOND = 20
const MAX_BUCKETS = 10_000
/** Large calls of one credential that are at work at once. */
const MAX_LARGE_CALLS = 4
const LARGE_CALL_WAIT_MS = 5_000
const TOO_MANY_LARGE_CALLS = `At most ${MAX_LARGE_CALLS} large calls (above 1 MiB or 5,000 rows) are at work at once`

interface Bucket {
  tokens: number
  /** Monotonic milliseconds of the last refill. */
  at: number
}

/**
 * Token buckets by key, in real time: a standing virtual clock does not stop them. At most
 * {@link MAX_BUCKETS} are kept; a full bucket is the same as none.
 */
export class RateLimiter {
  readonly #perSecond: number
  readonly #burst: number
  readonly #now: () => number
  readonly #buckets = new Map<string, Bucket>()

  /**
   * @param perSecond tokens that a bucket gains per second; 0 limits nothing.
   * @param now monotonic milliseconds.
   * @param burst tokens of a full bucket.
   */
  constructor(
    perSecond: number,
    now: () => number = () => performance.now(),
    burst = perSecond * BURST_SECONDS,
  ) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#now = now
  }

  /** A limiter whose full bucket lasts for an hour's tokens. @param now monotonic milliseconds. */
  static perHour(tokens: number, now?: () => number): RateLimiter {
    return new RateLimiter(tokens / 3_600, now, tokens)
  }

  /** Buckets kept at present. */
  get size(): number {
    return this.#buckets.size
  }

  /**
   * Takes tokens from the bucket of a key.
   * @param cost tokens; more than a full bucket counts as a full one.
   * @returns 0 when the request may pass, else the whole seconds after which it may, at least 1.
   */
  take(key: string, cost = 1): number {
    const wait = this.waitOf(key, cost)
    if (wait === 0) this.charge(key, Math.min(cost, this.#burst))
    return wait
  }

  /** The same without taking any: what passes is charged once it has done what is limited. */
  waitOf(key: string, cost = 1): number {
    if (this.#perSecond <= 0) return 0
    const wanted = Math.min(cost, this.#burst)
    const { tokens } = this.#bucket(key)
    return tokens >= wanted ? 0 : Math.max(1, Math.ceil((wanted - tokens) / this.#perSecond))
  }

  /** Takes tokens that are owed for what was let in already; missing ones have to come in before the next. */
  charge(key: string, cost: number): void {
    if (this.#perSecond > 0) this.#bucket(key).tokens -= cost
  }

  /**
   * Where a key stands, as the headers `RateLimit-Policy` and `RateLimit` say it (draft-ietf-httpapi-ratelimit-headers):
   * tokens of a full bucket and the seconds that fill it, tokens that are left and the seconds until all are there
   * again. None where nothing is limited.
   */
  headersOf(key: string): Readonly<Record<string, string>> {
    if (this.#perSecond <= 0) return {}
    const { tokens } = this.#bucket(key)
    const secondsFor = (missing: number) => Math.ceil(missing / this.#perSecond)
    const left = Math.max(0, Math.floor(tokens))
    return {
      'RateLimit-Policy': `"credential";q=${Math.floor(this.#burst)};w=${secondsFor(this.#burst)}`,
      RateLimit: `"credential";r=${left};t=${secondsFor(this.#burst - tokens)}`,
    }
  }

  /** The bucket of a key with what it has gained by now. */
  #bucket(key: string): Bucket {
    const now = this.#now()
    let bucket = this.#buckets.get(key)
    if (bucket) {
      bucket.tokens = this.#tokensAt(bucket, now)
      bucket.at = now
    } else {
      if (this.#buckets.size >= MAX_BUCKETS) this.#makeRoom(now)
      bucket = { tokens: this.#burst, at: now }
      this.#buckets.set(key, bucket)
    }
    return bucket
  }

  #tokensAt({ tokens, at }: Bucket, now: number): number {
    return Math.min(this.#burst, tokens + ((now - at) / 1000) * this.#perSecond)
  }

  /** Drops the buckets that have filled up again, or else the tenth that was made first. */
  #makeRoom(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (this.#tokensAt(bucket, now) >= this.#burst) this.#buckets.delete(key)
    }
    if (this.#buckets.size < MAX_BUCKETS) return
    let left = MAX_BUCKETS / 10
    for (const key of this.#buckets.keys()) {
      if (left === 0) return
      this.#buckets.delete(key)
      left -= 1
    }
  }
}

/** The limits of one host: per credential (requests, and large calls at once), and per address where no valid credential was shown. */
export interface RateLimits {
  readonly credentials: RateLimiter
  readonly addresses: RateLimiter
  readonly largeCalls: CallSlots
}

/** @param perSecond `RATE_LIMIT_RPS`; 0 switches all limits off. */
export function rateLimits(perSecond: number): RateLimits {
  return {
    credentials: new RateLimiter(perSecond),
    addresses: new RateLimiter(perSecond > 0 ? UNAUTHENTICATED_PER_SECOND : 0),
    largeCalls: new CallSlots(perSecond > 0 ? MAX_LARGE_CALLS : 0, LARGE_CALL_WAIT_MS, TOO_MANY_LARGE_CALLS),
  }
}

/** Bytes of a body, or of a file, that cost an unauthenticated caller one token. */
const BYTES_PER_TOKEN = 256 * 1024

/**
 * Counts a request that presents no valid credential, or asks for what is not there, against its address.
 * @param bytes of its body that were read, or of a file that is sent: large ones cost more.
 * @throws HttpError 429 when there were too many.
 */
export function limitAddress(
  addresses: Pick<RateLimiter, 'take'>,
  { socket }: Pick<IncomingMessage, 'socket'>,
  bytes = 0,
): void {
  const wait = addresses.take(addressKey(socket.remoteAddress), 1 + Math.floor(bytes / BYTES_PER_TOKEN))
  if (wait > 0) throw tooManyRequests(wait)
}

/** Lets nothing be looked up for an address that is over its limit; nothing is counted. @throws HttpError 429. */
export function requireWithinLimit(
  addresses: Pick<RateLimiter, 'waitOf'>,
  { socket }: Pick<IncomingMessage, 'socket'>,
): void {
  const wait = addresses.waitOf(addressKey(socket.remoteAddress))
  if (wait > 0) throw tooManyRequests(wait)
}

/** Counts a request of a valid credential. @throws HttpError 429 when there were too many. */
export function limitCredential(limiter: Pick<RateLimiter, 'take'>, key: string): void {
  const wait = limiter.take(key)
  if (wait > 0) throw tooManyRequests(wait)
}

/**
 * The key under which an address is limited: an IPv4 address as it is, of an IPv6 address the
 * network (/64), since one subscriber has all addresses of it.
 */
export function addressKey(address: string | undefined): string {
  if (address === undefined) return 'unknown'
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice('::ffff:'.length)
  if (!address.includes(':')) return address
  const [head = '', tail = ''] = address.split('%')[0]!.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const zeros = address.includes('::') ? Math.max(0, 8 - left.length - right.length) : 0
  return [...left, ...Array<string>(zeros).fill('0'), ...right].slice(0, 4).join(':')
}
