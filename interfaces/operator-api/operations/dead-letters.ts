import { z } from 'zod'
import { listDeadLetters } from '../../../application/operations/list-dead-letters.ts'
import { READER_KINDS } from '../../../application/ports/dead-letters.ts'
import { text, word } from '../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint } from '../host/api.ts'
import { expectReader } from '../host/readers.ts'
import { shownTime } from '../host/values.ts'

const DeadLetter = z
  .object({
    reader: z.string().describe('The projection or process manager; `integration-events`'),
    kind: z.enum(READER_KINDS),
    generation: z.int().nullable().describe('Of a projection; null of other readers'),
    stream: z.string(),
    revision: z.int().describe('Of the event that it waits behind'),
    type: z.string().nullable().describe('Of that event; null: the log has it no longer'),
    event_id: z.string().nullable(),
    error: z.string().nullable().describe('Why that event could not be handled, without values'),
    attempts: z.int(),
    since: shownTime().nullable().describe('Since when it waits; null: an earlier release set it aside'),
    waiting: z
      .int()
      .describe('Events of the stream behind that one, those included that do not concern the reader'),
  })
  .meta({ id: 'DeadLetter' })

export const deadLetterEndpoints = [
  endpoint({
    operation: 'listDeadLetters',
    route: 'GET /dead-letters',
    summary:
      'List the streams that wait behind an event which a reader of the log could not handle, newest first',
    description:
      'Readers are the projections, rebuilds included, the process managers, and what publishes integration events. ' +
      'Once the cause is corrected, `POST /projections/{name}/redrive` takes up streams of a projection, and ' +
      '`POST /work/redrive` with the reader as `process_manager`, the kind `$stream` and the stream as `key` those of others.',
    ...listOf(DeadLetter, {
      reader: narrowing(
        text().describe('Streams that wait for this reader only; an unknown name is refused'),
      ),
      kind: narrowing(word(...READER_KINDS)),
    }),
    columns: {
      reader: 'reader',
      stream: 'stream',
      event: ({ type, revision }) => `${revision}: ${type ?? '(gone)'}`,
      error: 'error',
      attempts: 'attempts',
      since: 'since',
      waiting: 'waiting',
    },
    async handle({ host: { app, services }, query }) {
      await expectReader(services, 'reader', query.reader)
      return listed(
        query,
        (wanted) => listDeadLetters(app, services.deadLetters, query, wanted),
        (one) => ({ ...one, since: one.since?.toISOString() ?? null }),
      )
    },
  }),
]
