import type { z } from 'zod'
import {
  INTEGRATION_EVENTS,
  type IntegrationEventWord,
} from '../../application/followers/integration-messages.ts'
import {
  WEBHOOK_EVENT_TYPES,
  WEBHOOK_EVENTS,
  type WebhookEventType,
} from '../../domain/webhooks/event-types.ts'
import { samplePayload } from '../../domain/webhooks/samples.ts'
import { type Info, PUBLISHED } from './openapi.ts'
import { type JsonSchema, Schemas } from './schemas.ts'

/** An AsyncAPI 3.1 document. */
export interface AsyncApi {
  readonly asyncapi: '3.1.0'
  readonly info: Omit<Info, 'license'> & {
    readonly license: { readonly name: string }
    readonly tags: readonly { readonly name: string; readonly description: string }[]
  }
  readonly defaultContentType: 'application/json'
  readonly channels: Readonly<Record<string, JsonSchema>>
  readonly operations: Readonly<Record<string, JsonSchema>>
  readonly components: {
    readonly messages: Readonly<Record<string, Message>>
    readonly schemas: Readonly<Record<string, JsonSchema>>
  }
}

export interface Message {
  readonly name: string
  readonly summary: string
  readonly contentType: 'application/json'
  readonly headers?: { readonly $ref: string }
  readonly payload: JsonSchema
  readonly examples?: readonly { readonly payload: unknown }[]
}

/** When an event of a type is raised. */
const WEBHOOKS: Readonly<Record<WebhookEventType, string>> = {
  'payment.completed': "A payment through the card processor's checkout was completed",
  'payment.failed':
    'A payment attempt failed, or a bank debit of a session, a plan or a payroll file was returned (`leg_id`, `return_code`), ' +
    'or that of a session could not be carried out (`leg_id` alone)',
  'payment.refunded': 'A refund was processed',
  'subscription.created': 'A recurring subscription started',
  'subscription.cancelled': 'A subscription was cancelled',
  'installment.paid': 'An installment was paid',
  'installment.failed': 'The payment of an installment failed',
  'payment.debit_minted':
    'The service created a bank debit by itself: of the premium of a payroll file, or of an installment that fell due. It can ' +
    'be cancelled until `cancellation_deadline`, when its batch closes (`POST /ach/debits/{leg_id}/cancel`)',
  'payment.debit_cancelled':
    'A bank debit of which `payment.debit_minted` told ended before it moved money: it was cancelled, stopped by a gate, ' +
    'rejected, or could not be carried out',
  'payment.debit_cleared':
    'A bank debit was found in the bank account that received it (carriers with `settlement_type` `fbo`)',
  'payment.debit_settled':
    'The processor reports a bank debit settled (carriers with `settlement_type` `direct`): its word, not a fact of the bank',
}

const FACTS: Readonly<Record<IntegrationEventWord, string>> = {
  'employer.registered': 'An employer was registered',
  'employer.changed': 'Name, address or contact of an employer changed',
  'employer.linked': 'Agents of a payroll company may act for an employer',
  'employer.unlinked': 'Agents of a payroll company may no longer act for an employer',
  'employees.sync_received': 'Changes of employees were received',
  'policy.issued': 'A policy was issued',
  'policy.changed': 'Terms of a policy changed',
  'policy.activated': 'A policy that was in progress is active',
  'policy.cancelled': 'A policy was cancelled',
  'payroll.file_received': 'A payroll file was accepted',
  'payroll.file_completed': 'All phases of a payroll file are done',
  'payroll.file_failed': 'A payroll file goes no further',
}

const hex = (length: number) => ({ type: 'string', pattern: `^[0-9a-f]{${length}}$` })

