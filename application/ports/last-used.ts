/**
 * When agent credentials were last used. Operational knowledge, not history: it is kept beside the
 * log, because a read must append nothing.
 */
export interface LastUsed {
  /** Notes a use; returns at once, written in the background. */
  touch(credentialId: string, epochMs: number): void
  /** Last uses in epoch milliseconds by credential id, this process's unwritten ones included. */
  of(credentialIds: readonly string[]): Promise<ReadonlyMap<string, number>>
}
