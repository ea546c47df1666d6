import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import express from 'express'
import { ReadModelsLate } from '../../application/ports/read-models.ts'
import { requestIdOf, sendEmpty } from './answers.ts'
import { CallerGone } from './body.ts'
import { type ErrorWriter, HttpError } from './errors.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One route of a host. A handler that throws {@link HttpError} is answered in the host's error body. */
export interface Route {
  readonly method: Method
  /** Express path, for example `/api/v1/agents/:credential_id/revoke`. */
  readonly path: string
  handle(request: express.Request, response: express.Response): void | Promise<void>
}

export interface HostSettings {
  readonly routes: readonly Route[]
  readonly writeError: ErrorWriter
  /** A new id for a request that brings none. */
  readonly newRequestId: () => string
  /** Told of every failure that nobody expected, before the answer 500. */
  readonly onFailure: (error: unknown, request: { id: string; method: string; path: string }) => void
  /** Told of every answer: route path (`(none)` for unknown ones), status, real milliseconds. */
  readonly onAnswer?: (method: string, path: string, status: number, milliseconds: number) => void
}

const VISIBLE = /^[\x21-\x7e]{1,128}$/

/**
 * Builds a host: request ids, routes, and what is answered where no route is. Routing comes before
 * everything else, authentication included: an unknown path is 404, a known one with a method it
 * does not have 405 with `Allow`.
 */
export function createHost(settings: HostSettings): express.Express {
  const { writeError, newRequestId, onFailure, onAnswer } = settings
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  // parsing query strings on demand, by each handler that has one
  app.set('query parser', false)

  app.use((request, response, next) => {
    const given = request.headers['x-request-id']
    const id = typeof given === 'string' && VISIBLE.test(given) ? given : newRequestId()
    response.setHeader('X-Request-Id', id)
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Cache-Control', 'no-store')
    if (onAnswer) {
      const start = performance.now()
      response.once('close', () => {
        const path = (request.route as { path?: string } | undefined)?.path ?? '(none)'
        onAnswer(request.method, path, response.statusCode, performance.now() - start)
      })
    }
    next()
  })

  const fail = (error: unknown, request: express.Request, response: express.Response): void => {
    if (error instanceof CallerGone) {
      response.destroy()
      return
    }
    if (error instanceof ReadModelsLate) {
      response.setHeader('Retry-After', '5')
      writeError(response, 503, null, error.message)
      return
    }
    if (error instanceof HttpError) {
      if (response.headersSent) return
      for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
      writeError(response, error.status, error.error, error.message)
      return
    }
    onFailure(error, { id: requestIdOf(response), method: request.method, path: request.path })
    if (response.headersSent) response.destroy()
    else writeError(response, 500, null, 'The service failed to handle the request')
  }

  for (const [path, routes] of byPath(settings.routes)) {
    const at = app.route(path)
    for (const route of routes) {
      const method = route.method.toLowerCase() as Lowercase<Method>
      at[method](async (request, response) => {
        try {
          await route.handle(request, response)
        } catch (error) {
          fail(error, request, response)
        }
      })
    }
    const allowed = routes.map((route) => route.method)
    if (allowed.includes('GET')) allowed.push('HEAD' as Method)
    const allow = allowed.join(', ')
    at.all((_request, response) => {
      response.setHeader('Allow', allow)
      writeError(response, 405, null, `This path takes ${allow}`)
    })
  }

  app.use((request, response) => {
    if (request.method === 'OPTIONS' && request.url === '*') sendEmpty(response, 204)
    else writeError(response, 404, null, 'There is no such path on this host')
  })
  // four parameters make it the error handler: malformed percent-encoding in a path arrives here
  const onRoutingError: express.ErrorRequestHandler = (error, request, response, _next) => {
    const status = (error as { status?: unknown }).status
    if (typeof status === 'number' && status >= 400 && status < 500) {
      writeError(response, status, null, 'The request path cannot be read')
    } else {
      fail(error, request, response)
    }
  }
  app.use(onRoutingError)
  return app
}

function byPath(routes: readonly Route[]): Map<string, Route[]> {
  const paths = new Map<string, Route[]>()
  for (const route of routes) {
    const known = paths.get(route.path)
    if (known) known.push(route)
    else paths.set(route.path, [route])
  }
  return paths
}

/** The query parameters of a request; of a repeated one the last counts. */
export function queryOf(request: express.Request): ReadonlyMap<string, string> {
  const at = request.url.indexOf('?')
  return new Map(at < 0 ? [] : new URLSearchParams(request.url.slice(at + 1)))
}

/** A host that listens. */
export interface Listener {
  /** `http://address:port` with the real port. */
  readonly url: string
  readonly port: number
  /**
   * Stops accepting, lets requests in flight finish and closes idle connections.
   * @param graceMs real milliseconds after which open connections are cut.
   */
  close(graceMs?: number): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 60_000
const KEEP_ALIVE_MS = 30_000
const MAX_HEADER_BYTES = 16 * 1024

/**
 * Binds a host to an address.
 * @param port 0 picks a free one.
 * @throws the server's error when the address cannot be bound.
 */
export async function listen(app: express.Express, host: string, port: number): Promise<Listener> {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    app,
  )
  server.on('clientError', refuseUnreadable)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address() as AddressInfo
  const shown = address.family === 'IPv6' ? `[${address.address}]` : address.address
  let closing: Promise<void> | undefined
  return {
    url: `http://${shown}:${address.port}`,
    port: address.port,
    close(graceMs = 10_000) {
      closing ??= close(server, graceMs)
      return closing
    },
  }
}

/** Answers what is not HTTP, too large a header or too slow a request, and closes the connection. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

async function close(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  // an answer in flight leaves its connection idle: look again until none is left
  const sweep = setInterval(() => server.closeIdleConnections(), 50)
  const cut = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(cut)
}
