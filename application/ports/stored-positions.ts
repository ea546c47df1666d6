/**
 * Positions of the log that are stored outside it: checkpoints, parked events, columns of read models. They mean
 * something in one log only.
 */
export interface StoredPositions {
  /** Where they are stored, without credentials, for messages. */
  readonly name: string

  /**
   * Which of two logs they belong to; `either` when the two cannot be told apart by how they begin.
   * @throws OtherEventLog when they belong to none of them.
   */
  follows(source: LogIdentity, target: LogIdentity): Promise<'source' | 'target' | 'either'>

  /** Every position that is stored, once and ascending. */
  read(): Promise<BigInt64Array>

  /**
   * Puts other positions in their place and binds the database to the log that those belong to, all or nothing.
   * @param before what {@link read} answered.
   * @param after the position to store instead, for each of `before`.
   */
  replace(before: BigInt64Array, after: BigInt64Array, log: LogIdentity): Promise<void>
}

/** What a log is known by: its first event and where that stands; nulls while it is empty. */
export interface LogIdentity {
  readonly firstEventId: string | null
  readonly firstPosition: bigint | null
}
