import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { Api } from '../endpoints/api.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { baseUrl, newIdempotencyKey, send } from './http-client.ts'
import { type CliIo, Refusal, UsageError } from './io.ts'
import { askSecret, isAttended, secretOf } from './secrets.ts'

export interface OperatorOptions {
  readonly url?: string
  readonly token?: string
  readonly tokenFile?: string
  /** Seconds until an answer must be there. */
  readonly requestTimeout?: number
}

/** What of an endpoint's declaration a call needs. */
type Called = Pick<Endpoint<never>, 'method' | 'path' | 'idempotent'> & {
  readonly api: Pick<Api, 'prefixes'>
}

/** What a request carries, by name. */
export interface RequestInput {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body?: Readonly<Record<string, unknown>>
  /** JSON lines, for what takes them instead of a body. */
  readonly lines?: Readable
  /** Where the answer is written as it comes, of what answers with bytes. */
  readonly into?: Writable
}

/** An answer of the operator API. */
export interface OperatorAnswer {
  readonly data: unknown
  readonly pagination?: unknown
}

/** Time for an answer that the service works on for as long as it takes. */
export const AS_LONG_AS_IT_TAKES = { timeoutMs: null } as const

/** Time limit of one request, in real milliseconds, instead of the usual one; null for none. */
interface Limit {
  readonly timeoutMs: number | null
}

export const DEFAULT_MCP = 'http://127.0.0.1:4001'
const DEFAULT_URL = 'http://127.0.0.1:4005'

/** Calls what takes the operator token. */
export class OperatorClient {
  readonly #base: string
  readonly #token: () => Promise<string>
  /** Of every request that has none of its own. */
  readonly #limit: Partial<Limit>

  /**
   * @param token asked for with every request.
   * @param url address of another host that takes the token; default: that of the operator API.
   */
  constructor(
    io: Pick<CliIo, 'env'>,
    options: OperatorOptions,
    token: () => Promise<string>,
    url = options.url ?? io.env.COMPSTREAM_OPS_URL ?? DEFAULT_URL,
  ) {
    this.#base = baseUrl(url)
    this.#token = token
    const { requestTimeout } = options
    this.#limit = requestTimeout === undefined ? {} : { timeoutMs: requestTimeout * 1000 }
  }

  /**
   * Calls an endpoint. One that takes an idempotency key is given one, so that a lost answer does nothing twice.
   * @param limit where an answer may take longer than usual.
   * @throws Refusal, CliError.
   */
  async call(
    endpoint: Called,
    { params, query, body, lines, into }: RequestInput,
    limit?: Limit,
  ): Promise<OperatorAnswer> {
    const { method, api, path, idempotent } = endpoint
    const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!))
    const search = new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    )
    const answer = await send({
      method,
      url: `${this.#base}${api.prefixes[0]}${place}${search.size > 0 ? `?${search}` : ''}`,
      headers: {
        Authorization: `Bearer ${await this.#token()}`,
        ...(idempotent === undefined ? {} : { 'Idempotency-Key': newIdempotencyKey() }),
        ...(lines === undefined ? {} : { 'Content-Type': 'application/x-ndjson' }),
      },
      ...(body === undefined ? {} : { body }),
      ...(lines === undefined ? {} : { stream: lines }),
      ...(into === undefined ? {} : { into }),
      ...(limit ?? this.#limit),
    })
    if (answer.status < 400) {
      const body = answer.body as Readonly<Record<string, unknown>> | null
      return body?.ok === true ? { data: body.data, pagination: body.pagination } : { data: body }
    }
    throw new Refusal(answer.status, answer.body)
  }
}

/**
 * The operator token: `--token`, `--token-file`, the variable `OPERATOR_TOKEN`, the file that `OPERATOR_TOKEN_FILE`
 * names, the file that the service keeps under `DATA_DIR`; else it is asked for at the terminal.
 * @throws UsageError that says where it was looked for; CliError for a file that cannot be read.
 */
export async function operatorToken(io: CliIo, options: OperatorOptions): Promise<string> {
  const token = secretOf(io, options, 'token', 'OPERATOR_TOKEN')
  if (token !== null) return token
  const file = join(io.env.DATA_DIR ?? './data', 'operator-token')
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    if (isAttended(io)) return askSecret(io, 'Operator token')
    throw new UsageError(
      'No operator token: use --token-file, OPERATOR_TOKEN, OPERATOR_TOKEN_FILE, or DATA_DIR of the service ' +
        `(looked for ${file})`,
    )
  }
}
