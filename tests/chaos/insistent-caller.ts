import { setTimeout as delay } from 'node:timers/promises'
import { expectDescribed } from '../support/descriptions.ts'
import type { Answer } from '../support/seed.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import type { RunningService } from '../support/service.ts'

/** How clients fared. */
export interface Account {
  requests: number
  answered: number
  /** Requests that were sent again, by the reason: a status, or what the connection said. */
  readonly retries: Map<string, number>
}

/** A request that may be sent again. */
export interface InsistentRequest {
  readonly method?: string
  readonly to: (api: RunningService) => string
  readonly headers: Record<string, string>
  readonly body?: unknown
  /** How long the first try may take, in milliseconds. */
  readonly tryMs?: number
  /** What counts as an answer beside success: what an earlier try has done shows as such. */
  readonly isAnswer?: (status: number, body: Answer['body']) => boolean
}

/** What a request came to. */
export interface InsistentAnswer {
  readonly status: number
  readonly body: Answer['body']
  /** Tries before this one, any of which may have been carried out. */
  readonly retries: number
}

/** A client gives up a try after so long, and asks another process; processes are frozen for longer. */
const TRY_MS = 8_000
/** A caller becomes more patient with each try that took too long: on a slow machine some things take a while. */
const LONGEST_TRY_MS = 60_000
const RETRY_MS = 60
/** A request that is not answered for so long is a failure of the service. */
const GIVE_UP_MS = 300_000
/** What a server may say while it, or what it depends on, is away; 409: the first try is still under way. */
const TRANSIENT = [409, 500, 502, 503, 504]
const INTERNAL_ERROR = -32603

/** Sends each request to any API process, again until it is answered: across refusals and lost connections. */
export class InsistentCaller {
  readonly account: Account = { requests: 0, answered: 0, retries: new Map() }
  readonly #apis: () => readonly RunningService[]
  readonly #random: SeededRandom

  /** @param apis the API processes that are there at the moment, whether they answer or not. */
  constructor(apis: () => readonly RunningService[], random: SeededRandom) {
    this.#apis = apis
    this.#random = random
  }

  /** @param kind what it is called where it fails. @throws Error when it is refused for good, or never answered. */
  async ask(kind: string, request: InsistentRequest): Promise<InsistentAnswer> {
    const { account } = this
    account.requests += 1
    const began = performance.now()
    const text = request.body === undefined ? undefined : JSON.stringify(request.body)
    let tryMs = request.tryMs ?? TRY_MS
    for (let retries = 0; ; retries += 1) {
      const apis = this.#apis()
      const why =
        apis.length === 0 ? 'no process' : await attempt({ ...request, tryMs }, text, this.#random.pick(apis))
      if (typeof why !== 'string') {
        account.answered += 1
        return { ...why, retries }
      }
      account.retries.set(why, (account.retries.get(why) ?? 0) + 1)
      if (why === 'TimeoutError') tryMs = Math.min(2 * tryMs, LONGEST_TRY_MS)
      if (performance.now() - began > GIVE_UP_MS) throw new Error(`${kind}: never answered, at last ${why}`)
      await delay(RETRY_MS)
    }
  }
}

/** @returns why it has to be tried again, or the answer. */
async function attempt(
  request: InsistentRequest & { readonly tryMs: number },
  text: string | undefined,
  api: RunningService,
): Promise<string | Omit<InsistentAnswer, 'retries'>> {
  const { method = 'POST', to, headers, tryMs, isAnswer = () => false } = request
  const url = to(api)
  let response: Response
  let answer: string
  try {
    response = await fetch(url, {
      method,
      headers: text === undefined ? headers : { 'Content-Type': 'application/json', ...headers },
      ...(text !== undefined && { body: text }),
      signal: AbortSignal.timeout(tryMs),
    })
    answer = await response.text()
  } catch (error) {
    const { name, cause } = error as { name: string; cause?: { code?: string } }
    return cause?.code ?? name
  }
  const { status } = response
  // of the connection, before there is a request: it came in part while the process stood still
  if (status === 408) return String(status)
  expectDescribed(method, url, { status, headers: response.headers, text: answer })
  const body = JSON.parse(answer)
  if (isAnswer(status, body)) return { status, body }
  if (TRANSIENT.includes(status)) return String(status)
  if (body.error?.code === INTERNAL_ERROR) return 'internal error'
  if (status >= 400 || body.error) throw new Error(`${method} ${url} was refused: ${status} ${answer}`)
  return { status, body }
}
