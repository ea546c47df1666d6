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
}
