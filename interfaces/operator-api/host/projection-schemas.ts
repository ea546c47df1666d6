import { z } from 'zod'
import { word } from '../../endpoints/fields.ts'
import { shownTime } from './values.ts'

/** Projections as operators see them. */

export const Lag = z
  .object({
    events: z.number().describe('Events of the log that are not applied yet'),
    seconds: z.number().describe('Real seconds since the oldest of them was recorded'),
  })
  .meta({ id: 'Lag' })

const state = word('new', 'booting', 'active', 'paused', 'parked', 'detached', 'error')
export const switching = word('auto', 'manual')

const failure = z.object({ category: z.string(), message: z.string() }).nullable()

const contents = z.object({ rows: z.int(), hash: z.string() })
const value = z.string().nullable().describe('As PostgreSQL writes it; null: none, or no such row')
const difference = z.object({
  key: z.record(z.string(), z.string()).describe('The columns of its key'),
  missing_in: word('live', 'shadow').nullable().describe('Where there is no such row'),
  columns: z
    .array(z.object({ column: z.string().describe('Its name'), live: value, shadow: value }))
    .readonly()
    .describe('What differs, personal values masked and long ones cut'),
})
const comparison = z.object({
  equal: z.boolean(),
  position: z.number(),
  tables: z
    .array(
      z.object({
        table: z.string(),
        equal: z.boolean(),
        live: contents,
        shadow: contents,
        differing_rows: z
          .int()
          .optional()
          .describe('Left out of equal tables, and of those whose keys changed'),
        differences: z
          .array(difference)
          .readonly()
          .optional()
          .describe('The first of these rows by key; 20 of all tables together'),
      }),
    )
    .readonly(),
})

const rebuild = z.object({
  generation: z.int(),
  version: z.int(),
  state,
  switch: switching,
  position: z.number(),
  head: z.number(),
  events_left: z.number(),
  events_per_second: z.number(),
  seconds_left: z.number().nullable().describe('Estimated; null while the rate is unknown'),
  parked_streams: z.int(),
  failure,
  comparison: comparison
    .nullable()
    .describe('With the live tables, at one position; null until the rebuild has caught up'),
})

export const Projection = z
  .object({
    name: z.string(),
    state,
    generation: z.int(),
    version: z.int(),
    code_version: z.int().nullable().describe('Null: the code has no such projection'),
    position: z.number(),
    head: z.number(),
    lag: Lag,
    parked_streams: z.int(),
    owner: z.string().nullable().describe('Who runs it; null when nobody does'),
    failure,
    rebuild: rebuild.nullable(),
    retired: z
      .object({
        generation: z.int(),
        version: z.int(),
        position: z.number(),
        comparison: comparison
          .nullable()
          .describe('How the live one (`shadow`) compared with it before the switch'),
      })
      .nullable()
      .describe('What a rollback goes back to'),
  })
  .meta({ id: 'Projection' })

export const ProjectionWithDeadLetters = Projection.extend({
  parked: z
    .array(
      z.object({
        generation: z.int(),
        stream: z.string(),
        position: z.number(),
        revision: z.int(),
        type: z.string(),
        category: z.string(),
        message: z.string(),
        attempts: z.int(),
        parked_at: shownTime(),
      }),
    )
    .readonly()
    .describe('Streams that wait for a redrive'),
}).meta({ id: 'ProjectionWithParkedStreams' })

const redriven = {
  streams: z.int().describe('Streams tried'),
  events: z.int().describe('Events applied; in a dry run: that wait'),
  remaining: z.int().describe('Streams that are dead-lettered still, or again'),
}
export const Redriven = z
  .object({ ...redriven, dry_run: z.boolean(), rebuild: z.object(redriven).optional() })
  .meta({ id: 'RedrivenProjection' })
