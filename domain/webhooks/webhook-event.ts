import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { WEBHOOK_EVENT_TYPES } from './event-types.ts'

/**
 * An event for partners, with its body, which stays as it was raised. Its recipients are the subscriptions as of the
 * position of the event.
 */
export const WebhookEventRaised = eventType('WebhookEventRaised', {
  /** `X-Webhook-ID`, the same in every delivery. */
  event_id: id(),
  tenant_id: id(),
  environment: environment(),
  event_type: z.enum(WEBHOOK_EVENT_TYPES),
  /** Whose it is: a subscription receives it when both lie in the scope of the key that registered it. */
  carrier_id: id().nullable(),
  employer_id: id().nullable(),
  /** The body of the deliveries, of the schema that the type has in the catalogue. */
  payload: z.record(z.string(), z.unknown()),
})
/** A subscription did not accept the event within 48 hours: it is not sent there any more. */
export const WebhookDeliveryDropped = eventType('WebhookDeliveryDropped', {
  event_id: id(),
  subscription_id: id(),
  delivery_id: id(),
})

const events = [WebhookEventRaised, WebhookDeliveryDropped] as const
export type WebhookEventEvent = EventOf<(typeof events)[number]>
export interface WebhookEvent extends z.output<typeof WebhookEventRaised.schema> {
  /** Ids of deliveries. */
  readonly dropped: readonly string[]
}
export type WebhookEventCommand =
  | { readonly type: 'Raise'; readonly data: z.output<typeof WebhookEventRaised.schema> }
  | { readonly type: 'Drop'; readonly subscriptionId: string; readonly deliveryId: string }

export const webhookEvent: Decider<WebhookEvent | null, WebhookEventCommand, WebhookEventEvent> = {
  category: 'webhookEvent',
  events,
  initialState: null,
  evolve(state, event) {
    return event.type === 'WebhookEventRaised'
      ? { ...event.data, dropped: [] }
      : { ...state!, dropped: [...state!.dropped, event.data.delivery_id] }
  },
  decide(command, state): readonly WebhookEventEvent[] | Rejection {
    if (command.type === 'Raise') {
      if (state) return reject('conflict', 'webhook_event_exists', 'The event was raised already')
      return [WebhookEventRaised.of(command.data)]
    }
    if (!state) return reject('not_found', 'webhook_event_not_found', 'No such event')
    if (state.dropped.includes(command.deliveryId)) return []
    const { subscriptionId: subscription_id, deliveryId: delivery_id } = command
    return [WebhookDeliveryDropped.of({ event_id: state.event_id, subscription_id, delivery_id })]
  },
}
