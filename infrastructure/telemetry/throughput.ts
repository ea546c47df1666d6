import type { Pool } from 'pg'
import type { Throughput, ThroughputSample, ThroughputSlot } from '../../application/ports/throughput.ts'

interface SlotRow {
  readonly at: Date
  readonly rate: number | null
  readonly events: string | null
  readonly seconds: number | null
}

/** Samples of the last 25 hours in the table `runtime.throughput`. */
export class PostgresThroughput implements Throughput {
  readonly #pool: Pick<Pool, 'query'>

  constructor(pool: Pick<Pool, 'query'>) {
    this.#pool = pool
  }

  async add({ seconds, events, eventsBehind, secondsBehind }: ThroughputSample): Promise<void> {
    await this.#pool.query({
      name: 'throughput/add',
      text: `WITH old AS (DELETE FROM runtime.throughput WHERE at < now() - interval '25 hours')
             INSERT INTO runtime.throughput (at, seconds, events, events_behind, seconds_behind)
             VALUES (now(), $1, $2, $3, $4) ON CONFLICT (at) DO NOTHING`,
      values: [seconds, events, eventsBehind, secondsBehind],
    })
  }

  async slots(count: number, seconds: number): Promise<readonly ThroughputSlot[]> {
    const { rows } = await this.#pool.query<SlotRow>({
      name: 'throughput/slots',
      text: `SELECT slot AS at, sum(s.events)::double precision / nullif(sum(s.seconds), 0) AS rate,
                    max(s.events_behind) AS events, max(s.seconds_behind) AS seconds
             FROM (SELECT make_interval(secs => $2) AS long,
                          to_timestamp(floor(extract(epoch FROM now()) / $2) * $2) AS last) AS t
             CROSS JOIN LATERAL generate_series(last - ($1 - 1) * long, last, long) AS slot
             LEFT JOIN runtime.throughput AS s ON s.at >= slot AND s.at < slot + long
             GROUP BY slot ORDER BY slot`,
      values: [count, seconds],
    })
    return rows.map(({ at, rate, events, seconds }) => ({
      at,
      eventsPerSecond: rate,
      eventsBehind: events === null ? null : Number(events),
      secondsBehind: seconds,
    }))
  }
}
