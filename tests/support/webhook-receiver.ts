import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { authorityFile, type Certificate, serverCertificate } from './certificates.ts'

/** Settings with which a service delivers to receivers of tests; every service of `service.ts` has them. */
export function receiverSettings(): Readonly<Record<string, string>> {
  return { WEBHOOK_EXTRA_CA_FILE: authorityFile(), WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128' }
}

/** A request as it came in. */
export interface ReceivedRequest {
  readonly method: string
  /** With the query. */
  readonly path: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Raw bytes. */
  readonly body: Buffer
  /** Epoch milliseconds of the real clock. */
  readonly at: number
  /** Headers as they were written, name and value in turn. */
  readonly rawHeaders: readonly string[]
}

/**
 * How a request is answered: a status; a whole answer; `silent`, which reads it and never answers; `reset`, which
 * closes the connection.
 */
export type ReceiverAnswer =
  | number
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | 'silent'
  | 'reset'

/** What a request is answered with, perhaps later. */
type Answering = (request: ReceivedRequest) => ReceiverAnswer | Promise<ReceiverAnswer>

/** A partner's endpoint: a server of its own with TLS. */
export interface Receiver {
  /** Any path may be put behind it: `https://127.0.0.1:<port>`. */
  readonly url: string
  /** The authority to trust, a PEM file; the same for all receivers. */
  readonly caFile: string
  /** Everything that came so far, first to last. */
  readonly requests: readonly ReceivedRequest[]
  /** Answers from now on: one after the other, the last one for ever; or what a function says of each request. */
  answerWith(...answers: readonly [ReceiverAnswer | Answering, ...ReceiverAnswer[]]): void
  /**
   * The first request that `next` has not given out yet, waited for.
   * @param matches leaves others to later calls.
   * @throws Error after `limitMs` of real time (60 s).
   */
  next(matches?: (request: ReceivedRequest) => boolean, limitMs?: number): Promise<ReceivedRequest>
  /** Connections that were accepted so far. */
  connections(): number
  /** Closes it and all its connections. */
  stop(): Promise<void>
}

const LIMIT_MS = 240_000

/** @param options.certificate default one of the tests' authority. @param options.port default a free one. */
export async function startReceiver(
  options: { readonly certificate?: Certificate; readonly port?: number } = {},
): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const given = new Set<ReceivedRequest>()
  const waiting = new Set<() => void>()
  const sockets = new Set<Socket>()
  let connections = 0
  let answers: readonly (ReceiverAnswer | Answering)[] = [200]
  const certificate = options.certificate ?? serverCertificate(['127.0.0.1', 'localhost'])
  const server = createServer({ ...certificate, keepAlive: true }, (incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', async () => {
      const request: ReceivedRequest = {
        method: incoming.method!,
        path: incoming.url!,
        headers: flat(incoming.headers),
        body: Buffer.concat(chunks),
        at: Date.now(),
        rawHeaders: incoming.rawHeaders,
      }
      const [answer] = answers as [ReceiverAnswer | Answering]
      if (answers.length > 1) answers = answers.slice(1)
      requests.push(request)
      for (const look of [...waiting]) look()
      reply(response, typeof answer === 'function' ? await answer(request) : answer)
    })
  })
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile: authorityFile(),
    requests,
    answerWith(...next) {
      answers = next
    },
    next: (matches = () => true, limitMs = LIMIT_MS) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = requests.find((one) => !given.has(one) && matches(one))
          if (!found) return
          given.add(found)
          waiting.delete(look)
          clearTimeout(timer)
          resolve(found)
        }
        const timer = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`No such request came within ${limitMs} ms; ${requests.length} came in all`))
        }, limitMs)
        waiting.add(look)
        look()
      }),
    connections: () => connections,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function reply(response: ServerResponse, answer: ReceiverAnswer): void {
  if (answer === 'silent') return
  if (answer === 'reset') {
    response.socket?.destroy()
    return
  }
  const { status, headers = {}, body = '' } = typeof answer === 'number' ? { status: answer } : answer
  response.writeHead(status, headers).end(body)
}

function flat(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
