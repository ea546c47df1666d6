import { createHash } from 'node:crypto'
import { z } from 'zod'
import { EventRegistry } from '../application/commands/event-registry.ts'
import { bigint, date, integer, table, text } from '../application/queries/table.ts'
import type { Decider } from '../domain/kernel/decider.ts'
import { type EventOf, eventType } from '../domain/kernel/event-type.ts'
import { id } from '../domain/kernel/ids.ts'
import { type Projection, projection } from '../projections/runtime/projection.ts'
import { sameRandoms } from './statistics.ts'

/** An aggregate to measure with: a timesheet that hours are recorded on, some 300 bytes an event. */
const HoursRecorded = eventType('HoursRecorded', {
  timesheet_id: id(),
  employer_id: id(),
  policy_id: id(),
  class_code: z.string(),
  state: z.string(),
  period: z.object({ start: z.string(), end: z.string() }),
  check_date: z.string(),
  hours: z.number().positive(),
  rate: z.number().positive(),
  gross_cents: z.number().int(),
})
export type HoursRecorded = EventOf<typeof HoursRecorded>
export type Hours = HoursRecorded['data']

export interface Timesheet {
  readonly entries: number
  readonly gross_cents: number
  readonly last_check_date: string | null
}

export const timesheet: Decider<Timesheet, { readonly hours: Hours }, HoursRecorded> = {
  category: 'timesheet',
  events: [HoursRecorded],
  initialState: { entries: 0, gross_cents: 0, last_check_date: null },
  evolve: (state, { data }) => ({
    entries: state.entries + 1,
    gross_cents: state.gross_cents + data.gross_cents,
    last_check_date: data.check_date,
  }),
  decide: ({ hours }) => [HoursRecorded.of(hours)],
}

export const registry = new EventRegistry([timesheet])

/** One row per timesheet. @param name its table; the projection is called alike. */
export function timesheetsProjection(name: string): Projection {
  return projection({
    name: name.replaceAll('_', '-'),
    version: 1,
    tables: [
      table(name, {
        key: ['timesheet_id'],
        columns: {
          timesheet_id: text(),
          employer_id: text(),
          entries: integer(),
          gross_cents: bigint(),
          last_check_date: date(),
        },
      }),
    ],
    handlers: (on) => [
      on(HoursRecorded, {
        reads: ({ data }) => ({ [name]: [[data.timesheet_id]] }),
        apply({ data }, tables) {
          const rows = tables[name]!
          const row = rows.get(data.timesheet_id)
          rows.put({
            timesheet_id: data.timesheet_id,
            employer_id: data.employer_id,
            entries: (row?.entries ?? 0) + 1,
            gross_cents: (row?.gross_cents ?? 0) + data.gross_cents,
            last_check_date: data.check_date,
          })
        },
      }),
    ],
  })
}

/** A stable id from a text. */
export function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}

const EMPLOYER = idOf('employer')
const POLICY = idOf('policy')
const PERIOD = { start: '2026-08-01', end: '2026-08-15' }

/** The metadata that the service writes with every event. */
export const METADATA = {
  tenant_id: idOf('tenant'),
  environment: 'live',
  actor: { type: 'api_client', id: idOf('client') },
  correlation_id: '0197c1de-5b0c-7d8e-9a51-3f2b6c7d8e90',
  causation_id: '0197c1de-5b0c-7d8e-9a51-3f2b6c7d8e90',
  command_id: 'b71f2e0c9a4d5e6f8091a2b3',
  recorded_at: '2026-08-14T16:20:31.402Z',
} as const

export function hoursEvent(timesheetId: string, entry: number): HoursRecorded {
  const hours = 60 + (entry % 25)
  return HoursRecorded.of({
    timesheet_id: timesheetId,
    employer_id: EMPLOYER,
    policy_id: POLICY,
    class_code: '5403',
    state: 'CA',
    period: PERIOD,
    check_date: '2026-08-14',
    hours,
    rate: 24.75,
    gross_cents: hours * 2475,
  })
}

/** A log to catch up with: so many streams of so many events each. */
export interface Layout {
  readonly streams: number
  readonly events: number
  /** True: the events of a stream are spread over the log, as in real ones; else they stand one behind the other. */
  readonly interleaved: boolean
}

/**
 * What to append to which stream, by passes: pieces of one pass are of different streams and may be appended at once,
 * passes come after one another. Interleaved, each pass appends one event to every stream, in another order.
 */
export function passes({
  streams,
  events,
  interleaved,
}: Layout): { id: string; count: number; revision: number }[][] {
  const ids = Array.from({ length: streams }, (_, n) => idOf(`stream ${n}`))
  if (!interleaved) return [ids.map((id) => ({ id, count: events, revision: -1 }))]
  const random = sameRandoms()
  return Array.from({ length: events }, (_, n) =>
    shuffled(ids, random).map((id) => ({ id, count: 1, revision: n - 1 })),
  )
}

function shuffled(values: readonly string[], random: () => number): string[] {
  return values
    .map((value) => ({ value, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
}
