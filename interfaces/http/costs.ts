import type { ServerResponse } from 'node:http'
import type { CallSlots } from './call-slots.ts'
import { tooManyRequests } from './errors.ts'
import type { RateLimiter, RateLimits } from './rate-limit.ts'

/** Bytes of a body that one token of a credential's rate limit pays for. */
const BYTES_PER_TOKEN = 64 * 1024
/** Payroll rows, or employee records, that one token pays for. */
const ROWS_PER_TOKEN = 500
/** Above either a call is large. */
const LARGE_BYTES = 1024 * 1024
const LARGE_ROWS = 5_000

/** How much work a call is, as far as it is known. */
export interface CallSize {
  readonly bytes?: number
  readonly rows?: number
}

/**
 * What one request costs its credential: a token of the rate limit, more for a large one, and a slot
 * among the large calls that are at work.
 */
export class Costs {
  readonly #tokens: RateLimiter
  readonly #largeCalls: CallSlots
  #caller = ''
  #isProven = false
  #cost = 1
  #charged = 0
  #release: (() => void) | null = null
  #hasEnded = false

  private constructor({ credentials, largeCalls }: RateLimits) {
    this.#tokens = credentials
    this.#largeCalls = largeCalls
  }

  /** Runs a call; its slot among the large calls is free again when `work` is done, also if the caller has gone. */
  static async during<Result>(limits: RateLimits, work: (costs: Costs) => Promise<Result>): Promise<Result> {
    const costs = new Costs(limits)
    try {
      return await work(costs)
    } finally {
      costs.#hasEnded = true
      costs.#release?.()
    }
  }

  /** Names the sender of the call before it is proven: slots are taken on this account until then. */
  identify(caller: string): void {
    this.#caller = caller
  }

  /** Says on an answer where the credential stands after what the call has cost by now; nothing before it is proven. */
  sayOn(response: ServerResponse): void {
    if (!this.#isProven || response.headersSent) return
    for (const [name, value] of Object.entries(this.#tokens.headersOf(this.#caller))) {
      response.setHeader(name, value)
    }
  }

  /** Takes the credential, which is proven now, up on its limits. @throws HttpError 429. */
  async admit(credential: string): Promise<void> {
    this.#caller = credential
    this.#isProven = true
    const wait = this.#tokens.take(credential)
    if (wait > 0) throw tooManyRequests(wait)
    this.#charged = 1
    this.#charge()
    const releaseFormer = this.#release
    if (releaseFormer === null) return
    this.#release = null
    releaseFormer()
    await this.#acquire()
  }

  /**
   * Tells how large the call is; to be called again whenever more is known. Tokens that are missing
   * are owed: the credential's next requests wait for them.
   * @throws HttpError 429 when no slot among the large calls became free in time.
   */
  async measure({ bytes = 0, rows = 0 }: CallSize): Promise<void> {
    this.owe({ bytes, rows })
    const isLarge = bytes > LARGE_BYTES || rows > LARGE_ROWS
    if (isLarge && this.#release === null) await this.#acquire()
  }

  /** Tells how large the call is, or its answer, without a wait: tokens that are missing are owed. */
  owe({ bytes = 0, rows = 0 }: CallSize): void {
    this.#cost = Math.max(this.#cost, Math.ceil(bytes / BYTES_PER_TOKEN), Math.ceil(rows / ROWS_PER_TOKEN))
    if (this.#isProven) this.#charge()
  }

  /** Takes a token for each message of a batch. @throws HttpError 429. */
  takeMessages(count: number): void {
    const wait = this.#tokens.take(this.#caller, Math.max(0, count - this.#charged))
    if (wait > 0) throw tooManyRequests(wait)
    this.#charged = Math.max(this.#charged, count)
  }

  async #acquire(): Promise<void> {
    const release = await this.#largeCalls.acquire(this.#caller)
    // the caller may have left while it waited
    if (this.#hasEnded) release()
    else this.#release = release
  }

  #charge(): void {
    if (this.#cost <= this.#charged) return
    this.#tokens.charge(this.#caller, this.#cost - this.#charged)
    this.#charged = this.#cost
  }
}
