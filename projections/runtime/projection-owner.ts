import { whileOwned } from '../../application/followers/while-owned.ts'
import type { Leases } from '../../application/ports/leases.ts'
import { type Failure, failureOf } from './failures.ts'
import { isOlderThan } from './generations.ts'
import { OwnedProjection, type OwnedProjectionParts } from './owned-projection.ts'
import type { Projection } from './projection.ts'
import type { ProjectionRunner } from './projection-runner.ts'
import type { ProjectionRequest } from './store.ts'

export interface OwnerParts extends OwnedProjectionParts {
  readonly leases: Leases
  /** Called when this process does not run the projection any more. */
  readonly released: () => void
  /** Real milliseconds between attempts to get a lease that another process holds. */
  readonly retryMs: number
}

const LONGEST_RETRY_MS = 10_000

/** The lease of a projection. */
export function leaseOf(projection: string): string {
  return `projection:${projection}`
}

/** Runs one projection whenever this process holds its lease. */
export class ProjectionOwner {
  readonly #projection: Projection
  readonly #parts: OwnerParts
  readonly #stopping = new AbortController()
  #owned: OwnedProjection | null = null
  #problem: Failure | null = null
  #loop: Promise<void> | null = null

  constructor(projection: Projection, parts: OwnerParts) {
    this.#projection = projection
    this.#parts = parts
  }

  get name(): string {
    return this.#projection.name
  }

  get owns(): boolean {
    return this.#owned !== null
  }

  /** Why this process could not run the projection, where that is not about the projector alone. */
  get problem(): Failure | null {
    return this.#problem
  }

  /** The runners of this process, for what is known in memory before it is stored. */
  runnerOf(generation: number): ProjectionRunner | null {
    return this.#owned?.runnerOf(generation) ?? null
  }

  /** Begins to run the projection as soon as its lease is free. @returns after the first attempt. */
  start(): Promise<void> {
    const { leases, retryMs, store } = this.#parts
    let problem: Failure | null = null
    return new Promise((tried) => {
      this.#loop ??= whileOwned({
        leases,
        name: leaseOf(this.name),
        stopping: this.#stopping.signal,
        pauseMs: retryMs,
        longestPauseMs: LONGEST_RETRY_MS,
        mayOwn: async () => !isOlderThan(this.#projection, await store.generations.all()),
        run: async ({ epoch }, ended, progressed) => {
          const owned = new OwnedProjection(this.#projection, this.#parts, epoch)
          this.#owned = owned
          this.#problem = null
          try {
            await owned.run(ended, tried)
            // what fails each time after it has begun is tried less and less often
            progressed()
          } finally {
            this.#owned = null
            this.#parts.released()
          }
        },
        failed: (error) => {
          problem = failureOf(error)
        },
        tried: () => {
          this.#problem = problem
          problem = null
          tried()
        },
      })
    })
  }

  /** Finishes the current page and gives the lease back. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loop
  }

  /** Carries out requests that were left for this projection. */
  async answer(requests: readonly ProjectionRequest[]): Promise<void> {
    await this.#owned?.answer(requests)
  }
}
