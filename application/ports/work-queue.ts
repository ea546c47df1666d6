/** A piece of due work as workers are offered it: what names it, nothing else. */
export interface OfferedWork {
  readonly processManager: string
  readonly kind: string
  readonly key: string
  /** Tells one storing of a piece from the next; the same version again is the same offer. */
  readonly version: string
}

/** An offer that a worker took. */
export interface TakenOffer {
  readonly work: OfferedWork
  /** There is nothing left to do about it: the outcome is stored, or it was not due. */
  acknowledge(): void
}

/**
 * Brings due work to workers with a free hand, each piece to one. It carries and never holds truth: whether
 * a piece is due says the work store, under whose lease it is done. Offers may be lost, doubled or late.
 */
export interface WorkQueue {
  /** Offers pieces that are stored and due. @returns false when some may not have come into the queue. */
  offer(work: readonly OfferedWork[]): Promise<boolean>
  /** The next offer, for a hand that is free now. @returns null when the signal aborts first. */
  next(signal: AbortSignal): Promise<TakenOffer | null>
}
