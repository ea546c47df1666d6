import { setTimeout as delay } from 'node:timers/promises'
import { categoryOf } from './failures.ts'
import type { Projection } from './projection.ts'
import {
  type GenerationRecord,
  type GenerationRef,
  type GenerationStore,
  type ProjectionRequest,
  type RequestOutcome,
  shapeOf,
} from './store.ts'

const SWITCH_ATTEMPTS = 20

/** A request and what it is answered with. */
export interface Answered {
  readonly request: ProjectionRequest
  readonly result: Readonly<Record<string, unknown>>
}

/**
 * Whether a newer release built, or builds, a projection: its tables are not this code's to write, drop or switch.
 * One that an operator went back from is retired, and does not count.
 */
export function isOlderThan({ name, version }: Projection, records: readonly GenerationRecord[]): boolean {
  return records.some(
    (record) => record.projection === name && record.role !== 'retired' && record.version > version,
  )
}

/** The generations of one projection under the epoch of its owner. */
export class Generations {
  readonly #projection: Projection
  readonly #store: GenerationStore
  readonly #epoch: number
  #records: readonly GenerationRecord[] = []

  constructor(projection: Projection, store: GenerationStore, epoch: number) {
    this.#projection = projection
    this.#store = store
    this.#epoch = epoch
  }

  get live(): GenerationRecord | undefined {
    return this.#role('live')
  }

  get shadow(): GenerationRecord | undefined {
    return this.#role('shadow')
  }

  get retired(): GenerationRecord | undefined {
    return this.#role('retired')
  }

  get areOfNewerRelease(): boolean {
    return isOlderThan(this.#projection, this.#records)
  }

  #role(role: GenerationRecord['role']): GenerationRecord | undefined {
    return this.#records.find((record) => record.role === role)
  }

  /** Makes the owner's epoch the only one that may write, and looks at what is stored. */
  async claim(): Promise<void> {
    this.#records = await this.#store.claim(this.#projection.name, this.#epoch)
  }

  /** Whether today's code can write the tables of a generation. */
  fits(record: GenerationRecord): boolean {
    return record.shape === shapeOf(this.#projection.tables)
  }

  /** Whether a generation is what the code says: its version, its tables. */
  isCurrent(record: GenerationRecord): boolean {
    return record.version === this.#projection.version && this.fits(record)
  }

  /** The live generation, made where there is none. */
  async liveOrNew(): Promise<GenerationRecord> {
    if (!this.live) await this.#create(1, 'live', false)
    return this.live!
  }

  /** Begins a rebuild. */
  async createShadow(autoSwitch: boolean): Promise<GenerationRecord> {
    const generation = Math.max(...this.#records.map((record) => record.generation)) + 1
    await this.#create(generation, 'shadow', autoSwitch)
    return this.shadow!
  }

  async #create(generation: number, role: 'live' | 'shadow', autoSwitch: boolean): Promise<void> {
    const { name: projection, version, tables } = this.#projection
    await this.#store.create({ projection, generation, tables, version, role, autoSwitch }, this.#epoch)
    await this.claim()
  }

  /** The rebuild to go on with; one is begun when the code has another version than the live generation. */
  async wantedShadow(): Promise<GenerationRecord | undefined> {
    const live = this.live!
    const { shadow, retired } = this
    if (shadow && !this.isCurrent(shadow)) await this.drop(shadow)
    const { version } = this.#projection
    if (!this.shadow && live.version !== version && live.rolledBackFrom !== version) {
      if (retired && this.isCurrent(retired)) await this.becomesShadow(retired)
      else await this.createShadow(true)
    }
    return this.shadow
  }

  /** Has a retired generation catch up, and switch when it has. */
  async becomesShadow(retired: GenerationRecord): Promise<GenerationRecord> {
    await this.note(retired, { role: 'shadow', autoSwitch: true })
    await this.claim()
    return this.shadow!
  }

  async drop(record: GenerationRecord): Promise<void> {
    await this.#store.drop(record, this.#epoch)
    await this.claim()
  }

  /** Changes what is known about a generation. */
  note(generation: GenerationRef, changes: Parameters<GenerationStore['note']>[2]): Promise<void> {
    return this.#store.note(generation, this.#epoch, changes)
  }

  /** Why a generation cannot be kept up to date by this code. */
  noteProblem(
    generation: GenerationRef,
    state: 'error' | 'detached',
    message: string | null = null,
  ): Promise<void> {
    const failure = message === null ? {} : { failure: { category: 'fatal', message } as const }
    return this.note(generation, { state, ...failure })
  }

  /**
   * Makes a generation answer, whatever readers are doing; the request that asked for it is answered with it.
   * @param rolledBackFrom the version that was left, which is not built again by itself.
   */
  async switchTo(
    next: GenerationRecord,
    rolledBackFrom: number | null,
    answered: Answered | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const live = this.live!
    const outcome: RequestOutcome | undefined = answered && { ok: true, result: answered.result }
    const answer = outcome && { id: answered!.request.id, outcome }
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#store.switchTo(live, next, this.#epoch, { rolledBackFrom, answer })
        break
      } catch (error) {
        if (categoryOf(error) !== 'transient' || attempt >= SWITCH_ATTEMPTS) throw error
        await delay(50 * attempt, null, { signal }).catch(() => undefined)
      }
    }
  }

  /** Drops what was retired before, but for one generation. */
  async dropRetired(except: number): Promise<void> {
    for (const record of this.#records) {
      if (record.role !== 'retired' || record.generation === except) continue
      // readers with an old snapshot may hold its tables for a while: then it goes with the next switch
      await this.#store.drop(record, this.#epoch).catch((error) => {
        if (categoryOf(error) === 'fenced') throw error
      })
    }
    await this.claim()
  }
}
