import { createHmac } from 'node:crypto'
import type { WebhookRequest } from '../../application/ports/webhooks.ts'

/** What a secret begins with; the rest is the key of the Standard Webhooks signature in base64. */
const SECRET_PREFIX = 'whsec_'

/**
 * The headers of a delivery: the documented ones, whose key is the whole secret as it was handed out, and those of
 * Standard Webhooks (standardwebhooks.com), whose key are the bytes that the secret encodes.
 */
export function signedHeaders({
  secret,
  eventId,
  eventType,
  body,
  timestamp,
}: Omit<WebhookRequest, 'url'>): Readonly<Record<string, string>> {
  const seconds = Math.floor(timestamp / 1000)
  const key = Buffer.from(
    secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret,
    'base64',
  )
  const standard = createHmac('sha256', key).update(`${eventId}.${seconds}.${body}`).digest('base64')
  return {
    'X-Webhook-Signature': createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex'),
    'X-Webhook-Timestamp': String(timestamp),
    'X-Webhook-Event': eventType,
    'X-Webhook-ID': eventId,
    'webhook-id': eventId,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${standard}`,
  }
}
