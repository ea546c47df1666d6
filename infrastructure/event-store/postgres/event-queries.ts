import type pg from 'pg'
import { groupBy } from '../../../application/commands/group-by.ts'
import type { Changes, EventPlace, LogPage, StoredEvent } from '../../../application/ports/event-log.ts'
import { integerArray, textArray } from '../../database/binary-arrays.ts'
import type { PagesOptions } from '../follow-log.ts'

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

/** An event as a place in the hash chain. */
export interface ChainLink {
  readonly eventId: string
  readonly position: bigint
  /** Null: another program wrote the event without, and nothing can be chained to it. */
  readonly hash: string | null
}

// the text of every column as it came: json is not parsed, and numbers are turned where needed
const AS_TEXT = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig

/** How many positions a statement looks through for events of some types: what is rare is looked for step by step. */
export const SEARCH_WINDOW = 20_000

/** Events behind a position that are looked at one by one. */
const MOST_CHANGES = 2_000

/** Stored size of the data after which a page ends although it has fewer events than asked for. */
const PAGE_BYTES = 4 * 1024 * 1024

async function texts<Row extends unknown[]>(
  db: Queryable,
  query: { readonly name: string; readonly text: string; readonly values?: unknown[] },
): Promise<Row[]> {
  return (await db.query<Row>({ ...query, rowMode: 'array', types: AS_TEXT })).rows
}

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

function storedEvent(row: readonly [...EventRow, ...unknown[]]): StoredEvent {
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
  const rows = await texts<EventRow>(db, {
    name: forwards ? 'event_log/stream' : 'event_log/stream_backwards',
    text: `SELECT ${COLUMNS} FROM event_log.events
            WHERE stream = $1 AND revision ${forwards ? '>=' : '<='} $2
            ORDER BY revision ${forwards ? '' : 'DESC'} LIMIT $3`,
    values: [stream, options.from, options.maxCount],
  })
  return rows.map(storedEvent)
}

/** Some events of a stream: so many from a revision on. */
export interface StreamStretch {
  readonly stream: string
  readonly from: number
  readonly maxCount: number
}

/** Reads stretches of streams; those without events are left out. */
export async function readStretches(
  db: Queryable,
  stretches: readonly StreamStretch[],
): Promise<ReadonlyMap<StreamStretch, readonly StoredEvent[]>> {
  const columns = COLUMNS.replaceAll(/\w+/g, 'found.$&')
  const rows = await texts<[...EventRow, n: string]>(db, {
    name: 'event_log/stretches',
    text: `SELECT ${columns}, wanted.n
             FROM unnest($1::text[], $2::int[], $3::int[]) WITH ORDINALITY AS wanted (stream, first, most, n)
                  CROSS JOIN LATERAL
                  (SELECT ${COLUMNS} FROM event_log.events
                    WHERE stream = wanted.stream COLLATE "C" AND revision >= wanted.first
                    ORDER BY revision LIMIT wanted.most) AS found
            ORDER BY wanted.n, found.revision`,
    values: [
      textArray(stretches.map(({ stream }) => stream)),
      integerArray(stretches.map(({ from }) => from)),
      integerArray(stretches.map(({ maxCount }) => maxCount)),
    ],
  })
  const read = groupBy(rows, (row) => stretches[Number(row[7]) - 1]!)
  return new Map([...read].map(([stretch, own]) => [stretch, own.map(storedEvent)]))
}

/** The events at some places, without those that do not exist. */
export async function readEventsAt(
  db: Queryable,
  places: readonly EventPlace[],
): Promise<readonly StoredEvent[]> {
  const read = await readStretches(
    db,
    places.map(({ stream, revision }) => ({ stream, from: revision, maxCount: 1 })),
  )
  return [...read].flatMap(([{ from }, events]) => events.filter(({ revision }) => revision === from))
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
  const rows = await texts<PageRow>(db, {
    name: types ? 'event_log/page_of_types' : 'event_log/page',
    text: types ? FILTERED_PAGE_TEXT : PAGE_TEXT,
    values: types ? [after, maxCount, types, end] : [after, maxCount],
  })
  const head = BigInt(rows.pop()![0])
  const events = rows.map(storedEvent)
  const full = rows.length >= maxCount || Number(rows.at(-1)?.[7] ?? 0) >= PAGE_BYTES
  const reached = events.at(-1)?.position ?? after
  if (full) return { events, checkpoint: reached, atHead: reached >= head }
  if (types && end < head) return { events, checkpoint: end, atHead: false }
  return { events, checkpoint: head > reached ? head : reached, atHead: true }
}

