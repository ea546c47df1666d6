import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, Connection, ConnectionLost } from './connection.ts'
import { employee, reportBody } from './reports.ts'
import { type Figure, percentile } from './statistics.ts'

type Headers = Readonly<Record<string, string>>

const AFTER_LOSS_MS = 1_000
/** A server that is slow to take connections drops those beyond its backlog; the network repeats them after seconds. */
const OPENED_AT_ONCE = 50

/** One kind of request. */
export type Ask =
  /** The urls in turn. */
  | { readonly kind: 'get'; readonly urls: readonly string[]; readonly headers: Headers }
  | { readonly kind: 'post'; readonly url: string; readonly headers: Headers; readonly body: string }
  /** A report of other people each time. */
  | {
      readonly kind: 'report'
      readonly url: string
      readonly headers: Headers
      readonly who: { readonly fein: string; readonly policyNumber: string }
      readonly employees: number
      /** Drawn from so many people in turn; `new`: people who were never reported before. */
      readonly people: number | 'new'
      /** With an Idempotency-Key of its own each. */
      readonly keyed: boolean
    }

export interface Load {
  /** What is asked, in turn. */
  readonly asks: readonly Ask[]
  readonly connections: number
  /** Before it counts, in seconds, once all connections stand. */
  readonly warmUp: number
  /** How long it counts, in seconds; or how many requests in all, without a warm-up. */
  readonly length: { readonly seconds: number } | { readonly requests: number }
  /** Requests per second over all connections at the most; default as many as are answered. */
  readonly perSecond?: number
  /**
   * True: 503 with Retry-After is an answer, too, and whoever gets it waits as long before the next request. Connections
   * that the server cuts are counted, and what was waited for in vain counts as a latency; the caller comes again
   * after a second.
   */
  readonly mayBeRefused?: boolean
}

/** Sends a load from a process of its own, so that measuring shares no event loop with what is measured. */
export async function sendLoad(load: Load): Promise<Required<Figure>> {
  const child = spawn(process.execPath, [process.argv[1]!, '--send-load'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(JSON.stringify(load))
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  const output = await text(child.stdout)
  if ((await closed) !== 0) throw new Error(`The load failed: ${output}`)
  return JSON.parse(output) as Required<Figure>
}

/**
 * The other side of {@link sendLoad}: runs in the child process, takes a load from stdin and prints how it went: requests
 * per second that were served, the latencies of those, and how many per second were refused or lost. Every request that
 * was under way while it counted is waited for, so that the slowest are in the latencies.
 */
export async function runLoad(): Promise<void> {
  const load = JSON.parse(await text(process.stdin)) as Load
  try {
    process.stdout.write(JSON.stringify(await send(load)))
  } catch (error) {
    process.stdout.write(String(error))
    process.exitCode = 1
  }
}

/**
 * Sends a load from this process. Latencies are of all requests that were under way at some moment while it counted: one that
 * began long before and is passed over by others, too. It goes on until all of them have their answers, so that nobody
 * is served sooner because the others have gone.
 * @throws Error when an answer is neither a success nor a refusal that may be.
 */
export async function send(load: Load): Promise<Required<Figure>> {
  const { asks, connections, warmUp, length, mayBeRefused, perSecond } = load
  const opened = performance.now()
  const requests = 'seconds' in length ? Number.POSITIVE_INFINITY : length.requests
  // known when all connections stand
  let from = 'seconds' in length ? Number.POSITIVE_INFINITY : opened
  let until = Number.POSITIVE_INFINITY
  const times: number[] = []
  const count = { served: 0, refused: 0, lost: 0 }
  let sent = 0
  let awaited = 0
  const pace = perSecond === undefined ? 0 : (connections * 1000) / perSecond
  const over = new AbortController()
  setMaxListeners(connections, over.signal)
  const pause = (ms: number) => delay(ms, undefined, { signal: over.signal }).catch(() => undefined)

  /** @returns how long to wait before the next request, in milliseconds. */
  const ask = async (client: Client): Promise<number> => {
    const n = sent
    sent += 1
    const begun = performance.now()
    const counts = begun < until
    if (counts) awaited += 1
    const answer = await client.send(asks[n % asks.length]!, Math.floor(n / asks.length)).catch((error) => {
      if (mayBeRefused && error instanceof ConnectionLost) return null
      throw error
    })
    const answered = performance.now()
    const outcome = outcomeOf(answer, mayBeRefused)
    if (counts) awaited -= 1
    if (counts && answered >= from && outcome !== 'refused') times.push(answered - begun)
    if (answered >= from && answered < until) count[outcome] += 1
    if (awaited === 0 && (answered >= until || sent >= requests)) over.abort()
    // each connection keeps to its own times; what comes late is not made up for by sending more at once
    if (outcome === 'served') return pace === 0 ? 0 : Math.max(0, pace - (answered - begun))
    // the server may give up a connection that is idle for so long
    client.close()
    return outcome === 'lost' ? AFTER_LOSS_MS : answer!.retryAfter * 1000
  }
  const keepAsking = async (client: Client, firstPause: number) => {
    if (firstPause > 0) await pause(firstPause)
    while (!over.signal.aborted && sent < requests) {
      const ms = await ask(client)
      if (ms > 0 && !over.signal.aborted) await pause(ms)
    }
    client.close()
  }
  const asking: Promise<void>[] = []
  let toOpen = connections
  const open = async () => {
    while (toOpen > 0 && sent < requests) {
      toOpen -= 1
      const client = new Client()
      const kept = keepAsking(client, await ask(client))
      // told below
      kept.catch(() => undefined)
      asking.push(kept)
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(OPENED_AT_ONCE, connections) }, open))
    if ('seconds' in length) {
      from = performance.now() + warmUp * 1000
      until = from + length.seconds * 1000
    }
    await Promise.all(asking)
  } finally {
    over.abort()
  }
  const took = ('seconds' in length ? until - from : performance.now() - from) / 1000
  return {
    value: count.served / took,
    served: count.served / took,
    refused: count.refused / took,
    lost: count.lost / took,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
  }
}

