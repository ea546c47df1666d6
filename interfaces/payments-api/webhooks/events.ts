import { z } from 'zod'
import * as events from '../../../application/webhooks/partner-events.ts'
import { WEBHOOK_EVENT_TYPES } from '../../../domain/webhooks/event-types.ts'
import { bound, FROM, firstMoment, inOrder, lastMoment, TO } from '../../endpoints/bounds.ts'
import { Answer, accepted } from '../../endpoints/endpoint.ts'
import { id, isoMoment, ofOne, word } from '../../endpoints/fields.ts'
import { listAnswer, narrowing, page, pagination } from '../../endpoints/lists.ts'
import { JsonText, objectText } from '../../http/json-writer.ts'
import { endpoint } from '../host/api.ts'

const Event = z
  .object({
    event_id: id().describe('`X-Webhook-ID` of its deliveries'),
    event_type: z.enum(WEBHOOK_EVENT_TYPES).describe('`X-Webhook-Event` of its deliveries'),
    created_at: isoMoment().describe('When it was raised'),
    payload: objectText.describe('The body of its deliveries, to the byte'),
  })
  .meta({ id: 'Event' })

const one = ofOne('event_id', 'webhook event')

export const eventEndpoints = [
  endpoint({
    operation: 'listEvents',
    route: 'GET /events',
    summary: 'List the events of the last 30 days, newest first, whether or not a webhook took them',
    description:
      'Shows those of the key’s environment whose carrier and employer lie within its scope, of all types and also from ' +
      'before any subscription. `sort_order=asc` lists them as they happened: read from `from` on to catch up. A `from` more ' +
      'than 30 days ago is no fault: `pagination.from` is later then, and what was raised in between is not listed.',
    query: inOrder(
      z.object({
        ...page,
        type: narrowing(word(...WEBHOOK_EVENT_TYPES).describe('Events of this type only')),
        from: bound(`Raised ${FROM}`),
        to: bound(`Raised ${TO}`),
        sort_order: word('asc', 'desc').default('desc').describe('`desc`: newest first'),
      }),
      'from',
      'to',
    ),
    answers: { 200: z.array(Event).readonly() },
    pagination: pagination
      .extend({
        from: isoMoment().describe('From when on events are listed: `from`, but no more than 30 days ago'),
      })
      .meta({ id: 'EventPagination' }),
    async handle({ host: { app }, caller, query }) {
      const { type: event_type, sort_order } = query
      const filter = { event_type, from: firstMoment(query.from), to: lastMoment(query.to) }
      const { items, total, from } = await events.listEvents(app, caller.client, filter, sort_order, query)
      const textBytes = items.reduce((bytes, { payload }) => bytes + Buffer.byteLength(payload), 0)
      return listAnswer(query, { items: items.map(shown), total }, { textBytes, span: { from } })
    },
  }),
  endpoint({
    operation: 'showEvent',
    route: 'GET /events/{event_id}',
    summary: 'Show an event of the last 30 days',
    ...one,
    answers: { 200: Event },
    refuses: { 403: ['webhook_event_out_of_scope'] },
    async handle({ host: { app }, caller, params }) {
      const found = accepted(await events.eventOf(app, caller.client, params.event_id))
      return new Answer(200, shown(found), { textBytes: Buffer.byteLength(found.payload) })
    },
  }),
]

function shown(event: events.PartnerEvent) {
  return { ...event, payload: new JsonText(event.payload) }
}
