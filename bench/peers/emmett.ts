import { identifier, SQL } from '@event-driven-io/dumbo'
import { type Event, STREAM_DOES_NOT_EXIST } from '@event-driven-io/emmett'
import { getPostgreSQLEventStore, postgreSQLRawSQLProjection } from '@event-driven-io/emmett-postgresql'
import pg from 'pg'
import { expectCount } from '../our-projection.ts'
import { type Hours, hoursEvent, type Layout, METADATA, type Timesheet, timesheet } from '../timesheets.ts'

type HoursEvent = Event<'HoursRecorded', Hours, typeof METADATA>

/** The same work on emmett's PostgreSQL event store, written as its documentation shows. */
export interface Emmett {
  /** @param revision that the stream is expected at, -1 (default) for a new one. */
  append(timesheetId: string, count: number, revision?: number): Promise<void>
  load(timesheetId: string): Promise<Timesheet>
  /**
   * Catches up from the beginning of the log with a raw SQL projection in a consumer that keeps a checkpoint. That consumer
   * skips events which were appended side by side (12 to 16 % of them, measured): what it counted is compared before
   * there is a figure.
   * @param name of the projection and its table.
   * @param layout of the log.
   * @param pulling how the consumer reads; emmett's defaults are pages of 100 and a pause of 50 ms after each.
   * @returns milliseconds from starting the consumer until it found nothing more.
   * @throws Error when its projection did not count every event.
   */
  catchUp(
    name: string,
    layout: Layout,
    pulling?: { batchSize: number; pullingFrequencyInMs: number },
  ): Promise<number>
  close(): Promise<void>
}

export async function openEmmett(url: string): Promise<Emmett> {
  const store = getPostgreSQLEventStore(url)
  await store.schema.migrate()
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  return {
    async append(timesheetId, count, revision = -1) {
      const events = Array.from({ length: count }, (_, entry): HoursEvent => {
        const { type, data } = hoursEvent(timesheetId, revision + 1 + entry)
        return { type, data, metadata: METADATA }
      })
      await store.appendToStream(`timesheet-${timesheetId}`, events, {
        // it counts events from 1
        expectedStreamVersion: revision < 0 ? STREAM_DOES_NOT_EXIST : BigInt(revision + 1),
      })
    },
    async load(timesheetId) {
      const { state } = await store.aggregateStream<Timesheet, HoursEvent>(`timesheet-${timesheetId}`, {
        initialState: () => timesheet.initialState,
        evolve: (state: Timesheet, { type, data }: HoursEvent) => timesheet.evolve(state, { type, data }),
      })
      return state
    },
    async catchUp(table, { streams, events }, pulling) {
      await pool.query(
        `CREATE TABLE ${table} (timesheet_id text PRIMARY KEY, employer_id text, entries integer,
                                gross_cents bigint, last_check_date date)`,
      )
      const projection = postgreSQLRawSQLProjection<HoursEvent>({
        name: table,
        canHandle: ['HoursRecorded'],
        evolve: ({ data }) => SQL`
          INSERT INTO ${identifier(table)} AS t
            (timesheet_id, employer_id, entries, gross_cents, last_check_date)
          VALUES (${data.timesheet_id}, ${data.employer_id}, 1, ${data.gross_cents}, ${data.check_date})
          ON CONFLICT (timesheet_id) DO UPDATE
            SET entries = t.entries + 1,
                gross_cents = t.gross_cents + EXCLUDED.gross_cents,
                last_check_date = EXCLUDED.last_check_date`,
      })
      const consumer = store.consumer({
        stopWhen: { noMessagesLeft: true },
        ...(pulling ? { pulling } : {}),
      })
      consumer.projector({ processorId: table, projection, connectionOptions: { connectionString: url } })
      const started = performance.now()
      await consumer.start()
      const elapsed = performance.now() - started
      const { rows } = await pool.query<{ timesheets: number; entries: number }>(
        `SELECT count(*)::int AS timesheets, coalesce(sum(entries), 0)::int AS entries FROM ${table}`,
      )
      expectCount(rows[0]!.timesheets, streams)
      expectCount(rows[0]!.entries, streams * events)
      return elapsed
    },
    async close() {
      await pool.end()
      await store.close()
    },
  }
}
