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
   * @param source and target, null while they are empty.
   * @param keyCheckValue of the keys that the source was written with; null when it does not tell.
   * @throws OtherEventLog when it belongs to none of them, KeysMissing when it lacks the keys of the log.
   */
  follows(
    source: LogIdentity | null,
    target: LogIdentity | null,
    keyCheckValue: string | null,
  ): Promise<'source' | 'target' | 'either'>

  /** Where process managers and integration events stand in the log, each position once and ascending. */
  positions(): Promise<readonly bigint[]>

  /**
   * Carries everything over to the other database that does not derive from the log, drops the read models, which the
   * next start builds anew, and pairs the database with the log that its positions belong to then; all or nothing.
   * Where an earlier move to another database has ended, and a service may have worked since, nothing is carried again.
   * @param translated positions to store instead of those that stand there.
   * @throws when it cannot be told which of two databases counts.
   */
  move(translated: ReadonlyMap<bigint, bigint>, log: LogIdentity | null): Promise<Moved>
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
  readonly webhook_deliveries: number
}

/** What a log is known by: its first event and where that stands. */
export interface LogIdentity {
  readonly firstEventId: string
  readonly firstPosition: bigint
}
