import type pg from 'pg'
import { type MasterKeys, WRAPPED_BYTES } from '../crypto/master-keys.ts'

/** What is stored of a subject's data key. */
interface StoredDataKey {
  readonly subject: string
  /** Counts the subject's keys from 1; a person that is reported again after an erasure gets the next one. */
  readonly generation: number
  /** Null when the key of this generation was destroyed. */
  readonly wrapped: Buffer | null
  readonly masterKeyId: string | null
}

/** A key to store: the next generation of its subject. */
export interface NewDataKey {
  readonly subject: string
  readonly generation: number
  readonly wrapped: Buffer
}

const READ = `
  SELECT subject, generation, wrapped, master_key_id AS "masterKeyId"
  FROM runtime.data_keys_of(string_to_array($1, ','))`

// subjects travel as one text and keys as one run of bytes: arrays would have to be escaped element by element;
// two processes that store the same ones do so in one order, and do not wait crosswise
const STORE_MISSING = `
  WITH fresh AS MATERIALIZED (
    SELECT fresh.*, present.generation AS last, present.wrapped, present.master_key_id
    FROM unnest(string_to_array($1, ','), string_to_array($2, ',')::int[])
      WITH ORDINALITY AS fresh (subject, generation, place)
    LEFT JOIN runtime.data_keys_of(string_to_array($1, ',')) AS present USING (subject)
  ), stored AS (
    INSERT INTO runtime.data_keys AS present (subject, generation, wrapped, master_key_id, created_at)
    SELECT subject, generation, substring($3::bytea FROM (place::int - 1) * ${WRAPPED_BYTES} + 1 FOR ${WRAPPED_BYTES}),
      $4, $5
    FROM fresh WHERE wrapped IS NULL AND COALESCE(last, generation - 1) = generation - 1
    ORDER BY place
    ON CONFLICT (subject) DO UPDATE
      SET generation = excluded.generation, wrapped = excluded.wrapped,
        master_key_id = excluded.master_key_id, created_at = excluded.created_at
      WHERE present.wrapped IS NULL AND present.generation = excluded.generation - 1
    RETURNING subject
  )
  SELECT subject, COALESCE(last, generation - 1) AS generation, wrapped, master_key_id AS "masterKeyId"
  FROM fresh WHERE subject NOT IN (SELECT subject FROM stored) ORDER BY place`

// the counter's row lock makes erasures commit in the order of their numbers, so that no reader steps over one
const DESTROY = `
  WITH alive AS (
    SELECT subject FROM runtime.data_keys
    WHERE subject = $1 AND generation = $3 AND wrapped IS NOT NULL FOR UPDATE
  ),
  next AS (
    UPDATE runtime.erasures SET count = count + 1 WHERE EXISTS (SELECT FROM alive) RETURNING count
  )
  UPDATE runtime.data_keys AS present
  SET wrapped = NULL, master_key_id = NULL, destroyed_at = $2, destruction = next.count
  FROM alive, next WHERE present.subject = alive.subject`

const DESTROYED_SINCE = `
  SELECT subject, destruction::float8 AS destruction
  FROM runtime.data_keys WHERE destruction > $1::bigint ORDER BY destruction`

/** The table of wrapped data keys. */
export class PersonalDataKeys {
  readonly #pool: Pick<pg.Pool, 'query'>

  constructor(pool: Pick<pg.Pool, 'query'>) {
    this.#pool = pool
  }

  /** The keys of those of the subjects that have or had one. */
  async read(subjects: readonly string[]): Promise<ReadonlyMap<string, StoredDataKey>> {
    const { rows } = await this.#pool.query<StoredDataKey>({
      name: 'data-keys/read',
      text: READ,
      values: [subjects.join(',')],
    })
    return new Map(rows.map((row) => [row.subject, row]))
  }

  /**
   * Stores the keys of those subjects that have none, durably.
   * @param keys in the order of their subjects.
   * @returns what was found instead where a key was not stored: the subject's key, or the number after which the next
   * one is to be made, because the last one was destroyed or another process stores one at the same time.
   */
  async storeMissing(
    keys: readonly NewDataKey[],
    masterKeyId: string,
    at: number,
  ): Promise<readonly StoredDataKey[]> {
    const { rows } = await this.#pool.query<StoredDataKey>({
      name: 'data-keys/store-missing',
      text: STORE_MISSING,
      values: [
        keys.map((key) => key.subject).join(','),
        keys.map((key) => key.generation).join(','),
        Buffer.concat(keys.map((key) => key.wrapped)),
        masterKeyId,
        new Date(at),
      ],
    })
    return rows
  }

  /** Removes the key of a subject; nothing happens when it has none, or one of another generation. */
  async destroy(subject: string, generation: number, at: number): Promise<void> {
    await this.#pool.query({
      name: 'data-keys/destroy',
      text: DESTROY,
      values: [subject, new Date(at), generation],
    })
  }

  /** Number of the last erasure. */
  async lastDestruction(): Promise<number> {
    const { rows } = await this.#pool.query<{ count: number }>(
      'SELECT count::float8 AS count FROM runtime.erasures',
    )
    return rows[0]!.count
  }

  /** Subjects whose key was destroyed after an erasure, with the number of theirs, ascending. */
  async destroyedSince(destruction: number): Promise<readonly { subject: string; destruction: number }[]> {
    const { rows } = await this.#pool.query<{ subject: string; destruction: number }>({
      name: 'data-keys/destroyed-since',
      text: DESTROYED_SINCE,
      values: [destruction],
    })
    return rows
  }

  /** Wraps every key that stands under an older master key with the current one. @returns how many. */
  async rewrap(masterKeys: MasterKeys): Promise<number> {
    let total = 0
    for (let after = ''; ; ) {
      const { rows } = await this.#pool.query<StoredDataKey & { wrapped: Buffer; masterKeyId: string }>(
        `SELECT subject, generation, wrapped, master_key_id AS "masterKeyId" FROM runtime.data_keys
         WHERE wrapped IS NOT NULL AND master_key_id <> $1 AND subject > $2 ORDER BY subject LIMIT 1000`,
        [masterKeys.currentId, after],
      )
      if (rows.length === 0) return total
      const wrapped = rows.map((row) => {
        const purpose = keyPurpose(row.subject, row.generation)
        return masterKeys.wrap(masterKeys.unwrap(row, purpose), purpose).wrapped
      })
      // locked in one order, because several processes may start this at once;
      // a key that was destroyed or replaced meanwhile stays so
      const result = await this.#pool.query(
        `WITH locked AS (
           SELECT subject FROM runtime.data_keys WHERE subject = ANY ($1::text[]) ORDER BY subject FOR UPDATE
         )
         UPDATE runtime.data_keys AS present
         SET wrapped = substring($3::bytea FROM (place::int - 1) * ${WRAPPED_BYTES} + 1 FOR ${WRAPPED_BYTES}),
           master_key_id = $4
         FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS fresh (subject, generation, place)
           JOIN locked USING (subject)
         WHERE present.subject = fresh.subject AND present.generation = fresh.generation
           AND present.wrapped IS NOT NULL AND present.master_key_id <> $4`,
        [
          rows.map((row) => row.subject),
          rows.map((row) => row.generation),
          Buffer.concat(wrapped),
          masterKeys.currentId,
        ],
      )
      total += result.rowCount ?? 0
      after = rows.at(-1)!.subject
    }
  }
}

/** What a wrapped data key is bound to. */
export function keyPurpose(subject: string, generation: number): string {
  return `data key ${generation} of ${subject}`
}