/** Reads pages up to a position that the log reaches, the next one while the consumer works on the one before. */
export async function* readPages(
  db: Queryable,
  after: bigint,
  upTo: bigint,
  { types, pageSize, signal }: PagesOptions,
): AsyncGenerator<LogPage, void, undefined> {
  const read = (from: bigint) => {
    const page = readPage(db, { after: from, maxCount: pageSize, types })
    // it may be abandoned; its awaiting caller still gets the failure
    page.catch(() => undefined)
    return page
  }
  let ahead = read(after)
  for (let checkpoint = after; checkpoint < upTo; ) {
    const page = await ahead
    if (signal.aborted) return
    // the log ended before the feed: as a log that went back does
    if (page.checkpoint <= checkpoint) throw new Error(`the log ends before position ${upTo}`)
    checkpoint = page.checkpoint
    if (checkpoint < upTo) ahead = read(checkpoint)
    yield page
  }
}

/** Position of the last event, 0 when there is none. */
export async function readHead(db: Queryable): Promise<bigint> {
  const rows = await texts<[string]>(db, {
    name: 'event_log/head',
    text: 'SELECT COALESCE(max(position), 0) FROM event_log.events',
  })
  return BigInt(rows[0]![0])
}

/** Id of the event at a position; null where none stands. */
export async function readId(db: Queryable, position: bigint): Promise<string | null> {
  const rows = await texts<[string]>(db, {
    name: 'event_log/id',
    text: 'SELECT event_id FROM event_log.events WHERE position = $1',
    values: [position],
  })
  return rows[0]?.[0] ?? null
}

/** The events at the given places, in their order; undefined where none stands. */
export async function readLinks(
  db: Queryable,
  places: readonly EventPlace[],
): Promise<readonly (ChainLink | undefined)[]> {
  const rows = await texts<[n: string, eventId: string, position: string, end: string]>(db, {
    name: 'event_log/links',
    text: `SELECT wanted.n, found.event_id, found.position, right(found.metadata::text, 66)
             FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS wanted (stream, revision, n)
                  CROSS JOIN LATERAL
                  (SELECT event_id, position, metadata FROM event_log.events
                    WHERE stream = wanted.stream COLLATE "C" AND revision = wanted.revision LIMIT 1) AS found`,
    values: [
      textArray(places.map(({ stream }) => stream)),
      integerArray(places.map(({ revision }) => revision)),
    ],
  })
  const links = new Array<ChainLink | undefined>(places.length)
  for (const [n, eventId, position, end] of rows) {
    const hash = /^([0-9a-f]{64})"\}$/.exec(end)?.[1] ?? null
    links[Number(n) - 1] = { eventId, position: BigInt(position), hash }
  }
  return links
}

/** Which streams have gone on behind a position, and to which revision. */
export async function readChanges(db: Queryable, after: bigint): Promise<Changes> {
  const rows = await texts<[position: string, stream: string, revision: string]>(db, {
    name: 'event_log/changes',
    // the last row tells the head as of the same snapshot
    text: `(SELECT position, stream, revision FROM event_log.events
             WHERE position > $1 ORDER BY position LIMIT ${MOST_CHANGES})
           UNION ALL
           SELECT COALESCE(max(position), 0), NULL, NULL FROM event_log.events`,
    values: [after],
  })
  const upTo = BigInt(rows.pop()![0])
  const isAll = rows.length < MOST_CHANGES
  return {
    upTo,
    revisions: isAll ? new Map(rows.map(([, stream, revision]) => [stream, Number(revision)])) : null,
  }
}
