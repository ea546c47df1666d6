import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import { covers, receives, type WebhookSubscription } from '../../domain/webhooks/webhook-subscriptions.ts'
import { ownedBy } from '../access/owned-by.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { derivedId } from '../commands/event-registry.ts'
import type { ListPage, PageRequest, ResultOf } from '../ports/read-database.ts'
import { untilCurrent } from '../queries/find-current.ts'
import { type KeyScope, keyScope, pagedList, readPage } from '../queries/pages.ts'
import {
  equalIfGiven,
  inIfGiven,
  isUntil,
  type Parameter,
  type Reading,
  statement,
} from '../queries/statement.ts'
import { find, refuseDisabled, type WebhookCaller } from './subscriptions.ts'

/**
 * Events for partners, as they catch up on them. The log has each with its body, whether or not anybody had subscribed, so
 * nothing more is kept of it: a read model finds events, and a body is written from the log as deliveries write it.
 */

/** How far events go back that are listed and sent again. */
const DAYS = 30
/** Events that are sent again at once, at the most. */
export const MAX_RESENT = 1_000
const PROJECTION = 'webhook-events'

type Reads = Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'clock'>

/** An event as partners read it. */
export interface PartnerEvent {
  readonly event_id: string
  readonly event_type: WebhookEventType
  /** ISO 8601. */
  readonly created_at: string
  /** The body of its deliveries: the text of a JSON object. */
  readonly payload: string
}

/** Which events; times are ISO 8601, both included, null is everything. */
interface EventFilter {
  readonly event_type: WebhookEventType | null
  readonly from: string | null
  readonly to: string | null
}
type EventScope = KeyScope & EventFilter & { readonly from: string }

const within = (db: Reading, $: Parameter<EventScope>) =>
  db
    .selectFrom('webhook_events')
    .where('tenant_id', '=', $('tenantId'))
    .where('environment', '=', $('environment'))
    .where((eb) => equalIfGiven(eb, $, 'event_type'))
    // a condition that an index can begin at, whatever the plan
    .where('created_at', '>=', $('from'))
    .where((eb) => isUntil(eb, 'created_at', $('to')))
    // what names none is judged by the other alone
    .where((eb) => eb.or([eb('carrier_id', 'is', null), inIfGiven(eb, 'carrier_id', $('carrierIds'))]))
    .where((eb) => eb.or([eb('employer_id', 'is', null), inIfGiven(eb, 'employer_id', $('employerIds'))]))

const listIn = (order: 'asc' | 'desc') =>
  pagedList({ projection: PROJECTION, name: `webhook-events-${order}` }, (db, $: Parameter<EventScope>) =>
    within(db, $).select(['event_id', 'created_at']).orderBy('created_at', order).orderBy('seq', order),
  )
const LISTS = { asc: listIn('asc'), desc: listIn('desc') } as const

const SPAN = statement(
  'webhook-events-of-span',
  (db, $: Parameter<EventScope & { types: readonly string[]; limit: number }>) =>
    within(db, $)
      .select(['event_id', 'created_at'])
      .where((eb) => inIfGiven(eb, 'event_type', $('types')))
      .orderBy('created_at')
      .orderBy('seq')
      .limit($('limit')),
)

const BY_IDS = statement(
  'webhook-events-by-ids',
  (db, $: Parameter<{ ids: readonly string[]; since: string }>) =>
    db
      .selectFrom('webhook_events')
      .select(['event_id', 'tenant_id', 'environment', 'event_type'])
      .select(['carrier_id', 'employer_id', 'created_at', 'seq'])
      .where('event_id', '=', ({ fn }) => fn.any($('ids')))
      .where('created_at', '>=', $('since')),
)
type EventRow = ResultOf<typeof BY_IDS>
type Listed = Pick<EventRow, 'event_id' | 'created_at'>

/**
 * The events of the last 30 days within the scope of a key, by their time.
 * @returns `from`: the moment from which they are listed, in ISO 8601.
 */
export async function listEvents(
  app: Reads,
  caller: WebhookCaller,
  filter: EventFilter,
  order: keyof typeof LISTS,
  page: PageRequest,
): Promise<ListPage<PartnerEvent> & { readonly from: string }> {
  const from = reachedFrom(app, filter.from)
  const { items, total } = await readPage(app, LISTS[order], { ...keyScope(caller), ...filter, from }, page)
  return { items: await withPayloads(app, items), total, from }
}

/** An event that a partner names. @throws ReadModelsLate when it may be there and cannot be found yet. */
export async function eventOf(
  app: Reads,
  caller: WebhookCaller,
  eventId: string,
): Promise<PartnerEvent | Rejection> {
  const [found] = await named(app, caller, [eventId])
  return isRejection(found) ? found : (await withPayloads(app, [found!]))[0]!
}

/** What is sent again: events by their ids, each once, or those of a span, ISO 8601. */
export type Resending =
  | { readonly eventIds: readonly string[] }
  | { readonly from: string; readonly to: string }

