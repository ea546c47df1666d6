import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { type Environment, environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { secret } from '../kernel/sealed.ts'
import { WEBHOOK_EVENT_TYPES, type WebhookEventType } from './event-types.ts'

/** Subscriptions of a tenant in one environment at the most. */
export const MAX_SUBSCRIPTIONS = 100

/** Ids, or `all`. An empty list holds nothing. */
const ids = () => z.union([z.literal('all'), z.array(id())])
const eventTypes = () => z.array(z.enum(WEBHOOK_EVENT_TYPES))
/** Epoch milliseconds. */
const time = () => z.number().int().min(0)

export const WebhookSubscriptionRegistered = eventType('WebhookSubscriptionRegistered', {
  subscription_id: id(),
  tenant_id: id(),
  environment: environment(),
  /** The key that registered it. */
  client_id: z.string(),
  /** As it was sent. */
  url: z.string(),
  events: eventTypes(),
  /** Where the vault keeps the secret. */
  secret_ref: secret(),
  /** The scope of the key that registered it: no other events are ever received. */
  carrier_ids: ids(),
  employer_ids: ids(),
  at: time(),
})
export const WebhookSubscriptionChanged = eventType('WebhookSubscriptionChanged', {
  subscription_id: id(),
  url: z.string().optional(),
  /** The whole list. */
  events: eventTypes().optional(),
  at: time(),
})
export const WebhookSecretRotated = eventType('WebhookSecretRotated', {
  subscription_id: id(),
  secret_ref: secret(),
  /** Of the secret that ended: it leaves the vault. */
  former_ref: secret().optional(),
  at: time(),
})
export const WebhookSubscriptionDisabled = eventType('WebhookSubscriptionDisabled', {
  subscription_id: id(),
  by: z.enum(['partner', 'failures', 'operator']),
  at: time(),
})
export const WebhookSubscriptionEnabled = eventType('WebhookSubscriptionEnabled', {
  subscription_id: id(),
  at: time(),
})
export const WebhookSubscriptionDeleted = eventType('WebhookSubscriptionDeleted', {
  subscription_id: id(),
  former_ref: secret().optional(),
  at: time(),
})

const events = [
  WebhookSubscriptionRegistered,
  WebhookSubscriptionChanged,
  WebhookSecretRotated,
  WebhookSubscriptionDisabled,
  WebhookSubscriptionEnabled,
  WebhookSubscriptionDeleted,
] as const
export type WebhookSubscriptionEvent = EventOf<(typeof events)[number]>

/** Whose events are received. */
export interface WebhookScope {
  readonly carrier_ids: 'all' | readonly string[]
  readonly employer_ids: 'all' | readonly string[]
}

export interface WebhookSubscription {
  readonly _id: string
  /** The key that registered it. */
  readonly client_id: string
  readonly url: string
  readonly events: readonly WebhookEventType[]
  readonly status: 'active' | 'disabled'
  readonly secret_ref: string
  readonly scope: WebhookScope
  /** Epoch milliseconds, as is the next one. */
  readonly created_at: number
  readonly updated_at: number
  /** Revision of the event that enabled it last, -1 when none has. */
  readonly enabled_revision: number
}

/** All subscriptions of a tenant in one environment. */
export interface WebhookSubscriptions {
  /** Oldest first; deleted ones are gone. */
  readonly subscriptions: readonly WebhookSubscription[]
  /** Of the last event, -1 before the first. */
  readonly revision: number
}

/** @property at epoch milliseconds of the service's clock. */
type Verb<Type extends string, Rest = unknown> = {
  readonly type: Type
  readonly subscriptionId: string
  readonly at: number
} & Rest

export type WebhookSubscriptionCommand =
  | { readonly type: 'Register'; readonly data: z.output<typeof WebhookSubscriptionRegistered.schema> }
  | Verb<'Change', { readonly url?: string; readonly events?: readonly WebhookEventType[] }>
  | Verb<'Rotate', { readonly secretRef: string }>
  | Verb<'Disable', { readonly by: 'partner' | 'operator' }>
  /** @property enabledRevision of the enabling that the failures came after: a later one begins anew. */
  | Verb<'Disable', { readonly by: 'failures'; readonly enabledRevision: number }>
  | Verb<'Enable'>
  | Verb<'Delete'>

/** The id of the aggregate. */
export function subscriptionsId(tenantId: string, environment: Environment): string {
  return `${tenantId}_${environment}`
}

/** The subscription with that id; undefined when there is none. */
export function subscriptionOf(
  { subscriptions }: WebhookSubscriptions,
  subscriptionId: string,
): WebhookSubscription | undefined {
  return subscriptions.find(({ _id }) => _id === subscriptionId)
}

/**
 * Whether a subscription receives an event: it is active, the type stands in its list, and the carrier and the employer
 * lie in its scope. An event that names no employer (a link billed to a carrier) is judged by its carrier alone.
 */
export function receives(
  { status, events, scope }: Pick<WebhookSubscription, 'status' | 'events' | 'scope'>,
  event: {
    readonly event_type: WebhookEventType
    readonly carrier_id: string | null
    readonly employer_id: string | null
  },
): boolean {
  return status === 'active' && events.includes(event.event_type) && covers(scope, event)
}

/** Whether carrier and employer of an event lie in a scope. */
export function covers(
  { carrier_ids, employer_ids }: WebhookScope,
  event: { readonly carrier_id: string | null; readonly employer_id: string | null },
): boolean {
  return holds(carrier_ids, event.carrier_id) && holds(employer_ids, event.employer_id)
}

function holds(ids: 'all' | readonly string[], id: string | null): boolean {
  return ids === 'all' || id === null || ids.includes(id)
}

/** Whether one scope lies within another. */
export function isWithin(inner: WebhookScope, outer: WebhookScope): boolean {
  const lies = (ids: 'all' | readonly string[], among: 'all' | readonly string[]) =>
    among === 'all' || (ids !== 'all' && ids.every((id) => among.includes(id)))
  return lies(inner.carrier_ids, outer.carrier_ids) && lies(inner.employer_ids, outer.employer_ids)
}

/**
 * What addresses are compared by: the case of scheme and host does not count, nor do the default port, the dot behind a host and a fragment;
 * path and query do, as they are.
 * @throws TypeError when it is no URL.
 */
export function comparableUrl(url: string): string {
  const parsed = new URL(url)
  parsed.hostname = parsed.hostname.replace(/\.$/, '')
  const { origin, pathname, search } = parsed
  return `${origin}${pathname}${search}`
}

/** Why no subscription, or none but one, may have an address, null when it may: another one has it, which is named. */
export function refuseUrl(
  { subscriptions }: WebhookSubscriptions,
  url: string,
  ownId?: string,
): Rejection | null {
  const wanted = comparableUrl(url)
  const holder = subscriptions.find((one) => one._id !== ownId && comparableUrl(one.url) === wanted)
  if (!holder) return null
  const why = `The url is registered already, by the subscription ${holder._id}`
  return { ...reject('conflict', 'url_registered', why, 'url'), ids: { id: holder._id } }
}

/** Why there may be no further subscription, null when there may. */
export function refuseMore({ subscriptions }: WebhookSubscriptions): Rejection | null {
  if (subscriptions.length < MAX_SUBSCRIPTIONS) return null
  const why = `There are ${MAX_SUBSCRIPTIONS} webhook subscriptions already, the most that there can be`
  return reject('conflict', 'too_many_subscriptions', why)
}

/** Bytes, about. */
function sizeOf({ url, scope }: WebhookSubscription): number {
  const ids = [scope.carrier_ids, scope.employer_ids].flatMap((some) => (some === 'all' ? [] : [some.length]))
  return 1_000 + url.length + ids.reduce((bytes, count) => bytes + count * 40, 0)
}

/** Whether a subscription was enabled after the failures that it is to be disabled for. */
function isOutdated(
  command: Extract<WebhookSubscriptionCommand, { readonly type: 'Disable' }>,
  { enabled_revision }: WebhookSubscription,
): boolean {
  return command.by === 'failures' && command.enabledRevision < enabled_revision
}

export const webhookSubscriptions: Decider<
  WebhookSubscriptions,
  WebhookSubscriptionCommand,
  WebhookSubscriptionEvent
> = {
  category: 'webhookSubscriptions',
  events,
  initialState: { subscriptions: [], revision: -1 },
  sizeOf: ({ subscriptions }) => subscriptions.reduce((bytes, one) => bytes + sizeOf(one), 0),
  evolve(state, event) {
    const revision = state.revision + 1
    if (event.type === 'WebhookSubscriptionRegistered') {
      return { revision, subscriptions: [...state.subscriptions, registered(event.data)] }
    }
    const { subscription_id, at } = event.data
    if (event.type === 'WebhookSubscriptionDeleted') {
      const subscriptions = state.subscriptions.filter(({ _id }) => _id !== subscription_id)
      return { revision, subscriptions }
    }
    const change = changeBy(event, revision)
    return {
      revision,
      subscriptions: state.subscriptions.map((one) =>
        one._id === subscription_id ? { ...one, ...change, updated_at: at } : one,
      ),
    }
  },
  decide(command, state): readonly WebhookSubscriptionEvent[] | Rejection {
    if (command.type === 'Register') {
      const { data } = command
      return refuseUrl(state, data.url) ?? refuseMore(state) ?? [WebhookSubscriptionRegistered.of(data)]
    }
    const { subscriptionId: subscription_id, at } = command
    const subscription = subscriptionOf(state, subscription_id)
    if (!subscription) return reject('not_found', 'subscription_not_found', 'No such webhook subscription')
    const former_ref = subscription.secret_ref
    switch (command.type) {
      case 'Change': {
        const { url, events } = command
        const refusal = url === undefined ? null : refuseUrl(state, url, subscription_id)
        if (refusal) return refusal
        const change = {
          ...(url !== undefined && url !== subscription.url && { url }),
          ...(events && !isSame(events, subscription.events) && { events: [...events] }),
        }
        if (Object.keys(change).length === 0) return []
        return [WebhookSubscriptionChanged.of({ subscription_id, ...change, at })]
      }
      case 'Rotate':
        return [WebhookSecretRotated.of({ subscription_id, secret_ref: command.secretRef, former_ref, at })]
      case 'Disable':
        return subscription.status === 'disabled' || isOutdated(command, subscription)
          ? []
          : [WebhookSubscriptionDisabled.of({ subscription_id, by: command.by, at })]
      case 'Enable':
        return subscription.status === 'active'
          ? []
          : [WebhookSubscriptionEnabled.of({ subscription_id, at })]
      case 'Delete':
        return [WebhookSubscriptionDeleted.of({ subscription_id, former_ref, at })]
    }
  },
}

function registered(data: z.output<typeof WebhookSubscriptionRegistered.schema>): WebhookSubscription {
  const { subscription_id: _id, client_id, url, events, secret_ref, carrier_ids, employer_ids, at } = data
  return {
    _id,
    client_id,
    url,
    events,
    status: 'active',
    secret_ref,
    scope: { carrier_ids, employer_ids },
    created_at: at,
    updated_at: at,
    enabled_revision: -1,
  }
}

function changeBy(
  event: Exclude<
    WebhookSubscriptionEvent,
    { readonly type: 'WebhookSubscriptionRegistered' | 'WebhookSubscriptionDeleted' }
  >,
  revision: number,
): Partial<WebhookSubscription> {
  switch (event.type) {
    case 'WebhookSubscriptionChanged': {
      const { url, events } = event.data
      return { ...(url !== undefined && { url }), ...(events && { events }) }
    }
    case 'WebhookSecretRotated':
      return { secret_ref: event.data.secret_ref }
    case 'WebhookSubscriptionDisabled':
      return { status: 'disabled' }
    case 'WebhookSubscriptionEnabled':
      return { status: 'active', enabled_revision: revision }
  }
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at])
}
