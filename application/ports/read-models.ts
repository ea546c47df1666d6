import type { Aggregate } from '../../domain/kernel/decider.ts'

/** Whether something is there cannot be told now: the read model has not come to where it would stand. */
export class ReadModelsLate extends Error {
  override readonly name = 'ReadModelsLate'
  constructor(options?: ErrorOptions) {
    super('What was stored last cannot be read yet; ask again in a moment', options)
  }
}

/** Where the read models stand, seen from commands and queries that must not run ahead of them. */
export interface ReadModels {
  /**
   * Waits until every named projection has applied the log up to `position`.
   * @param options.timeoutMs real time, default 5000.
   * @returns false when the time ran out first.
   */
  reached(
    projections: readonly string[],
    position: bigint,
    options?: { timeoutMs?: number },
  ): Promise<boolean>

  /**
   * Waits until every projection that handles events of an aggregate has applied the log up to `position`, for at most
   * 5 seconds: the writer can read it then.
   * @returns false when the time ran out first.
   */
  awaitProjections(aggregate: Pick<Aggregate, 'events'>, position: bigint): Promise<boolean>
}
