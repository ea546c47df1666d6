import { z } from 'zod'
import { causationGraph } from '../../../application/audit/causation-graph.ts'
import { storyOf } from '../../../application/audit/stories.ts'
import { STORY_KINDS } from '../../../application/audit/story-streams.ts'
import { Answer } from '../../endpoints/endpoint.ts'
import { flagText, limitText, optionalWholeNumberText, wholeNumberText } from '../../endpoints/fields.ts'
import { endpoint, notFound, recordReveal } from '../host/api.ts'
import { given, revealing, shownTime, timeText } from '../host/values.ts'
import { proving, withProofs } from './proofs.ts'
import { Event } from './streams.ts'

const DEFAULT_EVENTS = 100
const MAX_EVENTS = 500

const kind = z.enum(STORY_KINDS)
const Thing = z.object({ kind, id: z.string() })

const Story = Thing.extend({
  stream: z.string().describe('Its own stream'),
  revision: z.int().describe('Of the last event of its own stream that counts'),
  recorded_at: shownTime(),
  state: z
    .unknown()
    .describe('What it came to, personal fields masked; null where it is gone, or its history is too large'),
  events: z
    .array(
      Event.extend({
        sentence: z.string().describe('What it says, in plain words'),
        about: Thing.nullable().describe('Whose stream it stands in; null: that has no story'),
        caused_by: z
          .string()
          .nullable()
          .describe('Id of the event that caused it; null: the request or timer `metadata.correlation_id`'),
        causes: z.array(z.string()).readonly().describe('Ids of the events among these that it caused'),
      }).meta({ id: 'StoryEvent' }),
    )
    .readonly(),
  changes: z
    .array(
      z.object({
        path: z.string().describe('For example `rates[0].rate_per_100`'),
        before: z.unknown(),
        after: z.unknown(),
      }),
    )
    .readonly()
    .nullable()
    .describe('What has changed in the state since `since` or `since_position`; null without them'),
  graph: z
    .string()
    .nullable()
    .describe('What caused what, as a Mermaid flowchart; null without `graph=true`'),
}).meta({ id: 'Story' })

const NONE = 'There is no such thing, or there was none at that point'
/** When, in one of two ways. */
const oneOf = (time: 'as_of' | 'since', position: 'position' | 'since_position') => ({
  holds: (query: Readonly<Record<string, unknown>>) =>
    query[time] === undefined || query[position] === undefined,
  otherwise: { message: `cannot be given together with ${time}`, path: [position] },
})

const END = oneOf('as_of', 'position')
const BEGINNING = oneOf('since', 'since_position')

export const storyEndpoints = [
  endpoint({
    operation: 'showStory',
    route: 'GET /stories/{kind}/{id}',
    summary: 'Tell the story of a thing: its events over all its streams, each in a sentence, and its state',
    description:
      'The story of a policy or an employer has how each thing under it began: files, links, sessions, debits, ' +
      'subscriptions, each of which has a story of its own. That of a file, link, session or debit has those of its debits, ' +
      'subscription, bank files and credits as a whole. A `webhook` is an event for partners or a subscription. ' +
      'Go on from `pagination.next` until it is null.',
    params: z.object({
      kind: z
        .enum(STORY_KINDS, `kind must be one of ${STORY_KINDS.join(', ')}`)
        .describe('What it is; a `file` is a payroll file, or one of changes of employees'),
      id: z.string().describe('Its id'),
    }),
    query: z
      .object({
        as_of: timeText().describe('The story as of this time, in ISO 8601 with a zone'),
        position: optionalWholeNumberText({ min: 0 }).describe('Instead: as of this position in the log'),
        since: timeText().describe('Only what came after this time, and what has changed since'),
        since_position: optionalWholeNumberText({ min: 0 }).describe('Instead: after this position'),
        from: wholeNumberText({ min: 0, missing: 0 }).describe('Go on after this position'),
        limit: limitText({ missing: DEFAULT_EVENTS, most: MAX_EVENTS }),
        ...proving,
        graph: flagText().describe('Draw what caused what among these events'),
        ...revealing,
      })
      .refine(END.holds, END.otherwise)
      .refine(BEGINNING.holds, BEGINNING.otherwise),
    answers: { 200: Story },
    pagination: z.object({ next: z.string().nullable() }),
    errors: {
      404: NONE,
      409: 'An event of its stream cannot be read, or, with `tree_size`, is not the one that the tree has in its place',
    },
    command: { name: 'stories' },
    columns: 'position recorded_at about:about.kind id:about.id what_happened:sentence',
    async handle(call) {
      const { params, query, host, signal } = call
      const { from, limit, reveal, graph } = query
      const until = pointOf(query.as_of, query.position)
      const hasSince = query.since !== undefined || query.since_position !== undefined
      const since = hasSince ? pointOf(query.since, query.since_position) : null
      const options = { after: BigInt(from), limit, until, since, reveal }
      const page = await storyOf(host.app, params, options, signal)
      if (!page) throw notFound(NONE)
      const { story, next, revealed } = page
      const events = await withProofs(host.services.logTree, story.events, query.tree_size)
      if (reveal) {
        const target = `${params.kind}/${params.id}`
        await recordReveal(call, target, { from: String(from), limit, values: revealed })
      }
      const answer = { ...story, events, graph: graph ? causationGraph(story.events) : null }
      return new Answer(200, answer, { pagination: { next } })
    },
  }),
]

function pointOf(asOf: number | undefined, position: number | undefined) {
  return given({ asOf, position: position === undefined ? undefined : BigInt(position) })
}
