import { RecentlyUsed } from '../../application/commands/recently-used.ts'
import { inTimeSlices } from '../../application/commands/time-slices.ts'
import type { Clock } from '../../application/ports/clock.ts'
import { newKey } from '../crypto/aes-gcm.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import { keyPurpose, type NewDataKey, type PersonalDataKeys } from './personal-data-keys.ts'

/** A usable data key. */
export interface DataKey {
  readonly generation: number
  readonly key: Buffer
}

export interface DataKeysOptions {
  /** Unwrapped keys kept in memory at the most, default 100,000. */
  readonly cachedKeys?: number
  /**
   * How long sealing goes on with remembered keys before it looks for erasures of other processes,
   * in milliseconds of real time, default 1000.
   */
  readonly erasureCheckMs?: number
}

/** Subjects in one round trip at the most. */
const BATCH_SUBJECTS = 10_000
/** Batches at work at once: a small report does not wait for a large one. */
const PARALLEL_BATCHES = 2
/** Rounds of losing the same subject to other processes that are still plausible. */
const MAX_ROUNDS = 8

type Keys = ReadonlyMap<string, DataKey>

/** A promise and its ends. */
class Deferred<Value> {
  readonly promise: Promise<Value>
  resolve!: (value: Value) => void
  reject!: (error: unknown) => void

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // callers see the failure, each for itself; without any it must not end the process
    this.promise.catch(() => undefined)
  }
}

class Batch {
  readonly subjects: string[] = []
  readonly stored = new Deferred<Keys>()
}

/**
 * The data keys of subjects, for sealing. Keys in use are remembered unwrapped; what several callers
 * miss at the same time is fetched, or stored where there is none, by one statement for all of them.
 *
 * A key that another process destroys is forgotten within `erasureCheckMs`. A value that is sealed
 * with it until then reads as erased at once, because opening asks the table, see {@link DataKeys.forOpening}.
 */
export class DataKeys {
  readonly #store: PersonalDataKeys
  readonly #masterKeys: MasterKeys
  readonly #clock: Clock
  readonly #remembered: RecentlyUsed<string, DataKey>
  readonly #erasureCheckMs: number
  readonly #pending = new Map<string, Batch>()
  readonly #queue: Batch[] = []
  #running = 0
  #pumping = false
  /** Number of the last erasure that this process took notice of. */
  #destruction = 0
  #checkedAt = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | null = null
  #forgotten = 0

  constructor(store: PersonalDataKeys, masterKeys: MasterKeys, clock: Clock, options: DataKeysOptions = {}) {
    this.#store = store
    this.#masterKeys = masterKeys
    this.#clock = clock
    this.#remembered = new RecentlyUsed(options.cachedKeys ?? 100_000)
    this.#erasureCheckMs = options.erasureCheckMs ?? 1000
  }

  /** Takes notice of where the erasures stand; to be called once before anything else. */
  async start(): Promise<void> {
    this.#destruction = await this.#store.lastDestruction()
    this.#checkedAt = performance.now()
  }

