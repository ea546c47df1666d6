import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type { Messages, OutgoingMessage } from '../../../application/ports/messages.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { traceHeaders } from '../../../application/ports/tracing.ts'

/** Real milliseconds that the provider may take to answer. */
const PATIENCE_MS = 10_000
/** Refusals that say nothing about the message: credentials, time, too many at once. */
const NOT_ABOUT_THE_MESSAGE = new Set([401, 403, 404, 407, 408, 429])

/**
 * Texts over the HTTP interface of Twilio, which others speak, too.
 *
 * User and password of the address are account and token, `?from=` is the service's own number. A path is where messages
 * are posted to; without one it is the account's `Messages.json`.
 */
export class SmsMessages implements Messages {
  readonly #url: URL
  readonly #from: string
  readonly #authorization: string | null

  /** @param url `SMS_URL`. */
  constructor(url: string) {
    const { origin, pathname, username, password, searchParams } = new URL(url)
    const path = pathname === '/' ? `/2010-04-01/Accounts/${username}/Messages.json` : pathname
    this.#url = new URL(path, origin)
    this.#from = searchParams.get('from') ?? ''
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    this.#authorization = username === '' ? null : `Basic ${Buffer.from(credentials).toString('base64')}`
  }

  async send({ to, from, text }: OutgoingMessage): Promise<void> {
    let status: number
    try {
      const answer = await fetch(this.#url, {
        method: 'POST',
        headers: {
          ...(this.#authorization === null ? {} : { Authorization: this.#authorization }),
          ...traceHeaders(),
        },
        body: new URLSearchParams({ To: to, From: from ?? this.#from, Body: text }),
        redirect: 'manual',
        signal: AbortSignal.timeout(technicalDeadline(PATIENCE_MS)),
      })
      status = answer.status
      await answer.body?.cancel()
    } catch {
      throw new ProviderUnavailable('The text provider could not be reached')
    }
    if (status >= 200 && status < 300) return
    if (status >= 400 && status < 500 && !NOT_ABOUT_THE_MESSAGE.has(status)) {
      throw new ProviderRefused(`The text provider refused the message with ${status}`)
    }
    throw new ProviderUnavailable(`The text provider answered ${status}`)
  }
}
