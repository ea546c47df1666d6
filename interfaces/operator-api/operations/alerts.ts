import { z } from 'zod'
import { ALERT_KINDS, ALERTS } from '../../../application/operations/alert-kinds.ts'
import { acknowledgeAlert, findAlert, listAlerts } from '../../../application/operations/operator-alerts.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../endpoints/lists.ts'
import { contextOf, endpoint } from '../host/api.ts'
import { scope } from '../host/lists.ts'
import { shownTime, withNote } from '../host/values.ts'

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

const one = ofOne('alert_id', 'alert')

const kinds = Object.entries(ALERTS).map(([kind, { message }]) => `- \`${kind}\`: ${message}`)

export const alertEndpoints = [
  endpoint({
    operation: 'listAlerts',
    route: 'GET /alerts',
    summary: 'List what calls for a person, newest first',
    description: kinds.join('\n'),
    ...listOf(Alert, {
      ...scope,
      kind: narrowing(word(...ALERT_KINDS)),
      status: narrowing(word('open', 'acknowledged')),
    }),
    columns: {
      'alert id': 'alert_id',
      kind: 'kind',
      raised: 'raised_at',
      count: 'count',
      status: 'status',
      tenant: 'tenant_id',
      about: ({ about }) => Object.entries(about as object).map(([name, value]) => `${name} ${value}`),
    },
    handle({ host: { app }, query }) {
      const narrowed = { ...query, isOpen: query.status && query.status === 'open' }
      return listed(query, (wanted) => listAlerts(app, narrowed, wanted))
    },
  }),
  endpoint({
    operation: 'showAlert',
    route: 'GET /alerts/{alert_id}',
    summary: 'Show an alert',
    ...one,
    answers: { 200: Alert },
    handle: ({ host, params }) => findAlert(host.app, params.alert_id),
  }),
  endpoint({
    operation: 'acknowledgeAlert',
    route: 'POST /alerts/{alert_id}/acknowledge',
    summary: 'Take note of an alert: it is no longer open',
    description: 'Again it changes nothing: who was first stays.',
    ...one,
    body: withNote,
    answers: { 200: Alert },
    handle: (call) => acknowledgeAlert(call.host.app, { ...call.params, ...call.body }, contextOf(call)),
  }),
]
