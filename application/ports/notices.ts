/** What a notice is about. */
export type Topic =
  /** Work may be due that the work queue does not tell of: the clock moved, a hold was cleared, failed work is tried again. */
  | 'work'
  /** A projection moved on: for requests that wait to read. */
  | 'position'
  /** A process manager moved on, or a piece of work ended: for requests that wait until all is at rest. */
  | 'progress'

/**
 * Hints to all processes that something is worth looking at now. They carry nothing and may be lost,
 * doubled or late: listeners also look by themselves from time to time.
 */
export interface Notices {
  /** Tells this process at once and the others, where there are any, as soon as possible. */
  wake(topic: Topic): void
  /** @returns how to stop listening. */
  onWake(topic: Topic, listener: () => void): () => void
}
