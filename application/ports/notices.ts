/** What a notice is about. */
export type Topic =
  /** Work was stored, became due or ended. */
  | 'work'
  /** A process manager or projection moved on. */
  | 'position'

/**
 * Hints that something is worth looking at now. They carry nothing and may be lost or doubled:
 * whoever listens also looks by itself from time to time.
 */
export interface Notices {
  wake(topic: Topic): void
  /** @returns how to stop listening. */
  onWake(topic: Topic, listener: () => void): () => void
}
