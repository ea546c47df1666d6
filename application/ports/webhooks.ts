import type { Environment } from '../../domain/kernel/ids.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'

/** Sends signed bodies to the addresses of partners. */
export interface WebhookSender {
  /** Why an address cannot be a target: its form, or what its host resolves to. Null when it can. */
  refuse(url: string): Promise<Rejection | null>
  /** One attempt of 10 seconds at the most, real time. Never throws for what the other side does. */
  post(request: WebhookRequest, signal: AbortSignal): Promise<WebhookAnswer>
}

export interface WebhookRequest {
  readonly url: string
  readonly secret: string
  readonly eventId: string
  readonly eventType: WebhookEventType
  /** Signed and sent as it is. */
  readonly body: string
  /** Epoch milliseconds of the service's clock. */
  readonly timestamp: number
}

export interface WebhookAnswer {
  /** Null when none came. */
  readonly statusCode: number | null
  /** Why it does not count as accepted, without addresses or secrets; null when it does. */
  readonly error: string | null
}

/** A delivery as partners see it. */
export interface DeliveryRecord {
  readonly _id: string
  readonly subscription_id: string
  readonly event_id: string
  readonly event_type: WebhookEventType
  readonly status: 'pending' | 'delivered' | 'retrying' | 'failed'
  readonly attempts: number
  readonly last_response_code: number | null
  readonly last_attempt_at: string | null
  readonly delivered_at: string | null
  readonly created_at: string
  readonly payload: unknown
  readonly last_error: string | null
  readonly test: boolean
  readonly dedupe_key: string
  readonly sweep_attempts: number
  readonly next_sweep_after: string | null
  readonly sweep_claimed_at: string | null
  readonly last_swept_at: string | null
}

/** What became of deliveries: records of their own, beside the log. */
export interface WebhookDeliveries {
  /** Newest first. @param limit at the most. */
  list(subscriptionId: string, limit: number): Promise<readonly DeliveryRecord[]>
  /** Consecutive events that failed fully, by subscription; those with none are left out. */
  failureCounts(subscriptionIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Keeps a test delivery, which was made once and is over. */
  recordTest(test: {
    readonly deliveryId: string
    readonly subscriptionId: string
    readonly tenantId: string
    readonly environment: Environment
    readonly eventId: string
    readonly eventType: WebhookEventType
    readonly body: string
    /** Epoch milliseconds. */
    readonly at: number
    readonly answer: WebhookAnswer
  }): Promise<void>
}
