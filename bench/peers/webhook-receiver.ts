import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, type Server as AnyServer, createServer as createSilentServer } from 'node:net'
import { type StartedProcess, startProcess } from '../servers.ts'
import { RECEIVER_CERTIFICATE } from './receiver-certificate.ts'

/** Longer than any pause of a measurement: a connection that was given up would be a failed attempt. */
const KEPT_MS = 600_000
/** Receivers, and as many hosts that accept connections and stay silent. */
const HOSTS = 50

interface Addresses {
  readonly http: string
  readonly https: string
  /** Hosts of their own over http. */
  readonly hosts: readonly string[]
  readonly silent: readonly string[]
}

/** What came in since it was asked before. */
interface Posts {
  readonly count: number
  /** When the first post of an event came, by its id; `performance.timeOrigin` based milliseconds. */
  readonly firstAt: Readonly<Record<string, number>>
  /** Different posts that were accepted, by event and path, since the receivers were away for the first time. */
  readonly accepted: number
}

/** The receivers of webhooks, in a process of their own. */
export interface ReceiverProcess extends Addresses {
  posts(): Promise<Posts>
  /** Has every post refused with 503 from now on, or accepted again. */
  refuse(isAway: boolean): Promise<void>
}

/** Talks to receivers that run. */
export function receiversAt(addresses: Addresses): ReceiverProcess {
  const ask = async (path: string) => (await fetch(`${addresses.http}${path}`)).json()
  return {
    ...addresses,
    posts: async () => (await ask('/posts')) as Posts,
    async refuse(isAway) {
      await ask(isAway ? '/away' : '/back')
    },
  }
}

/** Starts receivers. */
export async function startReceivers(): Promise<
  ReceiverProcess & Pick<StartedProcess<Addresses>, 'ready' | 'stop'>
> {
  const { ready, stop } = await startProcess(
    [process.argv[1]!, '--webhook-receivers'],
    {},
    (line): line is Addresses => typeof (line as Addresses | null)?.https === 'string',
  )
  return { ...receiversAt(ready), ready, stop }
}

/** The other side of {@link startReceivers}: answers every post at once. `GET /posts` tells what came, and begins anew. */
export async function serveReceivers(): Promise<void> {
  let count = 0
  let firstAt: Record<string, number> = {}
  let isAway = false
  let accepted: Set<string> | null = null
  const serve: RequestListener = (request, response) => {
    if (request.method === 'GET') {
      if (request.url === '/away') accepted ??= new Set()
      if (request.url !== '/posts') isAway = request.url === '/away'
      response.end(JSON.stringify({ count, firstAt, accepted: accepted?.size ?? 0 } satisfies Posts))
      ;[count, firstAt] = [0, {}]
      return
    }
    request.resume()
    request.on('end', () => {
      count += 1
      const id = String(request.headers['x-webhook-id'])
      if (isAway) {
        response.writeHead(503).end()
        return
      }
      if (accepted) accepted.add(`${id} ${request.url}`)
      else firstAt[id] ??= performance.timeOrigin + performance.now()
      response.writeHead(200).end()
    })
  }
  const listen = async (server: AnyServer | Server) => {
    if ('keepAliveTimeout' in server) server.keepAliveTimeout = KEPT_MS
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const each = (make: () => AnyServer | Server) =>
    Promise.all(Array.from({ length: HOSTS }, async () => `http://${await listen(make())}`))
  const addresses: Addresses = {
    http: `http://${await listen(createServer(serve))}`,
    https: `https://${await listen(createTlsServer(RECEIVER_CERTIFICATE, serve))}`,
    hosts: await each(() => createServer(serve)),
    silent: await each(() =>
      createSilentServer((socket) => void socket.on('error', () => undefined).resume()),
    ),
  }
  process.stdout.write(`${JSON.stringify(addresses)}\n`)
  process.once('SIGTERM', () => process.exit(0))
}
