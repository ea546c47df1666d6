import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, Connection, ConnectionLost } from './connection.ts'
import { percentile, sameRandoms } from './statistics.ts'

/** A request that is sent as it is. */
export interface Sent {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** Requests of a kind that come whether or not earlier ones were answered. */
export interface Arrivals {
  /** On an average; the moments are random, as many callers' are who know nothing of each other. */
  readonly perSecond: number
  /** @param n number of the request among those of its kind. */
  readonly request: (n: number) => Sent
}

/** What became of the requests of a kind. */
export interface Played {
  readonly scheduled: number
  readonly served: number
  /** 503 with Retry-After. */
  readonly refused: number
  readonly lost: number
  /** Of those that were served, milliseconds from the moment that was planned: waiting counts. */
  readonly p50: number
  readonly p99: number
}

/** Connections that are open to one server at the most; what comes beyond waits for one. */
const MAX_CONNECTIONS = 1_000

/**
 * Sends requests at moments that are planned beforehand, the same in every run, however late the answers are; resolves when
 * all are answered.
 * @throws Error when an answer is neither a success nor a refusal.
 */
export async function play<Kind extends string>(
  kinds: Readonly<Partial<Record<Kind, Arrivals>>>,
  seconds: number,
): Promise<Partial<Record<Kind, Played>>> {
  const names = Object.keys(kinds) as Kind[]
  const next = sameRandoms()
  const planned = names
    .flatMap((kind) => moments(kinds[kind]!.perSecond, seconds, next).map((at, n) => ({ kind, at, n })))
    .sort((a, b) => a.at - b.at)
  const outcomes = new Map(names.map((kind) => [kind, { times: [] as number[], refused: 0, lost: 0 }]))
  const servers = new Servers()
  const under: Promise<void>[] = []
  const began = performance.now()
  for (const { kind, at, n } of planned) {
    const early = began + at - performance.now()
    if (early > 0) await delay(early)
    const outcome = outcomes.get(kind)!
    const sent = servers.send(kinds[kind]!.request(n)).then((answer) => {
      if (answer === null) outcome.lost += 1
      else if (answer.status === 503 && answer.retryAfter > 0) outcome.refused += 1
      else if (answer.status >= 200 && answer.status < 300) outcome.times.push(performance.now() - began - at)
      else throw new Error(`${kind}: an answer was ${answer.status}`)
    })
    // told below
    sent.catch(() => undefined)
    under.push(sent)
  }
  try {
    await Promise.all(under)
  } finally {
    servers.close()
  }
  const told = names.map((kind): readonly [Kind, Played] => {
    const { times, refused, lost } = outcomes.get(kind)!
    const served = times.length
    return [
      kind,
      {
        scheduled: served + refused + lost,
        served,
        refused,
        lost,
        p50: percentile(times, 0.5),
        p99: percentile(times, 0.99),
      },
    ]
  })
  return Object.fromEntries(told) as Record<Kind, Played>
}

/** Moments of a Poisson process, in milliseconds; at least one. */
function moments(perSecond: number, seconds: number, next: () => number): number[] {
  const at: number[] = []
  const gap = () => (-Math.log(1 - next()) * 1_000) / perSecond
  for (let now = gap(); now < seconds * 1_000; now += gap()) at.push(now)
  return at.length === 0 ? [0] : at
}

/** Connections that are kept, as many as there are requests under way. */
class Servers {
  readonly #open: Connection[] = []
  readonly #free = new Map<string, Connection[]>()
  readonly #waiting = new Map<string, ((connection: Connection) => void)[]>()

  async send({ method, url, headers, body }: Sent): Promise<Answer | null> {
    const { hostname, port, host, pathname, search } = new URL(url)
    const connection = await this.#take(host, hostname, Number(port))
    let lines = body === null ? '' : 'content-type: application/json\r\n'
    for (const name in headers) lines += `${name}: ${headers[name]}\r\n`
    try {
      return await connection.exchange(method, pathname + search, lines, body)
    } catch (error) {
      if (error instanceof ConnectionLost) return null
      throw error
    } finally {
      const first = this.#waiting.get(host)?.shift()
      if (first) first(connection)
      else this.#free.get(host)!.push(connection)
    }
  }

  close(): void {
    for (const connection of this.#open) connection.close()
  }

  async #take(host: string, name: string, port: number): Promise<Connection> {
    const free = this.#free.get(host) ?? []
    this.#free.set(host, free)
    const known = free.pop()
    if (known) return known
    if (this.#open.length < MAX_CONNECTIONS) {
      const connection = new Connection(name, port)
      this.#open.push(connection)
      return connection
    }
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(host) ?? []
      this.#waiting.set(host, [...waiting, resolve])
    })
  }
}
