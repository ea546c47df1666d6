import { createHmac } from 'node:crypto'
import type { Command } from 'commander'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import type { Method } from '../http/server.ts'
import { baseUrl, send } from './http-client.ts'
import { type CliIo, Refusal, UsageError } from './io.ts'
import { askSecret, isAttended, secretHelp, secretOf } from './secrets.ts'

/** Options of the commands that partners give. */
export interface PartnerOptions {
  readonly paymentsUrl?: string
  readonly clientId?: string
  readonly clientSecret?: string
  readonly clientSecretFile?: string
  readonly sign?: boolean
}

const DEFAULT_PAYMENTS = 'http://127.0.0.1:4003'

/** Adds the options of partners' credentials to a command. */
export function partnerOptions(command: Command): Command {
  const secret = secretHelp('its secret', 'COMPSTREAM_CLIENT_SECRET')
  return command
    .option('--payments-url <address>', `payments API (COMPSTREAM_PAYMENTS_URL, default ${DEFAULT_PAYMENTS})`)
    .option('--client-id <id>', 'API client (COMPSTREAM_CLIENT_ID)')
    .option('--client-secret <secret>', secret.value)
    .option('--client-secret-file <file>', `${secret.file}; else it is asked for`)
    .option('--sign', 'sign the requests, for clients that must')
}

/** Speaks to the payments API under one key pair. */
export class PartnerClient {
  readonly #base: string
  readonly #clientId: string
  readonly #secret: string
  readonly #sign: boolean

  private constructor(base: string, clientId: string, secret: string, sign: boolean) {
    this.#base = base
    this.#clientId = clientId
    this.#secret = secret
    this.#sign = sign
  }

  /** @throws UsageError when a part of the key pair is nowhere. */
  static async from(io: CliIo, options: PartnerOptions): Promise<PartnerClient> {
    const base = baseUrl(options.paymentsUrl ?? io.env.COMPSTREAM_PAYMENTS_URL ?? DEFAULT_PAYMENTS)
    const clientId = options.clientId ?? io.env.COMPSTREAM_CLIENT_ID
    if (!clientId) throw new UsageError('--client-id (or COMPSTREAM_CLIENT_ID) is required')
    return new PartnerClient(base, clientId, await clientSecretOf(io, options), options.sign ?? false)
  }

  get isLive(): boolean {
    return this.#clientId.startsWith('service_live_')
  }

  /** @returns `data` of the answer. @throws Refusal; CliError when there is no answer. */
  async call(method: Method, path: string, body?: unknown): Promise<unknown> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await send({
      method,
      url: `${this.#base}/api/v1${path}`,
      headers: {
        'X-Client-ID': this.#clientId,
        'X-Client-Secret': this.#secret,
        ...(this.#sign ? signatureOf(this.#secret, text ?? '') : {}),
      },
      ...(text === undefined ? {} : { text }),
    })
    if (answer.status >= 400) throw new Refusal(answer.status, answer.body)
    return (answer.body as { readonly data: unknown }).data
  }
}

function signatureOf(secret: string, text: string): Record<string, string> {
  const timestamp = String(systemClock.now())
  const signature = createHmac('sha256', secret).update(`${timestamp}.${text}`).digest('hex')
  return { 'X-Timestamp': timestamp, 'X-Signature': signature }
}

async function clientSecretOf(io: CliIo, options: PartnerOptions): Promise<string> {
  const secret = secretOf(io, {
    option: '--client-secret',
    given: options.clientSecret,
    givenFile: options.clientSecretFile,
    variable: 'COMPSTREAM_CLIENT_SECRET',
  })
  if (secret !== null) return secret
  if (isAttended(io)) return askSecret(io, 'Client secret')
  throw new UsageError(
    'COMPSTREAM_CLIENT_SECRET, COMPSTREAM_CLIENT_SECRET_FILE or --client-secret-file is required',
  )
}
