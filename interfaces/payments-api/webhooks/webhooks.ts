import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import { MAX_RESENT, resend } from '../../../application/webhooks/partner-events.ts'
import * as subscriptions from '../../../application/webhooks/subscriptions.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { WEBHOOK_EVENT_TYPES } from '../../../domain/webhooks/event-types.ts'
import {
  MAX_SUBSCRIPTIONS,
  subscriptionsId,
  type WebhookSubscription,
} from '../../../domain/webhooks/webhook-subscriptions.ts'
import { FROM, firstMoment, inOrder, lastMoment, TO } from '../../endpoints/bounds.ts'
import { create, once, REPEATED } from '../../endpoints/creations.ts'
import { dateOrTime, id, idOf, isoMoment, optional, reference, word } from '../../endpoints/fields.ts'
import { listAnswer, listOf, pageOfAll } from '../../endpoints/lists.ts'
import { changeOf, noneGiven, repeating } from '../../endpoints/repeating.ts'
import { CallSlots } from '../../http/call-slots.ts'
import { JsonText, objectText } from '../../http/json-writer.ts'
import { RateLimiter } from '../../http/rate-limit.ts'
import { contextOf, endpoint, keyed } from '../host/api.ts'

const MAX_URL = 2_048
/** Test deliveries of one tenant that are under way at once: each may take 10 seconds. */
const MAX_TESTS = 10
const TEST_WAIT_MS = 5_000

const tests = new CallSlots(MAX_TESTS, TEST_WAIT_MS, `At most ${MAX_TESTS} test deliveries are made at once`)

/**
 * Within an hour: changes of one subscription (address, types, secret, enablings), and registrations of a tenant in one
 * environment, in each process. Disabling and deleting are never refused: each needs one of these before.
 */
const MAX_CHANGES = 100
const MAX_REGISTRATIONS = 1_000
const changesOfOne = RateLimiter.perHour(MAX_CHANGES)
const registrations = RateLimiter.perHour(MAX_REGISTRATIONS)
/** Events that are sent to a subscription again within an hour: all of them may fail five times. */
const MAX_RESENT_HOURLY = 20_000
const resends = RateLimiter.perHour(MAX_RESENT_HOURLY)
const RESENDS = `At most ${MAX_RESENT_HOURLY} events are sent to a subscription again within an hour`
const CHANGES = `A webhook subscription changes ${MAX_CHANGES} times an hour at the most`
const REGISTRATIONS = `Webhook subscriptions are registered ${MAX_REGISTRATIONS} times an hour at the most`

/** Why it has to wait, looked at when nothing else refuses it: it is counted once something was stored. */
function tooOften(limiter: RateLimiter, key: string, most: string): Rejection | undefined {
  const wait = limiter.waitOf(key)
  if (wait === 0) return undefined
  return {
    ...reject('too_many', 'too_many_changes', `${most}; try again in ${wait} s`),
    retryAfterSeconds: wait,
  }
}

const HTTPS = 'must be an https URL, like https://partner.example/webhooks'
const url = z
  .string()
  .max(MAX_URL)
  .regex(/^[Hh][Tt][Tt][Pp][Ss]:\/\/[^\s\\]+$/, HTTPS)
  .refine((value) => URL.canParse(value), HTTPS)
  .describe('Its host must resolve to public addresses; no redirect is followed')

const eventTypes = z
  .array(word(...WEBHOOK_EVENT_TYPES))
  .min(1)
  .max(100)
  .transform((all) => [...new Set(all)])

const status = z.enum(['active', 'disabled'])
const shownEvents = z.array(z.enum(WEBHOOK_EVENT_TYPES)).readonly()

const Subscription = z
  .object({
    _id: id(),
    url: z.string(),
    events: shownEvents.describe('Types that are received; a new one only once the list is sent again'),
    status,
    failure_count: z
      .int()
      .describe('Consecutive events that failed in all 5 immediate attempts; at 10 it is disabled'),
    created_at: isoMoment(),
    updated_at: isoMoment(),
  })
  .meta({ id: 'WebhookSubscription' })

const changes = z.object({
  url: optional(url),
  events: optional(eventTypes).describe('Replaces the whole list'),
  status: optional(status),
})

const Registered = z
  .object({
    id: id(),
    url: z.string(),
    secret: z.string().describe('Signs the deliveries; shown this once'),
    events: shownEvents,
    status,
    created_at: isoMoment(),
  })
  .meta({ id: 'RegisteredWebhookSubscription' })

