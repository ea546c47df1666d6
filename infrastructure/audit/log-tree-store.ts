import type { ClientBase, Pool } from 'pg'
import { ID_BYTES, idBytes } from '../../application/audit/event-ids.ts'
import { TILE_HASHES } from '../../application/audit/tree-tiles.ts'
import { LOG_START } from '../../application/ports/event-log.ts'
import type {
  LogTreeStore,
  StoredCheckpoint,
  StoredTile,
  TreeEnd,
} from '../../application/ports/log-tree-store.ts'
import type { Database } from '../database/database.ts'

/** Within so many milliseconds every checkpoint is kept, before that the last of each day, and the last that a witness signed. */
const ALL_KEPT_MS = 7 * 24 * 3_600_000
const TURN_LOCK = '7305420017320845004'

interface TileRow {
  readonly level: number
  readonly index: string
  readonly hashes: Buffer
  readonly after: string | null
  readonly event_ids: Buffer | null
}

interface CheckpointRow {
  readonly size: string
  readonly note: string
  readonly key: string
  readonly made_at: Date
}

/** The tree over the log in the tables `runtime.log_tree`, `runtime.log_tree_tiles` and `runtime.log_checkpoints`. */
export class PostgresLogTreeStore implements LogTreeStore {
  readonly #database: Pick<Database, 'background' | 'transaction'>
  readonly #pool: Pool

  constructor(database: Pick<Database, 'background' | 'transaction'>) {
    this.#database = database
    this.#pool = database.background
  }

