import { z } from 'zod'
import type { ThroughputSlot } from '../../../application/ports/throughput.ts'
import { withDefault, word } from '../../endpoints/fields.ts'
import { endpoint } from '../host/api.ts'
import { shownTime } from '../host/values.ts'

/** Slots of each span: how many, and how long one is in seconds. */
const SPANS = { hour: [60, 60], day: [72, 1_200] } as const

const measured = z.number().nullable()
const Slot = z
  .object({
    at: shownTime().describe('Its beginning, in real time also where the clock is virtual'),
    events_per_second: measured.describe('Events stored; null: not measured'),
    events_behind: measured.describe('Of the read model or process manager furthest behind the log'),
    seconds_behind: measured.describe('Real seconds, of the one furthest behind'),
  })
  .meta({ id: 'ThroughputSlot' })

export const throughputEndpoints = [
  endpoint({
    operation: 'showThroughput',
    route: 'GET /throughput',
    summary: 'Show how many events were stored, and how late their readers were, over the last hour or day',
    description:
      'An hour in minutes, a day in parts of 20 minutes, oldest first. A worker takes samples each half minute and keeps ' +
      'them for 25 hours. Of EventStoreDB, numbers of events are estimated.',
    query: z.object({ span: withDefault(word('hour', 'day'), 'hour').describe('How far back') }),
    answers: { 200: z.array(Slot).readonly() },
    command: { name: 'throughput', items: 'slots' },
    columns: {
      at: 'at',
      'events/s': 'events_per_second',
      'behind (events)': 'events_behind',
      'behind (s)': 'seconds_behind',
    },
    async handle({ host, query }) {
      const [count, seconds] = SPANS[query.span]
      return (await host.services.throughput.slots(count, seconds)).map(shown)
    },
  }),
]

function shown({ at, eventsPerSecond, eventsBehind, secondsBehind }: ThroughputSlot) {
  return {
    at: at.toISOString(),
    events_per_second: rounded(eventsPerSecond),
    events_behind: eventsBehind,
    seconds_behind: rounded(secondsBehind),
  }
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1_000) / 1_000
}
