import { RecentlyUsed } from '../../application/commands/recently-used.ts'
import { inTimeSlices } from '../../application/commands/time-slices.ts'
import type { Clock } from '../../application/ports/clock.ts'
import { newKey } from '../crypto/aes-gcm.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import { Gathered } from '../gathered.ts'
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

/** Looks at the table at once: a small report does not wait for a large one. */
const LOOKS_AT_ONCE = 2
/** Rounds of losing the same subject to other processes that are still plausible. */
const MAX_ROUNDS = 8

type Keys = ReadonlyMap<string, DataKey>

/** The keys of subjects: those that are stored, and those that were made where there was none. */
interface Found {
  readonly keys: Map<string, DataKey>
  readonly made: Map<string, DataKey>
  readonly fresh: NewDataKey[]
}

/** Keys to seal with while new ones are still on their way into the table. */
interface KeysForSealing {
  readonly keys: Keys
  /**
   * Resolves when every key is stored, with the keys that count for those subjects whose new key
   * another process stored first; what was sealed for them must be sealed again.
   */
  readonly replaced: Promise<Keys>
}

/** What one look found and made for all who asked. */
interface Looked {
  readonly keys: Keys
  /** The keys that count, once all are stored. */
  readonly stored: Promise<Keys>
}

/**
 * The data keys of subjects, for sealing. Keys in use are remembered unwrapped; what several callers
 * miss at the same time is fetched, and made where it does not exist, at once for all of them.
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
  readonly #looks = new Gathered((asked: readonly (readonly string[])[]) => this.#look(asked), LOOKS_AT_ONCE)
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
    if (missing.length === 0) return { keys, replaced: Promise.resolve(new Map()) }
    const looked = await this.#looks.ask(missing)
    for (const subject of missing) keys.set(subject, looked.keys.get(subject)!)
    const replaced = looked.stored.then((stored) => {
      const others = missing.filter((subject) => stored.get(subject) !== keys.get(subject))
      return new Map(others.map((subject) => [subject, stored.get(subject)!]))
    })
    // whoever sealed hears of the failure, and must not before
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
    this.#forgotten += 1
  }

  /** One look at the erasures for all callers who wait for it. */
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

  /** The callers work with what is found and made while it is stored: these are nearly always the keys that count. */
  async #look(asked: readonly (readonly string[])[]): Promise<Looked> {
    const forgotten = this.#forgotten
    const found = await this.#readOrMake([...new Set(asked.flat())].sort())
    const stored = this.#storeAll(found).then((keys) => {
      // an erasure on the way may concern a key read before it: such keys are used, but not remembered
      if (forgotten === this.#forgotten) for (const [subject, key] of keys) this.#remembered.set(subject, key)
      return keys
    })
    stored.catch(() => undefined)
    return { keys: new Map([...found.keys, ...found.made]), stored }
  }

  /** @param wanted sorted. */
  async #readOrMake(wanted: readonly string[]): Promise<Found> {
    const stored = await this.#store.read(wanted)
    const found: Found = { keys: new Map(), made: new Map(), fresh: [] }
    await inTimeSlices(wanted, (subject) => {
      const present = stored.get(subject)
      if (present?.wrapped && present.masterKeyId) {
        const { generation, wrapped, masterKeyId } = present
        found.keys.set(subject, { generation, key: this.#unwrap(subject, generation, wrapped, masterKeyId) })
        return
      }
      const generation = (present?.generation ?? 0) + 1
      const key = newKey()
      const { wrapped } = this.#masterKeys.wrap(key, keyPurpose(subject, generation))
      found.fresh.push({ subject, generation, wrapped })
      found.made.set(subject, { generation, key })
    })
    return found
  }

  async #storeAll(first: Found): Promise<Keys> {
    const keys = new Map<string, DataKey>()
    let found = first
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      for (const [subject, key] of found.keys) keys.set(subject, key)
      const { fresh, made } = found
      if (fresh.length === 0) return keys
      if (await this.#store.store(fresh, this.#masterKeys.currentId, this.#clock.now())) {
        for (const [subject, key] of made) keys.set(subject, key)
        return keys
      }
      // another one was faster with some of them: what is stored now counts
      found = await this.#readOrMake(fresh.map(({ subject }) => subject))
    }
    throw new Error('Data keys could not be stored: other processes keep changing them')
  }
}
