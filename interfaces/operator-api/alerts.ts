import { z } from 'zod'
import { ALERT_KINDS, ALERTS } from '../../application/operations/alert-kinds.ts'
import { acknowledgeAlert, findAlert, listAlerts } from '../../application/operations/operator-alerts.ts'
import { id, idOf, optional, text, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { contextOf, endpoint, operator } from './api.ts'
import { scope, scopeOf } from './lists.ts'
import { shownTime } from './values.ts'

const Alert = z
  .object({
    alert_id: id(),
    kind: z
      .string()
      .describe(`${ALERT_KINDS.join(', ')}; another word if a newer version of the service raised it`),
    message: z.string().describe('What happened, and what to do'),
    tenant_id: id().nullable(),
    environment: z.enum(['live', 'sandbox']).nullable(),
    about: z.record(z.string(), z.string()).describe('Ids of what it is about, by their names'),
    raised_at: shownTime(),
    count: z
      .int()
      .describe('How often it happened since the alert is open; some kinds have one open alert for all'),
    status: z.enum(['open', 'acknowledged']),
    acknowledged_at: shownTime().nullable(),
    acknowledged_by: z
      .string()
      .nullable()
      .describe('Who took note or settled it; where it ended by itself, the part of the service that saw so'),
    note: z.string().nullable(),
  })
  .meta({ id: 'Alert' })

const params = z.object({ alert_id: idOf('alert') })
const NONE = { 404: 'There is no such alert' } as const

const kinds = Object.entries(ALERTS).map(([kind, { message }]) => `- \`${kind}\`: ${message}`)

export const alertEndpoints = [
  endpoint({
    operation: 'listAlerts',
    method: 'GET',
    path: '/alerts',
    summary: 'List what calls for a person, newest first',
    description: kinds.join('\n'),
    access: operator,
    query: z.object({
      ...page,
      ...scope,
      kind: word(...ALERT_KINDS).optional(),
      status: word('open', 'acknowledged').optional(),
    }),
    answers: { 200: z.array(Alert).readonly() },
    pagination,
    command: {
      name: 'alerts list',
      columns: {
        'alert id': 'alert_id',
        kind: 'kind',
        raised: 'raised_at',
        count: 'count',
        status: 'status',
        tenant: 'tenant_id',
        about: ({ about }) => Object.entries(about as object).map(([name, value]) => `${name} ${value}`),
      },
    },
    async handle({ host: { app }, query }) {
      const wanted = pageOf(query)
      const { kind = null, status } = query
      const isOpen = status === undefined ? null : status === 'open'
      const narrowed = { ...scopeOf(query), kind, isOpen }
      return listAnswer(wanted, await listAlerts(app, narrowed, wanted))
    },
  }),
  endpoint({
    operation: 'showAlert',
    method: 'GET',
    path: '/alerts/{alert_id}',
    summary: 'Show an alert',
    access: operator,
    params,
    answers: { 200: Alert },
    errors: NONE,
    command: { name: 'alerts show' },
    handle: ({ host, params }) => findAlert(host.app, params.alert_id),
  }),
  endpoint({
    operation: 'acknowledgeAlert',
    method: 'POST',
    path: '/alerts/{alert_id}/acknowledge',
    summary: 'Take note of an alert: it is no longer open',
    description: 'Again it changes nothing: who was first stays.',
    access: operator,
    params,
    body: z.object({ note: optional(text()).describe('Names nobody: it is kept as it is') }),
    answers: { 200: Alert },
    errors: NONE,
    command: { name: 'alerts acknowledge' },
    handle: (call) =>
      acknowledgeAlert(
        call.host.app,
        { alertId: call.params.alert_id, note: call.body.note },
        contextOf(call),
      ),
  }),
]