const Delivery = z
  .object({
    _id: id(),
    subscription_id: id(),
    event_id: id().describe('`X-Webhook-ID`'),
    event_type: z.enum(WEBHOOK_EVENT_TYPES),
    status: z
      .enum(['pending', 'delivered', 'retrying', 'failed'])
      .describe('`failed`: all immediate attempts did; the background may still turn it into `delivered`'),
    attempts: z.int(),
    last_response_code: z.int().nullable(),
    last_attempt_at: isoMoment().nullable(),
    delivered_at: isoMoment().nullable(),
    created_at: isoMoment(),
    payload: objectText.describe('The body that is sent'),
    last_error: z.string().nullable(),
    test: z.boolean(),
    resent: z.boolean().describe('Sent again because you asked for it'),
    dedupe_key: z.string().describe('No contract, as are the next four'),
    sweep_attempts: z.int(),
    next_sweep_after: isoMoment().nullable(),
    sweep_claimed_at: isoMoment().nullable(),
    last_swept_at: isoMoment().nullable(),
  })
  .meta({ id: 'WebhookDelivery' })

const Tested = z
  .object({
    delivered: z.boolean(),
    event_id: id().describe('`X-Webhook-ID`'),
    event_type: z.enum(WEBHOOK_EVENT_TYPES),
    url: z.string(),
    attempts: z.literal(1),
    status_code: z.int().optional().describe('Left out when no answer came'),
    error: z.string().optional().describe('Why it does not count as delivered'),
  })
  .meta({ id: 'WebhookTest' })

const namedEvents = z
  .object({
    event_ids: z.array(reference()).min(1).max(MAX_RESENT).describe('These events'),
  })
  .meta({ id: 'EventsById' })
const bounds = z.object({
  from: dateOrTime().describe(`Raised ${FROM}`),
  to: dateOrTime().describe(`Raised ${TO}`),
})
const spanOfEvents = inOrder(bounds, 'from', 'to')
  .transform(({ from, to }) => ({ from: firstMoment(from)!, to: lastMoment(to)! }))
  .meta({ id: 'EventsOfSpan' })
const ANY = z.unknown().optional()
const [WITH_BOTH, WITH_NEITHER] = [
  'goes without from and to: send one of the two',
  'is required: send event_ids, or from and to',
].map((error) =>
  z.object({ event_ids: ANY, from: ANY, to: ANY }).refine(() => false, { path: ['event_ids'], error }),
)

/** What a body is meant for: events by their ids, or a span; both or neither are neither. */
function resendFor(sent: Readonly<Record<string, unknown>>): z.ZodType {
  const isSpan = 'from' in sent || 'to' in sent
  if ('event_ids' in sent) return isSpan ? WITH_BOTH! : namedEvents
  return isSpan ? spanOfEvents : WITH_NEITHER!
}

const params = z.object({ id: idOf('subscription') })
const UNKNOWN = { 404: 'There is no such webhook subscription' } as const
const OFTEN = {
  429: `Too many requests, or too much at once; or the subscription has changed ${MAX_CHANGES} times within the hour`,
} as const

