import { z } from 'zod'
import { text, word } from '../../endpoints/fields.ts'
import { listAnswer, listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, record } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'
import { shownTime } from '../host/values.ts'

const channel = word('email', 'sms')

const Message = z
  .object({
    channel,
    to: z.string().describe('Address or number; `(erased)` after an erasure'),
    from: z.string().nullable().describe('Null: the service’s own sender'),
    subject: z.string().nullable(),
    text: z.string(),
    at: shownTime(),
  })
  .meta({ id: 'RecordedMessage' })

export const outboxEndpoints = [
  endpoint({
    operation: 'listOutbox',
    route: 'GET /outbox',
    // its texts hold addresses and whole links
    roles: AUDITING,
    summary: 'List emails and texts that were recorded because no provider is set, newest first',
    description: 'Messages are kept for 30 days. That they are read is recorded.',
    ...listOf(Message, {
      channel: narrowing(channel),
      to: narrowing(text()).describe('Exactly this address or number'),
    }),
    command: { items: 'messages' },
    columns: 'at channel to subject text',
    async handle(call) {
      const { query, host } = call
      const found = await host.services.outbox.list(query, query)
      if (found.items.length > 0)
        await record(call, 'read-outbox', 'outbox', { messages: found.items.length })
      return listAnswer(query, found)
    },
  }),
]
