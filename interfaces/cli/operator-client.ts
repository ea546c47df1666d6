import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../infrastructure/config/config-error.ts'
import { readSecretFile } from '../../infrastructure/config/secret-files.ts'
import { baseUrl, newIdempotencyKey, send } from './http-client.ts'
import { CliError, type CliIo } from './io.ts'

export interface OperatorOptions {
  readonly url?: string
  readonly token?: string
}

/** An answer of the operator API. */
export interface OperatorAnswer {
  readonly data: unknown
  readonly pagination: unknown
}

const DEFAULT_URL = 'http://127.0.0.1:4005'

/** Speaks to the operator API of one service. */
export class OperatorClient {
  readonly #base: string
  readonly #token: string

  constructor(io: Pick<CliIo, 'env'>, options: OperatorOptions) {
    this.#base = baseUrl(options.url ?? io.env.COMPSTREAM_OPS_URL ?? DEFAULT_URL)
    this.#token = operatorToken(io, options)
  }

  get(path: string, query: Readonly<Record<string, unknown>> = {}): Promise<OperatorAnswer> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== false) search.set(name, String(value))
    }
    const text = search.toString()
    return this.#send('GET', text === '' ? path : `${path}?${text}`)
  }

  post(path: string, body: unknown = {}): Promise<OperatorAnswer> {
    return this.#send('POST', path, body)
  }

  /** A POST that creates: sent under an idempotency key, so that a lost answer creates nothing twice. */
  create(path: string, body: unknown): Promise<OperatorAnswer> {
    return this.#send('POST', path, body, { 'Idempotency-Key': newIdempotencyKey() })
  }

  patch(path: string, body: unknown): Promise<OperatorAnswer> {
    return this.#send('PATCH', path, body)
  }

  async #send(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<OperatorAnswer> {
    const answer = await send({
      method,
      url: `${this.#base}/ops/v1${path}`,
      headers: { Authorization: `Bearer ${this.#token}`, ...headers },
      ...(body === undefined ? {} : { body }),
    })
    const envelope = (answer.body ?? {}) as {
      ok?: unknown
      data?: unknown
      pagination?: unknown
      error?: unknown
      message?: unknown
    }
    if (answer.status < 400 && envelope.ok === true) {
      return { data: envelope.data, pagination: envelope.pagination }
    }
    throw new CliError(
      `${String(envelope.error ?? answer.status)}: ${String(envelope.message ?? 'no message')}`,
    )
  }
}

/**
 * The operator token: the option, the variable `OPERATOR_TOKEN`, the file that `OPERATOR_TOKEN_FILE` names,
 * or the file that the service keeps under `DATA_DIR`.
 * @throws CliError that says where it was looked for.
 */
export function operatorToken(io: Pick<CliIo, 'env'>, options: OperatorOptions): string {
  const given = options.token ?? io.env.OPERATOR_TOKEN
  if (given) return given
  const named = io.env.OPERATOR_TOKEN_FILE
  if (named) {
    try {
      return readSecretFile('OPERATOR_TOKEN_FILE', named)
    } catch (error) {
      throw error instanceof ConfigError ? new CliError(error.message) : error
    }
  }
  const file = join(io.env.DATA_DIR ?? './data', 'operator-token')
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new CliError(
      `No operator token: use --token, OPERATOR_TOKEN, OPERATOR_TOKEN_FILE, or DATA_DIR of the service (looked for ${file})`,
    )
  }
}
