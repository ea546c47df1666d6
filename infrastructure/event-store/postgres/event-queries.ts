import type pg from 'pg'
import type { LogPage, StoredEvent } from '../../../application/ports/event-log.ts'
import { textArray, uuidArray } from './binary-arrays.ts'

/** Anything that runs a query: a pool or a client. */
export interface Queryable {
  query<Row extends unknown[]>(config: pg.QueryArrayConfig): Promise<pg.QueryArrayResult<Row>>
}

/** Session settings under which the log's statements keep to its indexes, whatever the statistics say. */
export const LOG_SESSION: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  max_parallel_workers_per_gather: '0',
  plan_cache_mode: 'force_generic_plan',
}

/** Where a stream ends. */
export interface StreamHead {
  /** Revision of the last event, -1 when there is none. */
  readonly revision: number
  /** Hash of the last event; null: another program wrote it without, and nothing can be chained to it. */
  readonly hash: string | null
  /** Position of the last event. */
  readonly position: bigint
}

/** Where an event stands. */
export interface EventPlace {
  readonly stream: string
  readonly revision: number
  readonly position: bigint
}

// the text of every column as it came: json is not parsed, and numbers are turned where needed
const AS_TEXT = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig

/** How many positions a statement looks through for events of some types: what is rare is looked for step by step. */
export const SEARCH_WINDOW = 20_000

/** Stored size of the data after which a page ends although it has fewer events than asked for. */
const PAGE_BYTES = 4 * 1024 * 1024

type EventRow = [
  position: string,
  revision: string,
  eventId: string,
  stream: string,
  type: string,
  data: string,
  metadata: string,
]
const COLUMNS = 'position, revision, event_id, stream, type, data, metadata'

function storedEvent(row: EventRow | PageRow): StoredEvent {
  return {
    position: BigInt(row[0]),
    stream: row[3],
    revision: Number(row[1]),
    eventId: row[2],
    type: row[4],
    data: row[5],
    metadata: row[6],
  }
}

/** Reads a stream in either direction. */
export async function readStream(
  db: Queryable,
  stream: string,
  options: { from: number; maxCount: number; direction: 'forwards' | 'backwards' },
): Promise<StoredEvent[]> {
  const forwards = options.direction === 'forwards'
  const { rows } = await db.query<EventRow>({
    name: forwards ? 'event_log/stream' : 'event_log/stream_backwards',
    text: `SELECT ${COLUMNS} FROM event_log.events
            WHERE stream = $1 AND revision ${forwards ? '>=' : '<='} $2
            ORDER BY revision ${forwards ? '' : 'DESC'} LIMIT $3`,
    values: [stream, options.from, options.maxCount],
    rowMode: 'array',
    types: AS_TEXT,
  })
  return rows.map(storedEvent)
}

type PageRow = [...EventRow, bytes: string]

function pageText(filter: string): string {
  // the last row tells the head as of the same snapshot
  return `(SELECT ${COLUMNS}, bytes::text
             FROM (SELECT ${COLUMNS}, pg_column_size(data) AS own,
                          sum(pg_column_size(data)) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS bytes
                     FROM event_log.events
                    WHERE position > $1 ${filter} ORDER BY position LIMIT $2) AS page
            WHERE bytes - own < ${PAGE_BYTES} ORDER BY position)
          UNION ALL
          SELECT COALESCE(max(position), 0), NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM event_log.events`
}
const PAGE_TEXT = pageText('')
const FILTERED_PAGE_TEXT = pageText('AND position <= $4 AND type = ANY ($3::text[])')

/**
 * Reads a page of the log after a position: `maxCount` events at the most, fewer when they are large. Of some types only,
 * it ends after {@link SEARCH_WINDOW} positions, and may be empty before the head.
 */