/** Headers of a delivery. */
const DELIVERY_HEADERS: JsonSchema = {
  type: 'object',
  required: [
    ...['X-Webhook-Signature', 'X-Webhook-Timestamp', 'X-Webhook-Event', 'X-Webhook-ID'],
    ...['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  ],
  properties: {
    'X-Webhook-Signature': {
      ...hex(64),
      description: 'Hex HMAC-SHA256 of timestamp, a full stop and the raw body, under the whole secret',
    },
    'X-Webhook-Timestamp': {
      type: 'string',
      pattern: '^\\d{13}$',
      description: 'Unix time in milliseconds, new for each attempt',
    },
    'X-Webhook-Event': { type: 'string', enum: WEBHOOK_EVENT_TYPES, description: 'The type of the event' },
    'X-Webhook-ID': {
      ...hex(24),
      description: 'The id of the event, the same in all attempts: what repetitions are told by',
    },
    'webhook-id': { ...hex(24), description: 'The same, as Standard Webhooks names it' },
    'webhook-timestamp': { type: 'string', pattern: '^\\d{10}$', description: 'Unix time in seconds' },
    'webhook-signature': {
      type: 'string',
      pattern: '^v1,[A-Za-z0-9+/]{43}=$',
      description: 'The signature of Standard Webhooks, under the bytes that the secret encodes',
    },
  },
}

const text = (description: string) => ({ type: 'string', description })

/** What stands around the data of an integration event. */
const ENVELOPE: Readonly<Record<string, JsonSchema>> = {
  id: { type: 'string', format: 'uuid', description: 'Of the event in the log; repetitions have the same' },
  version: { type: 'integer', const: 1, description: 'Grows when the meaning of a field changes' },
  position: { type: 'string', pattern: '^\\d{1,20}$', description: 'Place in the log; compare as a number' },
  occurred_at: { type: 'string', format: 'date-time' },
  environment: { type: 'string', enum: ['live', 'sandbox'] },
  tenant_id: hex(24),
  correlation_id: text('`X-Request-Id` of the request that it goes back to'),
}

const WEBHOOK_DELIVERY =
  "A POST to the address of a subscription, whose body is the event's data and nothing around it. Any 2xx within 10 " +
  'seconds accepts it. Delivery is at least once.'

/** The same deliveries as OpenAPI knows them, by type: operations of the partner's address. */
export function openApiWebhooks(schemas: Schemas): Readonly<Record<string, JsonSchema>> {
  const headers = Object.entries(DELIVERY_HEADERS.properties as Readonly<Record<string, JsonSchema>>)
  const parameters = headers.map(([name, { description, ...schema }]) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema,
  }))
  const operationOf = (type: WebhookEventType) => ({
    operationId: `receive${type.replaceAll(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['webhooks'],
    summary: WEBHOOKS[type],
    description: WEBHOOK_DELIVERY,
    security: [],
    parameters,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: schemas.of(WEBHOOK_EVENTS[type], 'output'),
          example: samplePayload(type, EXAMPLE_TIME),
        },
      },
    },
    responses: {
      '2XX': { description: 'The delivery is accepted' },
      default: { description: 'The delivery is tried again' },
    },
  })
  return Object.fromEntries(WEBHOOK_EVENT_TYPES.map((type) => [type, { post: operationOf(type) }]))
}

/** Describes what partners are sent by webhook, and what other systems hear of on NATS. */
export function asyncApi(version: string): AsyncApi {
  const schemas = new Schemas()
  const reference = (kind: 'channels' | 'components/messages' | 'components/schemas', name: string) => ({
    $ref: `#/${kind}/${name}`,
  })
  const messages: Record<string, Message> = {}
  const add = (types: readonly string[], messageOf: (type: string) => Message) => {
    for (const type of types) {
      if (messages[type]) throw new Error(`Two messages are ${type}`)
      messages[type] = messageOf(type)
    }
    return Object.fromEntries(types.map((type) => [type, reference('components/messages', type)]))
  }
  const webhooks = add(WEBHOOK_EVENT_TYPES, (name) => {
    const type = name as WebhookEventType
    return {
      name,
      summary: WEBHOOKS[type],
      contentType: 'application/json',
      headers: reference('components/schemas', 'DeliveryHeaders'),
      payload: schemas.of(WEBHOOK_EVENTS[type], 'output'),
      examples: [{ payload: samplePayload(type, EXAMPLE_TIME) }],
    }
  })
  const facts = add(Object.keys(INTEGRATION_EVENTS), (name) => ({
    name,
    summary: FACTS[name as IntegrationEventWord],
    contentType: 'application/json',
    payload: factSchema(name, INTEGRATION_EVENTS[name as IntegrationEventWord], schemas),
  }))
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'compstream events',
      version,
      description:
        'Signed webhooks to partners, and integration events on NATS for other systems of the operator. Fields may be ' +
        'added to any message: ignore those that you do not know.',
      contact: PUBLISHED.contact,
      license: { name: PUBLISHED.license.name },
      tags: [
        { name: 'webhooks', description: 'What partners are sent' },
        { name: 'integration events', description: 'What other systems of the operator hear of' },
      ],
    },
    defaultContentType: 'application/json',
    channels: {
      webhooks: {
        address: null,
        title: 'Webhooks',
        description: 'The https address that a partner registered with `POST /api/v1/webhooks`',
        messages: webhooks,
      },
      integrationEvents: {
        address: 'compstream.{environment}.{tenant_id}.{event}',
        title: 'Integration events',
        description: 'Subjects of the JetStream stream `COMPSTREAM`',
        parameters: {
          environment: { enum: ['live', 'sandbox'] },
          tenant_id: { description: 'Whom it belongs to' },
          event: { enum: Object.keys(INTEGRATION_EVENTS), description: 'The `type` of the message' },
        },
        messages: facts,
      },
    },
    operations: {
      deliverWebhook: {
        action: 'send',
        channel: reference('channels', 'webhooks'),
        description: WEBHOOK_DELIVERY,
        bindings: { http: { method: 'POST', bindingVersion: '0.3.0' } },
      },
      publishIntegrationEvent: {
        action: 'send',
        channel: reference('channels', 'integrationEvents'),
        description: 'Published after it was stored, at least once, in the order of each stream of the log',
      },
    },
    components: { messages, schemas: { ...schemas.components, DeliveryHeaders: DELIVERY_HEADERS } },
  }
}

/** The moment of the examples. */
const EXAMPLE_TIME = Date.UTC(2026, 6, 1, 9, 30)

function factSchema(type: string, data: z.ZodType, schemas: Schemas): JsonSchema {
  const { id, ...rest } = ENVELOPE
  const properties = {
    id,
    type: { type: 'string', const: type },
    ...rest,
    data: open(schemas.of(data, 'output')),
  }
  return { type: 'object', required: Object.keys(properties), properties }
}

/** Published messages have these fields and no others; consumers must expect further ones. */
function open({ additionalProperties: _, ...schema }: JsonSchema): JsonSchema {
  return schema
}