export const webhookEndpoints = [
  endpoint({
    operation: 'registerWebhook',
    route: 'POST /webhooks',
    summary: 'Have events delivered to an address; the secret that signs them is shown once',
    description:
      'Carriers and employers outside the scope of the key that registers it are never heard of. Addresses are compared ' +
      'without regard to the case of scheme and host and to the default port.',
    body: z.object({ url, events: optional(eventTypes).describe('Default: all types that there are now') }),
    idempotent: REPEATED.secret,
    answers: { 201: Registered },
    errors: {
      409: `The address is registered, by what \`id\` names, or there are ${MAX_SUBSCRIPTIONS} already`,
      429: `Too many requests, or too much at once; or ${MAX_REGISTRATIONS} registrations of the tenant within the hour`,
    },
    refuses: { 400: ['invalid_url'], 409: ['already_created', 'too_many_subscriptions', 'url_registered'] },
    handle(call) {
      const { host, caller, body } = call
      const input = { url: body.url, events: body.events ?? WEBHOOK_EVENT_TYPES }
      const { tenant_id, environment } = caller.client
      const limited = subscriptionsId(tenant_id, environment)
      return create(keyed(call), 'POST /webhooks', {
        async prepare(context) {
          const refusal = await subscriptions.refuseRegistration(host.app, caller.client, input, context)
          return refusal ?? (context.mayRepeat ? undefined : tooOften(registrations, limited, REGISTRATIONS))
        },
        async create(context) {
          const registered = await subscriptions.register(host.app, caller.client, input, context)
          if (!isRejection(registered)) registrations.charge(limited, 1)
          return registered
        },
        idOf: ({ subscription }) => subscription._id,
        show: ({ subscription, secret }) => ({
          ...subscription,
          id: subscription._id,
          secret,
          created_at: isoTime(subscription.created_at),
        }),
        repeated: null,
      })
    },
  }),
  endpoint({
    operation: 'listWebhooks',
    route: 'GET /webhooks',
    summary: 'List the subscriptions within the scope of the key, newest first, without secrets',
    ...listOf(Subscription),
    async handle({ host, caller, query }) {
      const all = await subscriptions.list(host.app, caller.client)
      return listAnswer(query, pageOfAll(query, all.map(shown)))
    },
  }),
  endpoint({
    operation: 'changeWebhook',
    route: 'PATCH /webhooks/{id}',
    summary: 'Change address, types or status of a subscription',
    description:
      'What is left out stays; what is only shown may be repeated. `status: active` sets `failure_count` to 0 and resumes deliveries that are not 48 hours old.',
    params,
    body: repeating(Subscription, changes).refine(
      ({ url, events, status }) => url !== null || events !== null || status !== null,
      noneGiven(changes),
    ),
    example: { status: 'disabled' },
    answers: { 200: Subscription },
    errors: { ...UNKNOWN, ...OFTEN, 409: 'Another subscription has the address; `id` names it' },
    refuses: {
      400: ['invalid_url'],
      403: ['subscription_out_of_scope'],
      409: ['url_registered'],
      429: ['too_many_changes'],
    },
    async handle(call) {
      const { host, caller, params } = call
      const present = await subscriptions.show(host.app, caller.client, params.id)
      if (isRejection(present)) return present
      const wanted = changeOf(changes, call, shown(present))
      const { url, events, status } = wanted
      const isMoved =
        (url ?? present.url) !== present.url || !isDeepStrictEqual(events ?? present.events, present.events)
      const isLimited = isMoved || (status === 'active' && present.status === 'disabled')
      const refusal =
        (url !== null && (await subscriptions.refuseMove(host.app, caller.client, params.id, url))) ||
        (isLimited && tooOften(changesOfOne, params.id, CHANGES))
      if (refusal) return refusal
      const changed = await subscriptions.change(host.app, caller.client, params.id, wanted, contextOf(call))
      if (isRejection(changed)) return changed
      if (isLimited) changesOfOne.charge(params.id, 1)
      return shown(changed)
    },
  }),
  endpoint({
    operation: 'deleteWebhook',
    route: 'DELETE /webhooks/{id}',
    summary: 'Remove a subscription: nothing is sent there any more',
    params,
    answers: { 200: z.object({ _id: id(), deleted: z.literal(true) }) },
    errors: UNKNOWN,
    refuses: { 403: ['subscription_out_of_scope'] },
    handle: (call) =>
      subscriptions.remove(call.host.app, call.caller.client, call.params.id, contextOf(call)),
  }),
  endpoint({
    operation: 'rotateWebhookSecret',
    route: 'POST /webhooks/{id}/rotate',
    summary: 'Give a subscription a new secret, shown once; the old one ends at once',
    params,
    idempotent: REPEATED.secret,
    answers: { 200: z.object({ id: id(), secret: z.string(), updated_at: isoMoment() }) },
    errors: { ...UNKNOWN, ...OFTEN },
    refuses: {
      403: ['subscription_out_of_scope'],
      409: ['already_created'],
      429: ['too_many_changes'],
    },
    async handle(call) {
      const { host, caller, params } = call
      const found = await subscriptions.find(host.app, caller.client, params.id)
      if (isRejection(found)) return found
      const rotate = async (context: CommandContext) => {
        const rotated = await subscriptions.rotate(host.app, caller.client, params.id, context)
        if (isRejection(rotated)) return rotated
        changesOfOne.charge(params.id, 1)
        const { subscription, secret } = rotated
        return { id: subscription._id, secret, updated_at: isoTime(subscription.updated_at) }
      }
      return once(
        keyed(call),
        { verb: 'rotate webhook', secretOf: params.id },
        rotate,
        async ({ mayRepeat }) => (mayRepeat ? undefined : tooOften(changesOfOne, params.id, CHANGES)),
      )
    },
  }),
  endpoint({
    operation: 'testWebhook',
    route: 'POST /webhooks/{id}/test',
    summary: 'Deliver a sample of an event, in exactly one attempt',
    description:
      'Ids in the sample name nothing. How it ends has no meaning for the health of the subscription. Any type may be ' +
      'tested, subscribed to or not.',
    params,
    body: z.object({
      event_type: optional(word(...WEBHOOK_EVENT_TYPES)).describe('Default: the first of the subscription'),
    }),
    answers: { 200: Tested },
    errors: { ...UNKNOWN, 409: 'The subscription is disabled' },
    asksOutside: true,
    refuses: {
      403: ['subscription_out_of_scope'],
      409: ['subscription_disabled'],
    },
    async handle({ host, caller, params, body }) {
      const release = await tests.acquire(caller.client.tenant_id)
      try {
        const tested = await subscriptions.test(host.app, caller.client, params.id, body.event_type)
        if (isRejection(tested)) return tested
        const { eventId, eventType, url, answer } = tested
        return {
          delivered: answer.error === null,
          event_id: eventId,
          event_type: eventType,
          url,
          attempts: 1,
          ...(answer.statusCode !== null && { status_code: answer.statusCode }),
          ...(answer.error !== null && { error: answer.error }),
        } as const
      } finally {
        release()
      }
    },
  }),
  endpoint({
    operation: 'resendWebhookEvents',
    route: 'POST /webhooks/{id}/resend',
    summary: 'Send events of the last 30 days to a subscription again',
    description:
      `Either those that \`event_ids\` names, or those from \`from\` to \`to\` that it receives; ${MAX_RESENT} at the most. Each ` +
      'is a new delivery to this address alone, with the event’s id and body and a new signature: five attempts, whatever ' +
      'the age of the event, which do not count for the health of the subscription. Without an `Idempotency-Key` each ' +
      'request sends them once more.',
    params,
    body: z.union([namedEvents, spanOfEvents]),
    example: { event_ids: ['66838f2a5b1c4d7e9f012345'] },
    bodyFor: (_caller, sent) => resendFor(sent),
    idempotent: REPEATED.answered,
    answers: {
      200: z
        .object({
          id: id().describe('The subscription'),
          resent: z.int().describe('Events that are sent again; each is among the deliveries'),
          from: isoMoment()
            .optional()
            .describe('Of a span: from when on events are sent again, `from`, but no more than 30 days ago'),
        })
        .meta({ id: 'ResentEvents' }),
    },
    errors: {
      ...UNKNOWN,
      404: 'There is no such webhook subscription, or no such event of the last 30 days',
      409: 'The subscription is disabled, or does not receive one of the events',
      429: `Too many requests, or too much at once; or ${MAX_RESENT_HOURLY} events were sent again within the hour`,
    },
    refuses: {
      400: ['too_many_webhook_events'],
      403: ['subscription_out_of_scope'],
      404: ['webhook_event_not_found'],
      409: ['subscription_disabled', 'webhook_event_not_subscribed'],
    },
    async handle(call) {
      const { host, caller, params, body } = call
      return once(keyed(call), `POST /webhooks/resend ${params.id}`, async (context) => {
        const what = 'event_ids' in body ? { eventIds: body.event_ids } : body
        return resend(host.app, caller.client, params.id, what, context, (events) => {
          // at once, so that many requests at a time count for each other
          const refusal = context.mayRepeat ? undefined : tooOften(resends, params.id, RESENDS)
          if (!refusal) resends.charge(params.id, events)
          return refusal
        })
      })
    },
  }),
  endpoint({
    operation: 'listWebhookDeliveries',
    route: 'GET /webhooks/{id}/deliveries',
    summary: 'List what became of deliveries, newest first',
    description: 'Records may get further fields: read those that you know by name.',
    params,
    ...listOf(Delivery),
    errors: UNKNOWN,
    refuses: { 403: ['subscription_out_of_scope'] },
    async handle({ host, caller, params, query }) {
      const records = await subscriptions.deliveries(host.app, caller.client, params.id, query)
      if (isRejection(records)) return records
      const { items, total } = records
      const textBytes = items.reduce((bytes, { payload }) => bytes + Buffer.byteLength(payload), 0)
      const shown = items.map((record) => ({ ...record, payload: new JsonText(record.payload) }))
      return listAnswer(query, { items: shown, total }, { textBytes })
    },
  }),
]

function shown(one: WebhookSubscription & { readonly failure_count: number }) {
  return { ...one, created_at: isoTime(one.created_at), updated_at: isoTime(one.updated_at) }
}
