import { createHmac } from 'node:crypto'
import type { Command } from 'commander'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import type { Method } from '../http/server.ts'
import { baseUrl, type HttpRequest, send } from './http-client.ts'
import { type CliIo, Refusal, UsageError } from './io.ts'
import { askSecret, isAttended, secretHelp, secretOf } from './secrets.ts'

/** Options of the commands that partners give. */
export interface PartnerOptions {
  readonly coreUrl?: string
  readonly paymentsUrl?: string
  readonly clientId?: string
  readonly clientSecret?: string
  readonly clientSecretFile?: string
  readonly sign?: boolean
}

/** The APIs that a key pair opens, and where they usually are. */
const APIS = {
  core: { variable: 'COMPSTREAM_CORE_URL', address: 'http://127.0.0.1:4002' },
  payments: { variable: 'COMPSTREAM_PAYMENTS_URL', address: 'http://127.0.0.1:4003' },
} as const

/** Adds the options of partners' credentials for an API to a command. */
export function partnerOptions(command: Command, api: keyof typeof APIS): Command {
  const { variable, address } = APIS[api]
  const secret = secretHelp('its secret', 'COMPSTREAM_CLIENT_SECRET')
  return command
    .option(`--${api}-url <address>`, `${api} API (${variable}, default ${address})`)
    .option('--client-id <id>', 'API client (COMPSTREAM_CLIENT_ID)')
    .option('--client-secret <secret>', secret.value)
    .option('--client-secret-file <file>', `${secret.file}; else it is asked for`)
    .option('--sign', 'sign the requests, for clients that must')
}

/** Speaks to an API under one key pair. */
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

  /**
   * @param mayAsk whether the secret may be asked for at the terminal.
   * @throws UsageError when a part of the key pair is nowhere.
   */
  static async from(
    io: CliIo,
    options: PartnerOptions,
    api: keyof typeof APIS,
    mayAsk = true,
  ): Promise<PartnerClient> {
    const { variable, address } = APIS[api]
    const base = baseUrl(options[`${api}Url`] ?? io.env[variable] ?? address)
    const clientId = options.clientId ?? io.env.COMPSTREAM_CLIENT_ID
    if (!clientId) throw new UsageError('--client-id (or COMPSTREAM_CLIENT_ID) is required')
    const secret = await clientSecretOf(io, options, mayAsk)
    return new PartnerClient(base, clientId, secret, options.sign ?? false)
  }

  get isLive(): boolean {
    return this.#clientId.startsWith('service_live_')
  }

  /** @returns `data` of the answer. @throws Refusal; CliError when there is no answer. */
  async call(method: Method, path: string, body?: unknown): Promise<unknown> {
    return (await this.send(method, path, body === undefined ? {} : { text: JSON.stringify(body) })).data
  }

  /** @returns the answer. @throws Refusal; CliError when there is none. */
  async send(
    method: Method,
    path: string,
    { headers, ...sent }: Pick<HttpRequest, 'headers' | 'text' | 'timeoutMs'> = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const answer = await send({
      method,
      url: `${this.#base}/api/v1${path}`,
      headers: {
        'X-Client-ID': this.#clientId,
        'X-Client-Secret': this.#secret,
        ...(this.#sign ? signatureOf(this.#secret, sent.text ?? '') : {}),
        ...headers,
      },
      ...sent,
    })
    if (answer.status >= 400) throw new Refusal(answer.status, answer.body)
    return answer.body as Readonly<Record<string, unknown>>
  }
}

function signatureOf(secret: string, text: string): Record<string, string> {
  const timestamp = String(systemClock.now())
  const signature = createHmac('sha256', secret).update(`${timestamp}.${text}`).digest('hex')
  return { 'X-Timestamp': timestamp, 'X-Signature': signature }
}

async function clientSecretOf(io: CliIo, options: PartnerOptions, mayAsk: boolean): Promise<string> {
  const secret = secretOf(io, options, 'clientSecret', 'COMPSTREAM_CLIENT_SECRET')
  if (secret !== null) return secret
  if (mayAsk && isAttended(io)) return askSecret(io, 'Client secret')
  throw new UsageError(
    'COMPSTREAM_CLIENT_SECRET, COMPSTREAM_CLIENT_SECRET_FILE or --client-secret-file is required',
  )
}