/** @throws Error when the answer is none that may be. */
function outcomeOf(answer: Answer | null, mayBeRefused = false): 'served' | 'refused' | 'lost' {
  if (answer === null) return 'lost'
  if (answer.status >= 200 && answer.status < 300) return 'served'
  if (mayBeRefused && answer.status === 503 && answer.retryAfter > 0) return 'refused'
  throw new Error(`An answer was ${answer.status}`)
}

/** Tells the people of this load, who were never reported before, from those of others. */
const NEW = `N${randomUUID().slice(0, 8)}-`

/** One caller, with a connection to each server that it asks. */
class Client {
  readonly #connections = new Map<string, Connection>()

  /** @param n number of the request among those of its kind. */
  send(ask: Ask, n: number): Promise<Answer> {
    if (ask.kind === 'get') return this.#exchange('GET', ask.urls[n % ask.urls.length]!, ask.headers, null)
    if (ask.kind === 'post') return this.#exchange('POST', ask.url, ask.headers, ask.body)
    const headers = ask.keyed ? { ...ask.headers, 'idempotency-key': randomUUID() } : ask.headers
    return this.#exchange('POST', ask.url, headers, reportOf(ask, n))
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close()
  }

  #exchange(method: string, url: string, headers: Headers, body: string | null): Promise<Answer> {
    const { host, port, path } = placeOf(url)
    let connection = this.#connections.get(port)
    if (!connection) {
      connection = new Connection(host, Number(port))
      this.#connections.set(port, connection)
    }
    let lines = body === null ? '' : 'content-type: application/json\r\n'
    for (const name in headers) lines += `${name}: ${headers[name]}\r\n`
    return connection.exchange(method, path, lines, body)
  }
}

function reportOf({ who, people, employees }: Extract<Ask, { kind: 'report' }>, n: number): string {
  const listed = Array.from({ length: employees }, (_, k) => {
    const person = n * employees + k
    return people === 'new'
      ? employee(person, n, NEW)
      : employee(person % people, Math.floor(person / people))
  })
  return reportBody(who, listed)
}

const places = new Map<string, { host: string; port: string; path: string }>()

function placeOf(url: string): { host: string; port: string; path: string } {
  let place = places.get(url)
  if (!place) {
    const { hostname: host, port, pathname, search } = new URL(url)
    place = { host, port, path: pathname + search }
    places.set(url, place)
  }
  return place
}