  async end(): Promise<TreeEnd> {
    const { rows } = await this.#pool.query<{ size: string; position: string; event_id: string | null }>(
      'SELECT size, position, event_id FROM runtime.log_tree',
    )
    const [row] = rows
    return row
      ? { size: Number(row.size), position: BigInt(row.position), eventId: row.event_id }
      : { size: 0, position: LOG_START, eventId: null }
  }

  async tiles(places: readonly { level: number; index: number }[]): Promise<readonly StoredTile[]> {
    const { rows } = await this.#pool.query<TileRow>({
      name: 'log-tree/tiles',
      text: `SELECT level, index, hashes, after, event_ids FROM runtime.log_tree_tiles
             JOIN unnest($1::smallint[], $2::bigint[]) AS wanted (level, index) USING (level, index)`,
      values: [places.map(({ level }) => level), places.map(({ index }) => index)],
    })
    return rows.map(tileOf)
  }

  async leafTiles(positions: readonly bigint[]): Promise<readonly StoredTile[]> {
    // tiles ascend with what they come after: each place is found by halving
    const { rows } = await this.#pool.query<TileRow>({
      name: 'log-tree/leaf-tiles',
      text: `WITH leaves AS (
               SELECT array_agg(after ORDER BY index) AS afters FROM runtime.log_tree_tiles WHERE level = 0)
             SELECT level, index, hashes, after, event_ids FROM runtime.log_tree_tiles
             WHERE level = 0 AND index IN (
               SELECT width_bucket(position - 1, afters) - 1 FROM leaves, unnest($1::bigint[]) AS wanted (position))`,
      values: [positions.map(String)],
    })
    return rows.map(tileOf)
  }

  async grow(from: TreeEnd, to: TreeEnd, tiles: readonly StoredTile[]): Promise<boolean> {
    const { rows } = await this.#pool.query({
      name: 'log-tree/grow',
      text: `WITH begun AS (
               INSERT INTO runtime.log_tree (size, position, event_id) SELECT $3, $4, $5 WHERE $1::bigint = 0
               ON CONFLICT (one) DO NOTHING RETURNING 1),
             gone_on AS (
               UPDATE runtime.log_tree SET size = $3, position = $4, event_id = $5
               WHERE $1 > 0 AND size = $1 AND position = $2 RETURNING 1),
             moved AS (SELECT FROM begun UNION ALL SELECT FROM gone_on),
             put AS (
               INSERT INTO runtime.log_tree_tiles (level, index, hashes, after, event_ids)
               SELECT * FROM unnest($6::smallint[], $7::bigint[], $8::bytea[], $9::bigint[], $10::bytea[])
               WHERE EXISTS (SELECT FROM moved)
               ON CONFLICT (level, index) DO UPDATE
                 SET hashes = excluded.hashes, after = excluded.after, event_ids = excluded.event_ids)
             SELECT 1 FROM moved`,
      values: [
        from.size,
        String(from.position),
        to.size,
        String(to.position),
        to.eventId,
        tiles.map(({ level }) => level),
        tiles.map(({ index }) => index),
        tiles.map(({ hashes }) => hashes),
        tiles.map(({ after }) => (after === null ? null : String(after))),
        tiles.map(({ eventIds }) => eventIds),
      ],
    })
    return rows.length === 1
  }

  async clear({ size, position, eventId }: TreeEnd): Promise<void> {
    await this.#pool.query(
      `WITH emptied AS (
         DELETE FROM runtime.log_tree WHERE size = $1 AND position = $2 AND event_id = $3 RETURNING 1)
       DELETE FROM runtime.log_tree_tiles WHERE EXISTS (SELECT FROM emptied)`,
      [size, String(position), eventId],
    )
  }

  async indexOf(eventId: string): Promise<number | null> {
    const id = idBytes(eventId)
    const { rows } = await this.#pool.query<{ index: string; event_ids: Buffer }>(
      `SELECT index, event_ids FROM runtime.log_tree_tiles WHERE level = 0 AND position($1::bytea IN event_ids) > 0`,
      [id],
    )
    for (const { index, event_ids } of rows) {
      // it may stand across two others
      for (let at = event_ids.indexOf(id); at >= 0; at = event_ids.indexOf(id, at + 1)) {
        if (at % ID_BYTES === 0) return Number(index) * TILE_HASHES + at / ID_BYTES
      }
    }
    return null
  }

  async checkpoints(limit: number): Promise<readonly StoredCheckpoint[]> {
    const { rows } = await this.#pool.query<CheckpointRow>(
      'SELECT size, note, key, made_at FROM runtime.log_checkpoints ORDER BY size DESC LIMIT $1',
      [limit],
    )
    return rows.map(checkpointOf)
  }

  async checkpoint(size: number | null): Promise<StoredCheckpoint | null> {
    return checkpointIn(this.#pool, size)
  }

  async inTurn(size: number, work: (checkpoint: StoredCheckpoint) => Promise<void>): Promise<void> {
    await this.#database.transaction(async (client) => {
      await client.query('SELECT pg_advisory_xact_lock($1)', [TURN_LOCK])
      const checkpoint = await checkpointIn(client, size)
      if (checkpoint) await work(checkpoint)
    }, this.#database.background)
  }

  async addCheckpoint({ size, note, key, madeAt }: StoredCheckpoint): Promise<void> {
    await this.#pool.query(
      `INSERT INTO runtime.log_checkpoints (size, note, key, made_at) VALUES ($1, $2, $3, $4)
       ON CONFLICT (size) DO NOTHING`,
      [size, note, key, new Date(madeAt)],
    )
    // an older one follows from those after it, as long as they are consistent
    await this.#pool.query(
      `DELETE FROM runtime.log_checkpoints WHERE made_at < $1 AND size NOT IN (
         SELECT max(size) FROM runtime.log_checkpoints
         GROUP BY date_trunc('day', made_at AT TIME ZONE 'UTC'), note LIKE E'%\\n— %\\n— %')`,
      [new Date(madeAt - ALL_KEPT_MS)],
    )
  }

  async replaceNote(size: number, from: string, to: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'UPDATE runtime.log_checkpoints SET note = $3 WHERE size = $1 AND note = $2',
      [size, from, to],
    )
    return rowCount === 1
  }

  async keys(): Promise<readonly string[]> {
    const { rows } = await this.#pool.query<{ key: string }>(
      'SELECT key FROM runtime.log_checkpoints GROUP BY key ORDER BY min(size)',
    )
    return rows.map(({ key }) => key)
  }
}

async function checkpointIn(
  client: Pick<ClientBase, 'query'>,
  size: number | null,
): Promise<StoredCheckpoint | null> {
  const { rows } = await client.query<CheckpointRow>(
    `SELECT size, note, key, made_at FROM runtime.log_checkpoints
     WHERE $1::bigint IS NULL OR size = $1 ORDER BY size LIMIT 1`,
    [size],
  )
  return rows[0] ? checkpointOf(rows[0]) : null
}

function checkpointOf({ size, note, key, made_at }: CheckpointRow): StoredCheckpoint {
  return { size: Number(size), note, key, madeAt: made_at.getTime() }
}

function tileOf({ level, index, hashes, after, event_ids }: TileRow): StoredTile {
  return {
    level,
    index: Number(index),
    hashes,
    after: after === null ? null : BigInt(after),
    eventIds: event_ids,
  }
}
