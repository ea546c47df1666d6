import { expect, test } from 'vitest'
import { EventRegistry, type RecordedEvent } from '../../../application/commands/event-registry.ts'
import type { StoredEvent } from '../../../application/ports/event-log.ts'
import { Recipients } from '../../../application/webhooks/recipients.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import type { EventOf } from '../../../domain/kernel/event-type.ts'
import type { WebhookEventRaised } from '../../../domain/webhooks/webhook-event.ts'
import {
  WebhookSubscriptionChanged,
  WebhookSubscriptionRegistered,
} from '../../../domain/webhooks/webhook-subscriptions.ts'

const [TENANT, ONE] = ['a', '1'].map((digit) => digit.repeat(24)) as [string, string]
const CHANGES = 5_000

const registry = new EventRegistry(aggregates)
const history = [
  WebhookSubscriptionRegistered.of({
    subscription_id: ONE,
    tenant_id: TENANT,
    environment: 'live',
    client_id: 'client',
    url: 'https://a.example/0',
    events: ['payment.failed'],
    secret_ref: 'ref',
    carrier_ids: 'all',
    employer_ids: 'all',
    at: 1,
  }),
  ...Array.from({ length: CHANGES }, (_, n) =>
    WebhookSubscriptionChanged.of({ subscription_id: ONE, url: `https://a.example/${n + 1}`, at: 1 }),
  ),
]

test('are found without ever holding more than a page of a subscription that changed without end', async () => {
  const stored = registry
    .encodeAll(history, {
      tenant_id: TENANT,
      environment: 'live',
      actor: { type: 'system', id: 'test' },
      correlation_id: 'c',
      causation_id: 'c',
      command_id: 'c',
      recorded_at: '2026-01-01T00:00:00.000Z',
    })
    .map(
      (event, revision) => ({ ...event, revision, position: BigInt(revision + 1) }) as unknown as StoredEvent,
    )
  let held = 0
  let mostHeld = 0
  const log = {
    readStream: async (_: string, { from = 0, maxCount = 0 } = {}) => {
      const page = stored.slice(from, from + maxCount)
      held += page.length
      mostHeld = Math.max(mostHeld, held)
      return page
    },
  }
  const counting = {
    decode(event: StoredEvent) {
      held -= 1
      return { data: JSON.parse(event.data), type: event.type }
    },
  } as unknown as EventRegistry
  const raisedAt = (position: bigint) =>
    ({
      position,
      data: {
        event_id: ONE,
        tenant_id: TENANT,
        environment: 'live',
        event_type: 'payment.failed',
        carrier_id: null,
        employer_id: null,
        payload: {},
      },
    }) as unknown as RecordedEvent<EventOf<typeof WebhookEventRaised>>
  const events = [raisedAt(0n), raisedAt(1n), raisedAt(2_500n), raisedAt(9_999n)]
  const recipients = new Recipients(log, counting)
  const found = await recipients.of(events)
  const urls = events.map((event) => found.get(event)!.map(({ url }) => url))
  const at = (n: number) => [`https://a.example/${n}`]
  expect(urls).toEqual([[], [], at(2_498), at(CHANGES)])
  // an earlier stretch of the log comes again
  const again = await recipients.of(events.slice(2, 3))
  expect(again.get(events[2]!)).toMatchObject([{ url: at(2_498)[0] }])
  expect(mostHeld).toBeLessThanOrEqual(100)
})
