import { streamOf } from '../../domain/kernel/decider.ts'
import type { EventOf } from '../../domain/kernel/event-type.ts'
import type { WebhookEventRaised } from '../../domain/webhooks/webhook-event.ts'
import {
  receives,
  subscriptionsId,
  type WebhookSubscription,
  type WebhookSubscriptionEvent,
  type WebhookSubscriptions,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import type { EventRegistry, RecordedEvent } from '../commands/event-registry.ts'
import { eventsOf } from '../commands/events-of.ts'
import { groupBy } from '../commands/group-by.ts'
import { RecentlyUsed } from '../commands/recently-used.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'

type Raised = RecordedEvent<EventOf<typeof WebhookEventRaised>>

/** Subscriptions as of a place in the log. */
interface Known {
  readonly state: WebhookSubscriptions
  /** Of the last event that is in them, and its place in the log. */
  readonly revision: number
  readonly position: bigint
}

const NOTHING: Known = { state: webhookSubscriptions.initialState, revision: -1, position: LOG_START }
const READ_PAGE = 32
/** Subscriptions that are remembered of all tenants together, about. */
const REMEMBERED = 50_000

/** Finds the recipients of events: the subscriptions as of each event's position in the log. */
export class Recipients {
  readonly #log: Pick<EventLog, 'readStream'>
  readonly #registry: EventRegistry
  readonly #known = new RecentlyUsed<string, Known>(REMEMBERED, ({ state }) => 1 + state.subscriptions.length)

  constructor(log: Pick<EventLog, 'readStream'>, registry: EventRegistry) {
    this.#log = log
    this.#registry = registry
  }

  /** @param events in the order of the log. @returns the recipients of each, in the order in which they registered. */
  async of(events: readonly Raised[]): Promise<ReadonlyMap<Raised, readonly WebhookSubscription[]>> {
    const streams = groupBy(events, ({ data }) =>
      streamOf(webhookSubscriptions, subscriptionsId(data.tenant_id, data.environment)),
    )
    const found = await Promise.all([...streams].map(([stream, raised]) => this.#ofStream(stream, raised)))
    return new Map(found.flat())
  }

  async #ofStream(
    stream: string,
    events: readonly Raised[],
  ): Promise<readonly (readonly [Raised, readonly WebhookSubscription[]])[]> {
    let known = this.#known.get(stream) ?? NOTHING
    // an earlier stretch of the log comes again
    if (known.position > events[0]!.position) known = NOTHING
    const found: (readonly [Raised, readonly WebhookSubscription[]])[] = []
    const findUpTo = (position: bigint | null) => {
      for (; found.length < events.length; ) {
        const event = events[found.length]!
        if (position !== null && event.position > position) return
        found.push([event, known.state.subscriptions.filter((one) => receives(one, event.data))])
      }
    }
    // a page at a time, and never all changes at once: a subscription may have changed without end
    const behind = { from: known.revision + 1, pageSize: READ_PAGE }
    for await (const change of eventsOf(this.#log, stream, behind)) {
      findUpTo(change.position)
      if (found.length === events.length) break
      known = this.#after(known, change)
    }
    findUpTo(null)
    this.#known.set(stream, known)
    return found
  }

  #after({ state }: Known, change: StoredEvent): Known {
    const event = this.#registry.decode(change) as unknown as WebhookSubscriptionEvent
    const { revision, position } = change
    return { state: webhookSubscriptions.evolve(state, event), revision, position }
  }
}
