/** A tile of the tree over the log, with the events of a tile of leaves. */
export interface StoredTile {
  readonly level: number
  readonly index: number
  readonly hashes: Buffer
  /** Of a tile of leaves: the position of the log after which its events come, else null. */
  readonly after: bigint | null
  /** Of a tile of leaves: the ids of its events, 16 bytes each, else null. */
  readonly eventIds: Buffer | null
}

/** How far the tree over the log reaches. */
export interface TreeEnd {
  readonly size: number
  /** Of the last event in it. */
  readonly position: bigint
  readonly eventId: string | null
}

/** A checkpoint as it was signed. */
export interface StoredCheckpoint {
  readonly size: number
  readonly note: string
  /** Verifier key of who signed it. */
  readonly key: string
  /** Epoch milliseconds. */
  readonly madeAt: number
}

/** Where the tree over the log is kept, and the checkpoints of it. */
export interface LogTreeStore {
  end(): Promise<TreeEnd>
  tiles(places: readonly { level: number; index: number }[]): Promise<readonly StoredTile[]>
  /** The tiles of leaves in which events at these positions of the log stand, as far as the tree reaches. */
  leafTiles(positions: readonly bigint[]): Promise<readonly StoredTile[]>
  /**
   * Puts tiles and moves the end, together.
   * @returns false, with nothing changed, where the end is no longer at `from`.
   */
  grow(from: TreeEnd, to: TreeEnd, tiles: readonly StoredTile[]): Promise<boolean>
  /** Begins anew without leaves, where the end is still there. */
  clear(end: TreeEnd): Promise<void>
  /** Index of the leaf of an event, null where the tree has none. */
  indexOf(eventId: string): Promise<number | null>
  /** Newest first. */
  checkpoints(limit: number): Promise<readonly StoredCheckpoint[]>
  /** The checkpoint of so many events, null: the oldest. @returns null where there is none. */
  checkpoint(size: number | null): Promise<StoredCheckpoint | null>
  /** Hands over the checkpoint of so many events as it is, where there is one, to one process at a time. */
  inTurn(size: number, work: (checkpoint: StoredCheckpoint) => Promise<void>): Promise<void>
  addCheckpoint(checkpoint: StoredCheckpoint): Promise<void>
  /** Puts another note in place of that of a checkpoint. @returns false, with nothing changed, where that is no longer `from`. */
  replaceNote(size: number, from: string, to: string): Promise<boolean>
  /** Every verifier key that signed one. */
  keys(): Promise<readonly string[]>
}
