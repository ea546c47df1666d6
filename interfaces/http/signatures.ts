import { createHmac, timingSafeEqual } from 'node:crypto'

/** Milliseconds that a signed request's timestamp may lie before or after the service's time: 5 minutes. */
const TIMESTAMP_TOLERANCE_MS = 5 * 60 * 1000

const MILLISECONDS = /^\d{1,16}$/

/**
 * Whether `signature` is the lower-case hex HMAC-SHA256 over `${timestamp}.${body}`, the body being
 * the raw bytes of the request.
 */
export function isSignedBy(secret: string, timestamp: string, body: Buffer, signature: string): boolean {
  const expected = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')
  // header values are latin-1: compared as bytes, in constant time once the lengths agree
  const presented = Buffer.from(signature, 'latin1')
  return presented.length === expected.length && timingSafeEqual(presented, Buffer.from(expected, 'latin1'))
}

/** Whether a timestamp header (Unix milliseconds) is within {@link TIMESTAMP_TOLERANCE_MS} of now, bounds included. */
export function isTimely(timestamp: string, now: number): boolean {
  return MILLISECONDS.test(timestamp) && Math.abs(now - Number(timestamp)) <= TIMESTAMP_TOLERANCE_MS
}
