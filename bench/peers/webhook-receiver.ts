import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { serverCertificate } from '../../tests/support/certificates.ts'

/** How many posts came in, and when the last one and those of some ids did (`performance.timeOrigin` based milliseconds). */
export interface ReceivedPosts {
  readonly count: number
  readonly lastAt: number
  readonly firstAt: Readonly<Record<string, number>>
}

/**
 * A receiver in a process of its own, over http and https: answers every post below `/ok` at once, and none below `/silent`.
 * `GET /posts` tells what came, and begins anew.
 */
export async function serveReceiver(): Promise<void> {
  let count = 0
  let lastAt = 0
  let firstAt: Record<string, number> = {}
  const serve: RequestListener = (request, response) => {
    if (request.method === 'GET') {
      response.end(JSON.stringify({ count, lastAt, firstAt } satisfies ReceivedPosts))
      ;[count, firstAt] = [0, {}]
      return
    }
    request.resume()
    request.on('end', () => {
      if (request.url!.startsWith('/silent')) return
      count += 1
      lastAt = performance.timeOrigin + performance.now()
      const id = String(request.headers['x-webhook-id'])
      firstAt[id] ??= lastAt
      response.writeHead(200).end()
    })
  }
  const servers: Server[] = [createServer(serve), createTlsServer(serverCertificate(['127.0.0.1']), serve)]
  const ports = await Promise.all(
    servers.map(async (server) => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return (server.address() as AddressInfo).port
    }),
  )
  process.stdout.write(
    `${JSON.stringify({ http: `http://127.0.0.1:${ports[0]}`, https: `https://127.0.0.1:${ports[1]}` })}\n`,
  )
  process.once('SIGTERM', () => process.exit(0))
}
