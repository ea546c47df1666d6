import { z } from 'zod'
import { text, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { endpoint, operator, record } from './api.ts'
import { shownTime } from './values.ts'

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
    method: 'GET',
    path: '/outbox',
    summary: 'List e-mails and texts that were recorded because no provider is set, newest first',
    description: 'Messages are kept for 30 days. That they are read is recorded.',
    access: operator,
    query: z.object({
      ...page,
      channel: channel.optional(),
      to: text().optional().describe('Exactly this address or number'),
    }),
    answers: { 200: z.array(Message).readonly() },
    pagination,
    command: {
      name: 'outbox list',
      columns: { at: 'at', channel: 'channel', to: 'to', subject: 'subject', text: 'text' },
    },
    async handle(call) {
      const { query, host } = call
      const wanted = pageOf(query)
      const filter = { channel: query.channel ?? null, to: query.to ?? null }
      const found = await host.services.outbox.list(filter, wanted)
      if (found.items.length > 0)
        await record(call, 'read-outbox', 'outbox', { messages: found.items.length })
      return listAnswer(wanted, found)
    },
  }),
]
