/** Says that a piece of this kind of work is due, whichever it is. */
export interface WorkHint {
  readonly processManager: string
  readonly kind: string
}

/**
 * Shares hints among the worker processes, each hint with one that has a free slot, so that they share the work, too.
 * Hints may be lost, doubled or late: what is due says the work store alone, which workers also poll.
 */
export interface WorkQueue {
  /** One hint for each piece that was stored and is due. @returns false when some may be lost. */
  offer(hints: readonly WorkHint[]): Promise<boolean>
  /** The next hint, for a slot that is free now. @returns null when the signal aborts first. */
  next(signal: AbortSignal): Promise<WorkHint | null>
}
