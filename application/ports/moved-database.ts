/**
 * What belongs to a log and stands outside it, in a database: keys, work, and positions of the log, which mean
 * something in one log only. It moves together with the log, to another database or within the same one.
 */
export interface MovedDatabase {
  /** Where it is, without credentials, for messages. */
  readonly from: string
  /** Where it shall be; the same for a move within one database. */
  readonly to: string

  /**
   * Which of two logs the database belongs to; `either` when the two cannot be told apart by how they begin.
   * @param keyCheckValue of the keys that the source was written with; null when it does not tell.
   * @throws OtherEventLog when it belongs to none of them, KeysMissing when it lacks the keys of the log.
   */
  follows(
    source: LogIdentity,
    target: LogIdentity,
    keyCheckValue: string | null,
  ): Promise<'source' | 'target' | 'either'>

  /** Every position that is carried over, once and ascending. */
  positions(): Promise<BigInt64Array>

  /**
   * Carries everything over to the other database that does not derive from the log, with other positions in the place of its own, drops the
   * read models, and binds the database to the log that the positions belong to; all or nothing.
   * @param before what {@link positions} answered.
   * @param after the position to store instead, for each of `before`.
   * Where an earlier move to another database has ended, and a service may have worked since, nothing is carried again.
   * @throws when it cannot be told which of two databases counts.
   */
  move(before: BigInt64Array, after: BigInt64Array, log: LogIdentity): Promise<Moved>
}

/** What became of a move. */
export interface Moved {
  readonly outcome: 'moved' | 'moved before'
  /** How many rows went to another database, by what they are; null when none had to. */
  readonly carried: Carried | null
}

/** Rows that were carried. */
export interface Carried {
  readonly data_keys: number
  readonly secrets: number
  readonly work: number
  readonly last_uses: number
}

/** What a log is known by: its first event and where that stands; nulls while it is empty. */
export interface LogIdentity {
  readonly firstEventId: string | null
  readonly firstPosition: bigint | null
}
