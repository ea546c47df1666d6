import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import type { Method } from '../http/server.ts'
import { CliError, UsageError } from './io.ts'
import type { PartnerClient } from './partner-client.ts'

/** What makes an event happen to a payment link, or to a subscription. */
const HAPPENINGS: Readonly<Partial<Record<WebhookEventType, readonly [Method, (id: string) => string]>>> = {
  'payment.completed': ['POST', (id) => `/payment-links/${id}/simulate-completion`],
  'payment.failed': ['POST', (id) => `/sandbox/payment-links/${id}/fail`],
  'payment.refunded': ['POST', (id) => `/payment-links/${id}/refund`],
  'subscription.cancelled': ['DELETE', (id) => `/subscriptions/${id}`],
  'installment.paid': ['POST', (id) => `/sandbox/subscriptions/${id}/charge`],
  'installment.failed': ['POST', (id) => `/sandbox/subscriptions/${id}/fail`],
}

/**
 * Makes an event happen in the sandbox.
 * @param to.of what it happens to; without it a sample goes to the webhook subscription.
 * @returns what the service answered.
 * @throws Refusal, UsageError.
 */
export async function triggerWebhook(
  client: Pick<PartnerClient, 'call' | 'isLive'>,
  type: WebhookEventType,
  to: { readonly of?: string; readonly subscription?: string },
): Promise<unknown> {
  if (client.isLive)
    throw new UsageError('The key is a live one: events are made to happen in the sandbox only.')
  if (to.of === undefined) {
    const { _id } = await chosenSubscription(client, to.subscription)
    return client.call('POST', `/webhooks/${_id}/test`, { event_type: type })
  }
  const happening = HAPPENINGS[type]
  if (!happening)
    throw new UsageError(`${type} happens to nothing that --of could name; leave it out for a sample.`)
  const [method, path] = happening
  return client.call(method, path(encodeURIComponent(to.of)), method === 'POST' ? {} : undefined)
}

/** A webhook subscription, as far as the command line needs it. */
export interface KnownSubscription {
  readonly _id: string
  readonly url: string
  readonly status: string
}

/** The subscription with an id, or the only one that there is. @throws CliError. */
export async function chosenSubscription(
  client: Pick<PartnerClient, 'call'>,
  id: string | undefined,
): Promise<KnownSubscription> {
  const all = (await client.call('GET', '/webhooks')) as readonly KnownSubscription[]
  const found = id === undefined ? all : all.filter(({ _id }) => _id === id)
  if (found.length === 1) return found[0]!
  if (id !== undefined) throw new CliError(`There is no webhook subscription ${id}`)
  throw all.length === 0
    ? new CliError('There is no webhook subscription: register one with POST /api/v1/webhooks')
    : new UsageError(`There are ${all.length} webhook subscriptions: name one with --subscription.`)
}
