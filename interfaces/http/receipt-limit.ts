import type { IncomingMessage, Server, ServerResponse } from 'node:http'

const taken = new WeakSet<IncomingMessage>()

/** What a request sends is taken for as long as something of it comes: its reader has time limits of its own. */
export function receiveForLong(request: IncomingMessage): void {
  taken.add(request)
}

/**
 * Cuts off a request that is not there whole in time, except where {@link receiveForLong} says otherwise. The server's own
 * limit knows no exceptions: it must be off.
 * @param ms real milliseconds from its headers on.
 */
export function limitReceipt(server: Server, ms: number): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const limit = setTimeout(() => {
      if (request.complete || taken.has(request)) return
      const { socket } = request
      if (response.headersSent) socket.destroy()
      else socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    }, ms)
    response.once('close', () => clearTimeout(limit))
  })
}