  /** The current key of each subject, made where there is none; all of them are stored. */
  async forSealing(subjects: Iterable<string>): Promise<Keys> {
    if (performance.now() - this.#checkedAt >= this.#erasureCheckMs) await this.#noticeErasures()
    const keys = new Map<string, DataKey>()
    const missing: string[] = []
    for (const subject of subjects) {
      const remembered = this.#remembered.get(subject)
      if (remembered) keys.set(subject, remembered)
      else missing.push(subject)
    }
    // one batch after the other: those of others come in between
    for (let from = 0; from < missing.length; from += BATCH_SUBJECTS) {
      const wanted = missing.slice(from, from + BATCH_SUBJECTS)
      const batches = wanted.map((subject) => this.#pending.get(subject) ?? this.#enqueue(subject))
      for (const [index, subject] of wanted.entries()) {
        keys.set(subject, (await batches[index]!.stored.promise).get(subject)!)
      }
    }
    return keys
  }

  /**
   * The keys that exist now, straight from the table: what any process destroyed before this call is
   * not among them.
   * @returns per subject the current generation, with the key or with null when that was destroyed.
   */
  async forOpening(
    subjects: readonly string[],
  ): Promise<ReadonlyMap<string, { generation: number; key: Buffer | null }>> {
    const stored = await this.#store.read(subjects)
    const keys = new Map<string, { generation: number; key: Buffer | null }>()
    await inTimeSlices([...stored.values()], ({ subject, generation, wrapped, masterKeyId }) => {
      const remembered = this.#remembered.get(subject)
      if (wrapped === null || masterKeyId === null) keys.set(subject, { generation, key: null })
      else if (remembered?.generation === generation) keys.set(subject, remembered)
      else keys.set(subject, { generation, key: this.#unwrap(subject, generation, wrapped, masterKeyId) })
    })
    return keys
  }

  /** The generation of a subject's latest key, destroyed or not, straight from the table; null when it never had one. */
  async generationOf(subject: string): Promise<number | null> {
    return (await this.#store.read([subject])).get(subject)?.generation ?? null
  }

  /** Destroys the key of a subject, if it is still that of the generation. */
  async destroy(subject: string, generation: number): Promise<void> {
    await this.#store.destroy(subject, generation, this.#clock.now())
    this.#forget(subject)
  }

  #unwrap(subject: string, generation: number, wrapped: Buffer, masterKeyId: string): Buffer {
    return this.#masterKeys.unwrap({ wrapped, masterKeyId }, keyPurpose(subject, generation))
  }

  #forget(subject: string): void {
    this.#remembered.delete(subject)
    // a later request must not join a batch that may have read the key before
    this.#pending.delete(subject)
    this.#forgotten += 1
  }

  /** One look at the erasures for all callers that wait for it. */
  #noticeErasures(): Promise<void> {
    this.#checking ??= (async () => {
      try {
        const startedAt = performance.now()
        for (const { subject, destruction } of await this.#store.destroyedSince(this.#destruction)) {
          this.#forget(subject)
          this.#destruction = destruction
        }
        this.#checkedAt = startedAt
      } finally {
        this.#checking = null
      }
    })()
    return this.#checking
  }

  #enqueue(subject: string): Batch {
    let batch = this.#queue.at(-1)
    if (!batch || batch.subjects.length >= BATCH_SUBJECTS) {
      batch = new Batch()
      this.#queue.push(batch)
    }
    batch.subjects.push(subject)
    this.#pending.set(subject, batch)
    if (!this.#pumping) {
      this.#pumping = true
      // everything that this turn of the event loop still asks for comes along
      setImmediate(() => {
        this.#pumping = false
        this.#pump()
      })
    }
    return batch
  }

  #pump(): void {
    while (this.#running < PARALLEL_BATCHES) {
      const batch = this.#queue.shift()
      if (!batch) return
      this.#running += 1
      void this.#run(batch)
    }
  }

  async #run(batch: Batch): Promise<void> {
    try {
      const forgotten = this.#forgotten
      const keys = await this.#fetchOrMake(batch.subjects)
      // an erasure on the way may concern a key read before it: such a batch is used, but not remembered
      if (forgotten === this.#forgotten) {
        for (const [subject, key] of keys) this.#remembered.set(subject, key)
      }
      batch.stored.resolve(keys)
    } catch (error) {
      batch.stored.reject(error)
    } finally {
      for (const subject of batch.subjects) {
        if (this.#pending.get(subject) === batch) this.#pending.delete(subject)
      }
      this.#running -= 1
      this.#pump()
    }
  }

  async #fetchOrMake(subjects: readonly string[]): Promise<Keys> {
    const keys = new Map<string, DataKey>()
    // one that was forgotten while its batch waited may be in it twice
    let wanted = [...new Set(subjects)].sort().map((subject) => ({ subject, generation: 1 }))
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const fresh: NewDataKey[] = []
      await inTimeSlices(wanted, ({ subject, generation }) => {
        const key = newKey()
        const { wrapped } = this.#masterKeys.wrap(key, keyPurpose(subject, generation))
        fresh.push({ subject, generation, wrapped })
        keys.set(subject, { generation, key })
      })
      const others = await this.#store.storeMissing(fresh, this.#masterKeys.currentId, this.#clock.now())
      wanted = []
      await inTimeSlices(others, ({ subject, generation, wrapped, masterKeyId }) => {
        if (wrapped && masterKeyId) {
          keys.set(subject, { generation, key: this.#unwrap(subject, generation, wrapped, masterKeyId) })
        } else wanted.push({ subject, generation: generation + 1 })
      })
      if (wanted.length === 0) return keys
    }
    throw new Error('Data keys could not be stored: other processes keep changing them')
  }
}
