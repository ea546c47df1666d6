import { createHmac, timingSafeEqual } from 'node:crypto'
import { REQUIRED_FIELDS, type WebhookEvents } from './webhook-events.ts'

/** A delivery whose signature was checked: `type` tells what `data` is. */
export type WebhookEvent<Type extends keyof WebhookEvents = keyof WebhookEvents> = {
  [One in Type]: {
    /** The same in every attempt to deliver the event: what repetitions are told by. */
    readonly id: string
    /** Types may be added: ignore those that you do not know. */
    readonly type: One
    readonly data: WebhookEvents[One]
    /** When this attempt was made. */
    readonly sentAt: Date
  }
}[Type]

/** A delivery as it came in. */
export interface WebhookDelivery {
  /** The raw body, exactly as it was received: what was parsed and written again has another signature. */
  readonly payload: string | Uint8Array
  /** Headers of the request, as `fetch`, Node or a framework gives them. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The secret of the subscription; several around a rotation, any of which does. */
  readonly secret: string | readonly string[]
  /** Milliseconds that the attempt may lie in the past, or by clocks that differ in the future; default 5 minutes. */
  readonly toleranceMs?: number
  /** Milliseconds since the epoch; default the system's clock. */
  readonly now?: () => number
}

const TOLERANCE_MS = 5 * 60 * 1000
const PREFIX = 'whsec_'

/** A request that is not, or not provably, a delivery of the service: answer 400 and do nothing. */
export class WebhookVerificationError extends Error {
  override readonly name: string = 'WebhookVerificationError'
  readonly reason: 'missing_header' | 'wrong_time' | 'wrong_signature' | 'not_json' | 'wrong_type'

  constructor(reason: WebhookVerificationError['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * Checks that a delivery comes from the service, is fresh, and is as it was sent: both signatures that it carries, of
 * which one binds the body to its time and the other to its id as well. Takes the same time whatever is wrong with them.
 *
 * No signature binds `type`, which comes in a header: whoever can change headers on the way can have one event taken for
 * another. So what a type never lacks is looked for in the body. `subscription.created` and `subscription.cancelled` look
 * alike: go by `data.status`.
 * @returns what happened.
 * @throws WebhookVerificationError; TypeError for a secret that is none.
 */
export function verifyWebhook(delivery: WebhookDelivery): WebhookEvent {
  const { payload, toleranceMs = TOLERANCE_MS, now = Date.now } = delivery
  const header = readerOf(delivery.headers)
  const id = header('x-webhook-id')
  const type = header('x-webhook-event')
  const timestamp = header('x-webhook-timestamp')
  const signature = header('x-webhook-signature')
  const standard = {
    id: header('webhook-id'),
    timestamp: header('webhook-timestamp'),
    signatures: header('webhook-signature').split(' '),
  }
  const sentAt = Number(timestamp)
  const isTimely = /^\d{1,15}$/.test(timestamp) && Math.abs(now() - sentAt) <= toleranceMs
  if (!isTimely) throw new WebhookVerificationError('wrong_time', 'The delivery is not from just now')
  const secrets = typeof delivery.secret === 'string' ? [delivery.secret] : delivery.secret
  const isSigned = secrets.map((secret) => {
    const own = hmac(secret, `${timestamp}.`, payload).toString('hex')
    const key = keyOf(secret)
    const ofStandard = `v1,${hmac(key, `${standard.id}.${standard.timestamp}.`, payload).toString('base64')}`
    const some = standard.signatures.map((one) => isEqual(one, ofStandard))
    return isEqual(signature.toLowerCase(), own) && some.includes(true)
  })
  const isOne = standard.id === id && standard.timestamp === String(Math.floor(sentAt / 1000))
  if (!isSigned.includes(true) || !isOne) {
    throw new WebhookVerificationError('wrong_signature', 'The delivery is not signed with this secret')
  }
  let data: unknown
  try {
    data = JSON.parse(typeof payload === 'string' ? payload : Buffer.from(payload).toString())
  } catch {
    throw new WebhookVerificationError('not_json', 'The body of the delivery is no JSON')
  }
  const required: readonly string[] = REQUIRED_FIELDS[type as keyof WebhookEvents] ?? []
  const isOfType =
    typeof data === 'object' && data !== null && required.every((name) => Object.hasOwn(data as object, name))
  if (!isOfType)
    throw new WebhookVerificationError('wrong_type', 'The body is not of the type that it comes as')
  return { id, type, data, sentAt: new Date(sentAt) } as WebhookEvent
}

function readerOf(headers: WebhookDelivery['headers']): (name: string) => string {
  const values =
    // one of another realm or library is none of this one's class
    isHeaders(headers)
      ? headers
      : new Map(
          Object.entries(headers).map(([name, value]) => [
            name.toLowerCase(),
            typeof value === 'object' ? value.join(', ') : value,
          ]),
        )
  return (name) => {
    const value = values.get(name)
    if (!value) throw new WebhookVerificationError('missing_header', `The delivery has no header ${name}`)
    return value
  }
}

function isHeaders(headers: WebhookDelivery['headers']): headers is Headers {
  return typeof headers.get === 'function'
}

/** The bytes that a secret encodes. @throws TypeError when it is none; it is not quoted. */
function keyOf(secret: string): Buffer {
  const encoded = secret.slice(PREFIX.length)
  if (!secret.startsWith(PREFIX) || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) {
    throw new TypeError(`A secret begins with ${PREFIX}: take it as it was shown`)
  }
  return Buffer.from(encoded, 'base64')
}

function hmac(key: string | Buffer, before: string, payload: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(before).update(payload).digest()
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
