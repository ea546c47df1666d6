import type { ClientOptions } from './calls.ts'
import { type Client, clientOf } from './client.ts'
import { type operations as CoreOperations, coreOperations } from './core-api.ts'
import { type operations as PaymentsOperations, paymentsOperations } from './payments-api.ts'

export type { CallOptions, ClientOptions, Try } from './calls.ts'
export type { Client, ItemOf, RequestOf, ResultOf } from './client.ts'
export type { components, operations } from './core-api.ts'
export type { ErrorCode } from './error-codes.ts'
export { ApiError, NoAnswerError } from './errors.ts'
export type { components as paymentsComponents, operations as paymentsOperations } from './payments-api.ts'
export type { WebhookEvents } from './webhook-events.ts'
export { WEBHOOK_EVENT_TYPES } from './webhook-events.ts'
export {
  verifyWebhook,
  type WebhookDelivery,
  type WebhookEvent,
  WebhookVerificationError,
} from './webhooks.ts'

/** A client of the core API. */
export type CoreClient = Client<CoreOperations>
/** A client of the payments API. */
export type PaymentsClient = Client<PaymentsOperations>

/**
 * A client of the core API for one partner's credentials. It holds no connection and no state: one serves a whole
 * program.
 * @throws TypeError for an address that is none.
 */
export function createClient(options: ClientOptions): CoreClient {
  return clientOf<CoreOperations>(coreOperations, options)
}

/** The same of the payments API, whose host has an address of its own. @throws TypeError for an address that is none. */
export function createPaymentsClient(options: ClientOptions): PaymentsClient {
  return clientOf<PaymentsOperations>(paymentsOperations, options)
}
