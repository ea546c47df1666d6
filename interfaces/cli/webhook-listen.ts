import { randomBytes } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { isoTime } from '../../domain/kernel/calendar.ts'
import type { WebhookEventType } from '../../domain/webhooks/event-types.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { signedHeaders } from '../../infrastructure/webhooks/signed-headers.ts'
import { baseUrl } from './http-client.ts'
import { CliError, type CliIo, Refusal } from './io.ts'
import { type Output, printable } from './output.ts'
import type { PartnerClient, PartnerOptions } from './partner-client.ts'
import { secretOf } from './secrets.ts'
import { chosenSubscription } from './webhook-trigger.ts'

export interface ListenOptions extends PartnerOptions {
  readonly forwardTo: string
  readonly subscription?: string
  readonly webhookSecret?: string
  readonly webhookSecretFile?: string
  /** Seconds. */
  readonly poll: number
  readonly json?: boolean
}

/** Deliveries that the service shows at once, at the most. */
const SHOWN = 200
/** Ids that are remembered: what lies further back than one look shows does not come again. */
const REMEMBERED = 5 * SHOWN
/** What the service itself gives a receiver. */
const ANSWER_MS = 10_000

/** A delivery as the service shows it. */
interface Delivery {
  readonly _id: string
  readonly event_id: string
  readonly event_type: WebhookEventType
  readonly payload: unknown
}

/** What became of a post: a status; nothing was sent; or it was sent, and no answer came. */
type Posted = { readonly status: number } | 'unreached' | { readonly failure: string }

/**
 * Looks for new deliveries of a subscription and posts each to a local address, once and in order, whatever is answered
 * there. Outlives restarts of the service and of the local receiver: what could not be handed over waits.
 * @param signal ends it.
 * @throws Refusal when the service refuses; CliError.
 */
export async function listen(
  io: CliIo,
  client: PartnerClient,
  options: ListenOptions,
  signal: AbortSignal,
): Promise<Output> {
  const forwardTo = baseUrl(options.forwardTo)
  const secret = givenSecret(io, options) ?? `whsec_${randomBytes(32).toString('base64')}`
  const { _id: id, url } = await chosenSubscription(client, options.subscription)
  const notices = new Notices(io)
  const seen = new Set<string>()
  const waiting: Delivery[] = []
  let forwarded = 0
  const print = (json: unknown, text: string) => {
    io.stdout.write(`${options.json ? JSON.stringify(json) : printable(text)}\n`)
  }

  let isPrimed = false
  while (!signal.aborted) {
    const shown = await look(client, id, notices)
    if (shown !== null) {
      const fresh = shown.filter(({ _id }) => !seen.has(_id)).reverse()
      for (const { _id } of fresh) seen.add(_id)
      forget(seen)
      if (isPrimed) waiting.push(...fresh)
      else {
        const json = { listening: { subscription_id: id, url, forward_to: forwardTo, secret } }
        print(json, `Deliveries of ${id} (${url}) go to ${forwardTo}, signed with ${secret}`)
      }
      if (isPrimed && fresh.length === SHOWN)
        io.stderr.write('more deliveries than can be shown: some were missed\n')
      isPrimed = true
    }
    for (let next = waiting[0]; next && !signal.aborted; next = waiting[0]) {
      const posted = await post(forwardTo, secret, next)
      notices.set(
        'receiver',
        posted === 'unreached' ? `${forwardTo} cannot be reached; what is new waits` : null,
      )
      if (posted === 'unreached') break
      waiting.shift()
      forwarded += 1
      const outcome = 'status' in posted ? posted.status : posted.failure
      print(
        { delivery_id: next._id, event_id: next.event_id, event_type: next.event_type, ...posted },
        `${isoTime(systemClock.now())} ${next.event_type} ${next.event_id}: ${outcome}`,
      )
    }
    await delay(options.poll * 1000, undefined, { signal }).catch(() => undefined)
  }
  return { json: { forwarded }, text: `${forwarded} forwarded` }
}

/** Tells of what is away when it goes, and again when it is back. */
class Notices {
  readonly #io: CliIo
  readonly #troubles = new Map<string, string>()

  constructor(io: CliIo) {
    this.#io = io
  }

  /** @param trouble null: there is none any more. */
  set(what: string, trouble: string | null): void {
    const before = this.#troubles.get(what)
    if (trouble === null) this.#troubles.delete(what)
    else this.#troubles.set(what, trouble)
    if (trouble !== null && before === undefined) this.#io.stderr.write(`${printable(trouble)}\n`)
    if (trouble === null && before !== undefined) this.#io.stderr.write(`the ${what} is back\n`)
  }
}

/** Deliveries, newest first; null while the service cannot be asked. @throws Refusal. */
async function look(
  client: PartnerClient,
  id: string,
  notices: Notices,
): Promise<readonly Delivery[] | null> {
  try {
    const shown = await client.call('GET', `/webhooks/${id}/deliveries?limit=${SHOWN}`)
    notices.set('service', null)
    return shown as readonly Delivery[]
  } catch (error) {
    if (!(error instanceof CliError) || (error instanceof Refusal && !isPassing(error.status))) throw error
    notices.set('service', error.text)
    return null
  }
}

/** The service is away, or many large deliveries cost more than the rate of the key gives back at once. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 429
}

/** Forgets the ids that were seen first. */
function forget(seen: Set<string>): void {
  for (const id of seen) {
    if (seen.size <= REMEMBERED) return
    seen.delete(id)
  }
}

function givenSecret(io: CliIo, options: ListenOptions): string | null {
  const secret = secretOf(io, options, 'webhookSecret', 'COMPSTREAM_WEBHOOK_SECRET')
  if (secret !== null && !/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret)) {
    throw new CliError('The secret to sign with must be whsec_ and base64 behind it')
  }
  return secret
}

/** One post. Once a connection stands, the receiver may have it: then it is not sent again. */
function post(url: string, secret: string, delivery: Delivery): Promise<Posted> {
  const { event_id: eventId, event_type: eventType } = delivery
  const body = JSON.stringify(delivery.payload)
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    ...signedHeaders({ secret, eventId, eventType, body, timestamp: systemClock.now() }),
  }
  return new Promise((resolve) => {
    let isConnected = false
    const end = (posted: Posted) => {
      clearTimeout(timer)
      resolve(posted)
    }
    const request = (url.startsWith('https:') ? https : http).request(url, {
      method: 'POST',
      headers,
      agent: false,
    })
    const timer = setTimeout(() => {
      end(isConnected ? { failure: `no answer within ${ANSWER_MS / 1000} s` } : 'unreached')
      request.destroy()
    }, ANSWER_MS)
    request.on('socket', (socket) => {
      socket.once(url.startsWith('https:') ? 'secureConnect' : 'connect', () => {
        isConnected = true
      })
    })
    request.on('error', ({ message }) => end(isConnected ? { failure: message } : 'unreached'))
    request.on('response', (response) => {
      response.resume()
      response.once('close', () => end({ status: response.statusCode! }))
    })
    request.end(body)
  })
}
