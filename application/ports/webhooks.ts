import type { Environment } from '../../domain/kernel/ids.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import type { ListPage, PageRequest } from './read-database.ts'

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
  /** The body that is sent: the text of a JSON object. */
  readonly payload: string
  readonly last_error: string | null
  readonly test: boolean
  /** Sent again because its partner asked for that. */
  readonly resent: boolean
  readonly dedupe_key: string
  readonly sweep_attempts: number
  readonly next_sweep_after: string | null
  readonly sweep_claimed_at: string | null
  readonly last_swept_at: string | null
}

/** What became of deliveries: records of their own, beside the log. All times are those of the service's clock. */
export interface WebhookDeliveries {
  /** Newest first. @param limit at the most. @param offset how many newer ones are left out. */
  list(subscriptionId: string, limit: number, offset?: number): Promise<readonly DeliveryRecord[]>
  /** How many there are of a subscription. */
  count(subscriptionId: string): Promise<number>
  /** Consecutive events that failed fully, by subscription; those with none are left out. */
  failureCounts(subscriptionIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Ids of subscriptions whose last events failed fully, the worst first. */
  failing(page: PageRequest): Promise<ListPage<string>>
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
  /** Stores deliveries of events that are sent again, due now; those that are there stay as they are. */
  resend(resent: ResentEvents): Promise<void>
  /**
   * Begins to count failures anew, as an enabled subscription does, and makes its deliveries that sleep go on. Once for each
   * enabling: what was counted since stays.
   * @param revision of the event that enabled it, in the stream of the subscriptions.
   */
  resetFailures(subscriptionId: string, revision: number): Promise<void>
}

/** Events that are sent to a subscription again. */
export interface ResentEvents {
  readonly subscriptionId: string
  /** Where its address is. */
  readonly host: string
  readonly tenantId: string
  readonly environment: Environment
  /** Epoch milliseconds. */
  readonly at: number
  /** In the order in which they are sent. */
  readonly events: readonly {
    readonly deliveryId: string
    readonly eventId: string
    readonly eventType: WebhookEventType
    readonly body: string
  }[]
}

/** A delivery that is to be made, of an event as it is sent. Times are epoch milliseconds. */
export interface Delivery {
  readonly deliveryId: string
  readonly subscriptionId: string
  /** Where its address was when the event was raised; null where an earlier release did not say. */
  readonly host: string | null
  readonly eventId: string
  readonly tenantId: string
  readonly environment: Environment
  readonly eventType: WebhookEventType
  readonly body: string
  readonly createdAt: number
  /** Attempts that have ended. */
  readonly attempts: number
  /** The next rung of the background redelivery. */
  readonly rung: number
  /** Sent again because its partner asked for that. */
  readonly isResent: boolean
  /** Consecutive events that its subscription has failed fully. */
  readonly failureCount: number
}

/** What an attempt came to. */
export interface AttemptResult {
  readonly deliveryId: string
  readonly subscriptionId: string
  /** Its number, from 1: a result of a number that is there already changes nothing. */
  readonly attempt: number
  readonly at: number
  readonly statusCode: number | null
  /** Null: accepted. */
  readonly error: string | null
  readonly status: DeliveryRecord['status']
  readonly rung: number
  readonly nextAttemptAt: number | null
  readonly revision: number
  /** What it does to the health of the subscription: a success sets the count to 0, a fully failed event adds 1. */
  readonly counts: 'success' | 'failure' | null
}

/**
 * The records as those see them who deliver. A delivery that is not over is its own piece of work: the work store stores and
 * claims it, and what is recorded here ends the claim. What is asked at the same time is one statement.
 */
export interface DeliveryRecords extends WebhookDeliveries {
  /** When the earliest event that is kept was raised, epoch milliseconds; null when there is none. */
  earliest(): Promise<number | null>
  /** @returns the subscription's count of failures after it. */
  record(result: AttemptResult): Promise<number>
  /** Has a delivery wait until its subscription is enabled. @param revision of the subscriptions that have it disabled. */
  sleep(deliveryId: string, revision: number): Promise<void>
  /** Ends a delivery that is over, unless it was accepted. @param why what the history shows. */
  giveUp(deliveryId: string, why: string): Promise<void>
  /** Ends the deliveries of a subscription that was deleted, and forgets its count of failures. */
  forget(subscriptionId: string): Promise<void>
  /** Forgets what is over and older than a time, a limited number of rows at once. @returns whether there may be more. */
  prune(before: number): Promise<boolean>
}
