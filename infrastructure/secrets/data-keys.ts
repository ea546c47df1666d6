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

/** Keys to seal with while new ones are still on their way into the table. */
interface KeysForSealing {
  readonly keys: Keys
  /**
   * Resolves when every key is stored, with the keys that count for those subjects whose new key
   * another process stored first; what was sealed for them must be sealed again.
   */
  readonly replaced: Promise<Keys>
}

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
  readonly drafted = new Deferred<Keys>()
  readonly stored = new Deferred<Keys>()
}

/**
 * The data keys of subjects, for sealing. Keys in use are remembered unwrapped; what several callers
 * miss at the same time is fetched, and made where it does not exist, in one batch for all of them.
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

  /** The current key of each subject, made where there is none. Nothing sealed may leave before `replaced`. */
  async forSealing(subjects: Iterable<string>): Promise<KeysForSealing> {
    if (performance.now() - this.#checkedAt >= this.#erasureCheckMs) await this.#noticeErasures()
    const keys = new Map<string, DataKey>()
    const missing: string[] = []
    for (const subject of subjects) {
      const remembered = this.#remembered.get(subject)
      if (remembered) keys.set(subject, remembered)
      else missing.push(subject)
    }
    const batches = new Map<Batch, string[]>()
    // one batch after the other: those of others come in between
    for (let from = 0; from < missing.length; from += BATCH_SUBJECTS) {
      const joined = new Map<Batch, string[]>()
      for (const subject of missing.slice(from, from + BATCH_SUBJECTS)) {
        const batch = this.#pending.get(subject) ?? this.#enqueue(subject)
        const waiting = joined.get(batch)
        if (waiting) waiting.push(subject)
        else joined.set(batch, [subject])
      }
      for (const [batch, waiting] of joined) {
        const drafted = await batch.drafted.promise
        for (const subject of waiting) keys.set(subject, drafted.get(subject)!)
        batches.set(batch, [...(batches.get(batch) ?? []), ...waiting])
      }
    }
    const replaced = replacedKeys(keys, batches)
    replaced.catch(() => undefined)
    return { keys, replaced }
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
      const keys = await this.#fetchOrMake(batch)
      // an erasure on the way may concern a key read before it: such a batch is used, but not remembered
      if (forgotten === this.#forgotten) {
        for (const [subject, key] of keys) this.#remembered.set(subject, key)
      }
      batch.stored.resolve(keys)
    } catch (error) {
      batch.drafted.reject(error)
      batch.stored.reject(error)
    } finally {
      for (const subject of batch.subjects) {
        if (this.#pending.get(subject) === batch) this.#pending.delete(subject)
      }
      this.#running -= 1
      this.#pump()
    }
  }

  async #fetchOrMake({ subjects, drafted }: Batch): Promise<Keys> {
    const keys = new Map<string, DataKey>()
    let wanted = [...subjects].sort()
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const stored = await this.#store.read(wanted)
      const fresh: NewDataKey[] = []
      const made = new Map<string, DataKey>()
      await inTimeSlices(wanted, (subject) => {
        const present = stored.get(subject)
        if (present?.wrapped && present.masterKeyId) {
          const { generation, wrapped, masterKeyId } = present
          keys.set(subject, { generation, key: this.#unwrap(subject, generation, wrapped, masterKeyId) })
          return
        }
        const generation = (present?.generation ?? 0) + 1
        const key = newKey()
        const { wrapped } = this.#masterKeys.wrap(key, keyPurpose(subject, generation))
        fresh.push({ subject, generation, wrapped })
        made.set(subject, { generation, key })
      })
      // the first round's keys are nearly always the right ones: the callers work while they are stored
      drafted.resolve(fresh.length === 0 ? keys : new Map([...keys, ...made]))
      if (fresh.length === 0) return keys
      if (await this.#store.store(fresh, this.#masterKeys.currentId, this.#clock.now())) {
        for (const [subject, key] of made) keys.set(subject, key)
        return keys
      }
      // another process was faster with some of them: what is stored now counts
      wanted = fresh.map(({ subject }) => subject)
    }
    throw new Error('Data keys could not be stored: other processes keep changing them')
  }
}

async function replacedKeys(keys: Keys, batches: ReadonlyMap<Batch, readonly string[]>): Promise<Keys> {
  const replaced = new Map<string, DataKey>()
  for (const [batch, subjects] of batches) {
    const stored = await batch.stored.promise
    for (const subject of subjects) {
      const key = stored.get(subject)!
      if (key !== keys.get(subject)) replaced.set(subject, key)
    }
  }
  return replaced
}
