import { randomFillSync, randomUUID } from 'node:crypto'
import type { Clock } from '../application/ports/clock.ts'
import type { Randomness } from '../application/ports/randomness.ts'

const POOL_BYTES = 4096

/** Cryptographically strong random bytes, drawn from the system in larger portions because each draw costs. */
export class RandomPool {
  readonly #pool = Buffer.allocUnsafeSlow(POOL_BYTES)
  #used = POOL_BYTES

  /** Fills `count` bytes of `target` from `offset` on; no byte is ever given out twice. */
  fill(target: Buffer, offset: number, count: number): void {
    if (count > POOL_BYTES) {
      randomFillSync(target, offset, count)
      return
    }
    const start = this.#take(count)
    this.#pool.copy(target, offset, start, start + count)
    // what became a key or an initialization vector does not stay in the pool
    this.#pool.fill(0, start, start + count)
  }

  /** `count` random bytes, at most 4096, as lower-case hex. */
  hex(count: number): string {
    const start = this.#take(count)
    return this.#pool.toString('hex', start, start + count)
  }

  #take(count: number): number {
    if (this.#used + count > POOL_BYTES) {
      randomFillSync(this.#pool)
      this.#used = 0
    }
    const start = this.#used
    this.#used += count
    return start
  }
}

/** Ids and random values; the time part of ids is the service's time. */
export class SystemRandomness implements Randomness {
  readonly #clock: Clock
  readonly #pool = new RandomPool()
  #second = -1
  #secondHex = ''

  constructor(clock: Clock) {
    this.#clock = clock
  }

  id(): string {
    const second = Math.floor(this.#clock.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#secondHex = (second >>> 0).toString(16).padStart(8, '0')
    }
    return this.#secondHex + this.#pool.hex(8)
  }

  commandId(): string {
    return randomUUID()
  }

  hex(count: number): string {
    if (count <= POOL_BYTES) return this.#pool.hex(count)
    return randomFillSync(Buffer.allocUnsafe(count)).toString('hex')
  }
}
