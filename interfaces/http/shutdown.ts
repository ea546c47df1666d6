import type { Server, ServerResponse } from 'node:http'
import { type Socket, Server as TcpServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long a stop waits for requests and connections, in real milliseconds. */
export interface CloseLimits {
  /** How long a connection without a request may still bring one. */
  readonly idleMs: number
  /** After which open connections are cut, whatever runs on them. */
  readonly cutMs: number
}

const LIMITS: CloseLimits = { idleMs: 1_000, cutMs: 10_000 }
const LOOK_MS = 50

/** What goes on on the connections of a server. */
export interface Traffic {
  /** From now on every answer tells that its connection ends with it. */
  announceClose(): void
  /** Closes the connections on which no request is under way. */
  closeIdle(): void
}

/** Begins to follow the traffic of a server that does not listen yet. */
export function followTraffic(server: Server): Traffic {
  const sockets = new Set<Socket>()
  const open = new Set<ServerResponse>()
  let closing = false
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.prependListener('request', ({ socket }, response) => {
    if (socket.destroyed) return
    if (closing) {
      endWithAnswer(response)
      return
    }
    open.add(response)
    response.once('close', () => open.delete(response))
  })
  return {
    announceClose() {
      closing = true
      for (const response of open) endWithAnswer(response)
      open.clear()
    },
    closeIdle() {
      server.closeIdleConnections()
      // to the server, a connection that never brought a byte is one whose first request has begun
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    },
  }
}

/** Sends `Connection: close` with an answer; after it the server closes the connection. */
function endWithAnswer(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

/**
 * Closes a server so that no request that was sent to it stays without an answer: it accepts no more connections,
 * every answer from now on ends its connection and says so, and a connection on which no request is under way is
 * closed only after `idleMs`, since one may have been sent already. Resolves when all connections are closed.
 */
export async function closeGracefully(
  server: Server,
  traffic: Traffic,
  limits: Partial<CloseLimits> = {},
): Promise<void> {
  const { idleMs, cutMs } = { ...LIMITS, ...limits }
  traffic.announceClose()
  // what the system has accepted meanwhile is taken over before the listening socket closes
  await nextTurn()
  const closed = new Promise<void>((resolve) => {
    // that of the HTTP server would close idle connections at once
    TcpServer.prototype.close.call(server, () => resolve())
  })
  let sweep: NodeJS.Timeout | undefined
  const idle = setTimeout(() => {
    // an answer whose head was sent before the stop leaves its connection idle: look again until none is left
    sweep = setInterval(() => traffic.closeIdle(), LOOK_MS)
    traffic.closeIdle()
  }, idleMs)
  const cut = setTimeout(() => server.closeAllConnections(), cutMs)
  await closed
  for (const timer of [idle, sweep, cut]) clearTimeout(timer)
  // that of the HTTP server ends what it does at intervals, too
  server.close(() => undefined)
}