export async function readPage(
  db: Queryable,
  options: { after: bigint; maxCount: number; types?: readonly string[] | undefined },
): Promise<LogPage> {
  const { after, maxCount, types } = options
  const end = after + BigInt(SEARCH_WINDOW)
  const { rows } = await db.query<PageRow>({
    name: types ? 'event_log/page_of_types' : 'event_log/page',
    text: types ? FILTERED_PAGE_TEXT : PAGE_TEXT,
    values: types ? [after, maxCount, types, end] : [after, maxCount],
    rowMode: 'array',
    types: AS_TEXT,
  })
  const head = BigInt(rows.pop()![0])
  const events = rows.map(storedEvent)
  const full = rows.length >= maxCount || Number(rows.at(-1)?.[7] ?? 0) >= PAGE_BYTES
  const reached = events.at(-1)?.position ?? after
  if (full) return { events, checkpoint: reached, atHead: reached >= head }
  if (types && end < head) return { events, checkpoint: end, atHead: false }
  return { events, checkpoint: head > reached ? head : reached, atHead: true }
}

/** Position of the last event, 0 when there is none. */
export async function readHead(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<[string]>({
    name: 'event_log/head',
    text: 'SELECT COALESCE(max(position), 0) FROM event_log.events',
    rowMode: 'array',
    types: AS_TEXT,
  })
  return BigInt(rows[0]![0])
}

/** The heads of those of the given streams that have events, and the head of the log as of the same snapshot. */
export async function readStreamHeads(
  db: Queryable,
  streams: readonly string[],
): Promise<{ streams: Map<string, StreamHead>; head: bigint }> {
  type Row = [position: string, n: string | null, revision: string, hash: string]
  const { rows } = await db.query<Row>({
    name: 'event_log/stream_heads',
    text: `SELECT last.position, wanted.n, last.revision, right(last.metadata::text, 66)
             FROM unnest($1::text[]) WITH ORDINALITY AS wanted (stream, n)
                  CROSS JOIN LATERAL
                  (SELECT position, revision, metadata FROM event_log.events
                    WHERE stream = wanted.stream COLLATE "C" ORDER BY revision DESC LIMIT 1) AS last
           UNION ALL
           SELECT COALESCE(max(position), 0), NULL, NULL, NULL FROM event_log.events`,
    values: [textArray(streams)],
    rowMode: 'array',
    types: AS_TEXT,
  })
  const head = BigInt(rows.pop()![0])
  const heads = new Map<string, StreamHead>()
  for (const [position, n, revision, end] of rows) {
    const stream = streams[Number(n) - 1]!
    const hash = /^([0-9a-f]{64})"\}$/.exec(end)?.[1] ?? null
    heads.set(stream, { revision: Number(revision), hash, position: BigInt(position) })
  }
  return { streams: heads, head }
}

/** Revisions of the last events of those of the given streams that have events. */
export async function readRevisions(
  db: Queryable,
  streams: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await db.query<[n: string, revision: string]>({
    name: 'event_log/revisions',
    text: `SELECT wanted.n, last.revision
             FROM unnest($1::text[]) WITH ORDINALITY AS wanted (stream, n)
                  CROSS JOIN LATERAL
                  (SELECT revision FROM event_log.events
                    WHERE stream = wanted.stream COLLATE "C" ORDER BY revision DESC LIMIT 1) AS last`,
    values: [textArray(streams)],
    rowMode: 'array',
    types: AS_TEXT,
  })
  return new Map(rows.map(([n, revision]) => [streams[Number(n) - 1]!, Number(revision)]))
}

/** Where the events with the given ids stand, for those that exist. */
export async function findEvents(
  db: Queryable,
  eventIds: readonly string[],
): Promise<Map<string, EventPlace>> {
  if (eventIds.length === 0) return new Map()
  type Row = [eventId: string, stream: string, revision: string, position: string]
  const { rows } = await db.query<Row>({
    name: 'event_log/find',
    text: `SELECT event_id, stream, revision, position FROM event_log.events
            WHERE event_id IN (SELECT unnest($1::uuid[]))`,
    values: [uuidArray(eventIds)],
    rowMode: 'array',
    types: AS_TEXT,
  })
  return new Map(
    rows.map(([id, stream, revision, position]) => [
      id,
      { stream, revision: Number(revision), position: BigInt(position) },
    ]),
  )
}
