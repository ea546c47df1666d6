import { z } from 'zod'
import {
  type EventFilter,
  readLogEvents,
  readStreamEvents,
  stateAt,
} from '../../../application/audit/streams.ts'
import { Answer } from '../../endpoints/endpoint.ts'
import { id, limitText, optionalWholeNumberText, wholeNumberText } from '../../endpoints/fields.ts'
import { endpoint, notFound, recordReveal } from '../host/api.ts'
import { dataSubject, given, revealing, shownTime, timeText } from '../host/values.ts'
import { hashPath, proving, withProofs } from './proofs.ts'

const DEFAULT_EVENTS = 100
const MAX_EVENTS = 1000
const MAX_REVISION = 2 ** 31 - 1
const STREAM = /^[\x21-\x7e]{1,255}$/

/** An event as it is shown. */
export const Event = z
  .object({
    position: z.string().describe('Place in the order of the log'),
    stream: z.string(),
    revision: z.int(),
    event_id: z.string(),
    type: z.string(),
    version: z.number().nullable(),
    recorded_at: z.string().nullable(),
    data: z.unknown().describe('Personal fields are masked unless `reveal=true`'),
    metadata: z.record(z.string(), z.unknown()),
    leaf_hash: z
      .string()
      .describe('Hash of its leaf in the tree over the log, which is over the stored bytes; base64'),
    proof: z
      .object({ leaf_index: z.int().describe('Events before it'), path: hashPath })
      .nullable()
      .optional()
      .describe('Only with `tree_size`: that it is in that tree; null: it comes behind'),
  })
  .meta({ id: 'Event' })

const StreamState = z
  .object({ stream: z.string(), revision: z.int(), recorded_at: shownTime(), state: z.unknown() })
  .meta({ id: 'StreamState' })

const params = z.object({ stream: z.string().describe('For example `policy-1ef7abbb72b853c78170498f`') })
const DIFFERS = { 409: 'With `tree_size`: an event is not the one that the tree has in its place' } as const
const NONE = { 404: 'There is no such stream' } as const

/** Query parameters that say which events are shown, and how. */
const reading = {
  limit: limitText({ missing: DEFAULT_EVENTS, most: MAX_EVENTS }),
  type: z
    .string()
    .regex(/^\w{1,100}$/, 'must be the name of an event type')
    .optional()
    .describe('Events of this type'),
  tenant_id: id().optional().describe('Events of this tenant'),
  correlation_id: z.string().optional().describe('Events that one request caused'),
  actor: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be the id or the type of an actor, or type/id')
    .optional()
    .describe('Events that this one caused: an id, a type such as `operator`, or `type/id`'),
  subject: dataSubject()
    .optional()
    .describe('Events that hold something of this data subject: `person/<24 hex>` or `employer/<24 hex>`'),
  from_time: timeText().describe('Events recorded then or later: a time in ISO 8601 with a zone'),
  to_time: timeText().describe('Events recorded then or earlier'),
  ...proving,
  ...revealing,
}
type Times = Readonly<Partial<Record<'from_time' | 'to_time', number | undefined>>>
const isInOrder = ({ from_time: from, to_time: to }: Times) =>
  from === undefined || to === undefined || from <= to
const IN_ORDER = { message: 'must not be earlier than from_time', path: ['to_time'] }

const columns = {
  position: 'position',
  stream: (row: Readonly<Record<string, unknown>>) => `${row.stream} @${row.revision}`,
  type: 'type',
  recorded: 'recorded_at',
  actor: 'metadata.actor',
  data: (row: Readonly<Record<string, unknown>>) => shortened(JSON.stringify(row.data)),
}

export const streamEndpoints = [
  endpoint({
    operation: 'listStreamEvents',
    route: 'GET /streams/{stream}',
    summary: 'List events of a stream in order',
    description:
      'Go on from `pagination.next` until it is null; a filtered answer may be empty and still have one.',
    params,
    query: z
      .object({
        from: wholeNumberText({ min: 0, max: MAX_REVISION, missing: 0 }).describe('The first revision'),
        ...reading,
      })
      .refine(isInOrder, IN_ORDER),
    answers: { 200: z.array(Event).readonly() },
    pagination: z.object({ next: z.int().nullable() }),
    errors: { ...NONE, ...DIFFERS },
    command: { items: 'events' },
    columns,
    async handle(call) {
      const { from, reveal } = call.query
      const stream = streamName(call.params.stream)
      const wanted = wantedOf(call.query)
      const page = await readStreamEvents(call.host.app, stream, { from, ...wanted })
      if (!page) throw notFound('There is no such stream')
      const events = await withProofs(call.host.services.logTree, page.events, call.query.tree_size)
      if (reveal) {
        await recordReveal(call, stream, { from, limit: wanted.limit, values: page.revealed })
      }
      return new Answer(200, events, { pagination: { next: page.next } })
    },
  }),
  endpoint({
    operation: 'showStreamState',
    route: 'GET /streams/{stream}/state',
    summary: 'Show the folded state of a stream, now or at a point',
    params,
    query: z
      .object({
        as_of: timeText(),
        revision: optionalWholeNumberText({ min: 0 }).describe('Up to this revision'),
      })
      .refine(({ as_of, revision }) => as_of === undefined || revision === undefined, {
        path: ['revision'],
        error: 'cannot be given together with as_of',
      }),
    answers: { 200: StreamState },
    errors: {
      404: 'There is no such stream, or it was empty at that point',
      409: 'An event of the stream cannot be read',
    },
    async handle({ host, params, query: { as_of: asOf, revision } }) {
      const state = await stateAt(host.app, streamName(params.stream), given({ asOf, revision }))
      if (!state) throw notFound('There is no such stream, or it was empty at that point')
      return state
    },
  }),
  endpoint({
    operation: 'listEvents',
    route: 'GET /events',
    summary: 'List events in log order',
    description:
      'Go on from `pagination.next` until it is null; a filtered answer may be empty and still have one.',
    query: z
      .object({
        from: wholeNumberText({ min: 0, missing: 0 }).describe('Go on after this position'),
        ...reading,
      })
      .refine(isInOrder, IN_ORDER),
    answers: { 200: z.array(Event).readonly() },
    pagination: z.object({
      next: z.string().nullable(),
      read_to: z.string().describe('At the end: go on after this position when there is more'),
    }),
    errors: DIFFERS,
    columns,
    async handle(call) {
      const { from, reveal, tree_size } = call.query
      const wanted = wantedOf(call.query)
      const page = await readLogEvents(call.host.app, { after: BigInt(from), ...wanted })
      const events = await withProofs(call.host.services.logTree, page.events, tree_size)
      if (reveal) {
        const details = { from: String(from), limit: wanted.limit, values: page.revealed }
        await recordReveal(call, 'events', details)
      }
      const { next, read_to } = page
      return new Answer(200, events, { pagination: { next, read_to } })
    },
  }),
]

/** What no stream can be called is not looked up. @throws HttpError 404. */
export function streamName(text: string): string {
  if (!STREAM.test(text)) throw notFound('There is no such stream')
  return text
}

function wantedOf(query: z.output<z.ZodObject<typeof reading>>): {
  readonly limit: number
  readonly reveal: boolean
  readonly filter: EventFilter
} {
  const { limit, reveal, type, actor, subject } = query
  const { tenant_id: tenantId, correlation_id: correlationId, from_time: fromTime, to_time: toTime } = query
  return {
    limit,
    reveal,
    filter: given({ type, tenantId, correlationId, actor, subject, fromTime, toTime }),
  }
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}