/**
 * Sends events to a subscription again: of its types and within its scope, each a delivery of its own under the id and with
 * the body that it always had.
 * @param admit counts events against the limit of the subscription, and says why where it is used up.
 * @returns how many, and of a span the moment from which they were looked for, in ISO 8601.
 * @throws ReadModelsLate when not all events that there are can be found yet.
 */
export async function resend(
  app: Reads & Pick<Application, 'webhooks'>,
  caller: WebhookCaller,
  id: string,
  what: Resending,
  context: CommandContext,
  admit: (events: number) => Rejection | undefined,
): Promise<{ readonly id: string; readonly resent: number; readonly from?: string } | Rejection> {
  const reached = 'eventIds' in what ? what : { from: reachedFrom(app, what.from), to: what.to }
  const events = await toResend(app, caller, id, reached)
  if (isRejection(events)) return events
  const { subscription, rows } = events
  const refusal = admit(rows.length)
  if (refusal) return refusal
  await app.webhooks.deliveries.resend({
    subscriptionId: id,
    host: new URL(subscription.url).host,
    tenantId: caller.tenant_id,
    environment: caller.environment,
    at: app.clock.now(),
    events: (await withPayloads(app, rows)).map(({ event_id, event_type, payload }) => ({
      deliveryId: derivedId(context.commandId, `${id}/${event_id}`),
      eventId: event_id,
      eventType: event_type,
      body: payload,
    })),
  })
  const count = { id, resent: rows.length }
  return 'from' in reached ? { ...count, from: reached.from } : count
}

/** A subscription and which events go there again, oldest first. */
async function toResend(
  app: Reads,
  caller: WebhookCaller,
  id: string,
  what: Resending,
): Promise<{ readonly subscription: WebhookSubscription; readonly rows: readonly Listed[] } | Rejection> {
  const subscription = await find(app, caller, id)
  if (isRejection(subscription)) return subscription
  if ('eventIds' in what) {
    const rows = await named(app, caller, what.eventIds)
    const at = rows.findIndex(isRejection)
    if (at >= 0) return { ...(rows[at] as Rejection), field: `event_ids[${at}]` }
    const found = [...new Set(rows as readonly EventRow[])]
    const foreign = found.find((one) => !receives({ ...subscription, status: 'active' }, one))
    if (foreign) {
      const why = `The webhook subscription does not receive the event ${foreign.event_id}: its type, its carrier or its employer is not among those of the subscription`
      return reject('conflict', 'webhook_event_not_subscribed', why, 'event_ids')
    }
    const oldestFirst = found.sort((one, other) =>
      one.created_at === other.created_at ? one.seq - other.seq : one.created_at < other.created_at ? -1 : 1,
    )
    return refuseDisabled(subscription) ?? { subscription, rows: oldestFirst }
  }
  await untilCurrent(app, PROJECTION)
  const rows = await app.read.query(SPAN, {
    ...keyScope({ ...caller, ...subscription.scope }),
    event_type: null,
    from: what.from,
    to: what.to,
    types: subscription.events,
    limit: MAX_RESENT + 1,
  })
  if (rows.length > MAX_RESENT) {
    const why = `from and to hold more than ${MAX_RESENT} events, the most that are sent again at once; name a shorter span`
    return reject('invalid', 'too_many_webhook_events', why, 'to')
  }
  return refuseDisabled(subscription) ?? { subscription, rows }
}

/** Events that a partner names, in that order; instead of those that are refused, why. */
async function named(
  app: Reads,
  caller: WebhookCaller,
  ids: readonly string[],
): Promise<readonly (EventRow | Rejection)[]> {
  await untilCurrent(app, PROJECTION)
  const rows = await app.read.query(BY_IDS, { ids: ids.filter(isId), since: since(app) })
  const found = new Map(rows.map((row) => [row.event_id, row]))
  return Promise.all(
    ids.map((id) =>
      ownedBy<EventRow>(caller, found.get(id) ?? null, 'webhook event', (one) => covers(caller, one)),
    ),
  )
}

async function withPayloads(
  { commands }: Pick<Application, 'commands'>,
  rows: readonly Listed[],
): Promise<readonly PartnerEvent[]> {
  const loaded = await commands.loadAll(
    webhookEvent,
    rows.map(({ event_id }) => event_id),
  )
  return rows.map(({ event_id, created_at }, index) => {
    const { event_type, payload } = loaded[index]!.state!
    return { event_id, event_type, created_at, payload: JSON.stringify(payload) }
  })
}

/** Older events are past, in ISO 8601. */
function since({ clock }: Reads): string {
  return isoTime(clock.now() - DAYS * 24 * 60 * 60 * 1000)
}

/** Where a span begins that is asked for; null is everything. */
function reachedFrom(app: Reads, from: string | null): string {
  const oldest = since(app)
  return from !== null && from > oldest ? from : oldest
}
