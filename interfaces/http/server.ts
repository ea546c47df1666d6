import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import express from 'express'
import findMyWay from 'find-my-way'
import { type Step, traced, traceIdOf, traceparent } from '../../application/ports/tracing.ts'
import { type Admission, type CredentialHeader, callerOf } from './admission.ts'
import { callerIdOf, requestIdOf, sendEmpty } from './answers.ts'
import { CallerGone } from './body.ts'
import { docUrlOf, type ErrorWriter, HttpError } from './errors.ts'
import { headerOf } from './headers.ts'
import { limitAddress, type RateLimiter } from './rate-limit.ts'
import { limitReceipt } from './receipt-limit.ts'
import { type CloseLimits, closeGracefully, followTraffic } from './shutdown.ts'
import { unavailability } from './unavailable.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One route of a host. A handler that throws {@link HttpError} is answered in the host's error body. */
export interface Route {
  readonly method: Method
  /** Express path, for example `/api/v1/agents/:credential_id/revoke`. */
  readonly path: string
  handle(request: express.Request, response: express.Response): void | Promise<void>
  /** Answered however much there is to do, as probes are. */
  readonly isProbe?: boolean
}

/**
 * Looks at a request before its route is looked for. What it throws is answered like what a handler throws.
 * @returns `answered` when it has answered the request itself.
 */
export type Guard = (request: IncomingMessage, response: ServerResponse) => 'pass' | 'answered'

/** What the log says of a request that failed; never its address, which may hold the token of a page. */
export interface FailedRequest {
  /** Its `X-Request-Id`. */
  readonly id: string
  readonly method: string
}

/** What the log says of a request that was answered, beside what it was. */
export interface AnsweredRequest {
  /** Its `X-Request-Id`. */
  readonly id: string
  /** Who proved to be its caller; null: nobody did. */
  readonly caller: string | null
  /** Of the trace that it was part of, or its caller named; undefined: none. */
  readonly traceId: string | undefined
}

export interface HostSettings {
  readonly routes: readonly Route[]
  /** Guards of the paths at and below `path`. */
  readonly guards?: readonly { readonly path: string; readonly guard: Guard }[]
  /**
   * Finds out what an address stands for before its route is looked for: it may put another one into `request.url`. What
   * it throws is answered like what a handler throws.
   */
  readonly locate?: (request: IncomingMessage) => Promise<void>
  /** Limits requests for paths and methods that the host does not have. */
  readonly addresses: Pick<RateLimiter, 'take'>
  /** Refuses what cannot be served soon; one for all hosts of a process. */
  readonly admission: Admission
  /** Where callers show their credential, default `authorization`. */
  readonly credentialHeader?: CredentialHeader
  readonly writeError: ErrorWriter
  /** Base address under which callers reach the host: the pages of its errors lie there. */
  readonly url: () => string
  /** A new id for a request that brings none. */
  readonly newRequestId: () => string
  /** Told of every failure that is not the request's, before the answer: 503 of what is away or late, else 500. */
  readonly onFailure: (error: unknown, request: FailedRequest) => void
  /**
   * Told of every answer: method, route path, status, real milliseconds. Where there is no such path or method the
   * path is `(none)`, and a method that HTTP does not define is `OTHER`: the words form a small fixed set.
   */
  readonly onAnswer?: (
    method: string,
    path: string,
    status: number,
    milliseconds: number,
    answered: () => AnsweredRequest,
  ) => void
}

/** What the hosts of a process share. */
export type SharedSettings = Pick<
  HostSettings,
  'admission' | 'url' | 'newRequestId' | 'onFailure' | 'onAnswer'
>

/** Methods that HTTP itself defines, CONNECT excepted, and PATCH. */
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])

const VISIBLE = /^[\x21-\x7e]{1,128}$/

/**
 * Builds a host: request ids, routes, and what is answered where no route is. Routing comes before
 * everything else, authentication included: an unknown path is 404, a known one with a method it
 * does not have 405 with `Allow`.
 */
export function createHost(settings: HostSettings): express.Express {
  const { writeError, newRequestId, onFailure, onAnswer, addresses, admission } = settings
  const { credentialHeader = 'authorization' } = settings
  const write = (response: express.Response, refusal: HttpError) =>
    writeError(response, refusal, docUrlOf(settings.url(), refusal.code))
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
        const method = KNOWN_METHODS.has(request.method) ? request.method : 'OTHER'
        const path = (response.locals.route as string | undefined) ?? '(none)'
        onAnswer(method, path, response.statusCode, performance.now() - start, () => ({
          id: requestIdOf(response),
          caller: callerIdOf(response),
          traceId: traceIdOf(response.locals.traceparent ?? headerOf(request.headers, 'traceparent')),
        }))
      })
    }
    next()
  })

  const fail = (error: unknown, request: express.Request, response: express.Response): void => {
    if (error instanceof CallerGone || (error instanceof HttpError && response.headersSent)) {
      response.destroy()
      return
    }
    if (error instanceof HttpError) {
      for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
      write(response, error)
      return
    }
    onFailure(error, { id: requestIdOf(response), method: request.method })
    const passing = unavailability(error)
    if (response.headersSent) response.destroy()
    else if (passing) {
      response.setHeader('Retry-After', passing.retryAfter)
      write(response, new HttpError(503, null, passing.message))
    } else write(response, new HttpError(500, null, 'The service failed to handle the request'))
  }

  for (const { path, guard } of settings.guards ?? []) {
    app.use(path, (request, response, next) => {
      try {
        if (guard(request, response) === 'pass') next()
      } catch (error) {
        fail(error, request, response)
      }
    })
  }

  const { locate } = settings
  if (locate) {
    app.use(async (request, response, next) => {
      try {
        await admission.during(request, callerOf(request, credentialHeader), () => locate(request))
      } catch (error) {
        fail(error, request, response)
        return
      }
      next()
    })
  }

  /** Answers requests for unknown paths, at a bounded rate: proper callers need that rarely. */
  const refuseUnknown = (
    request: express.Request,
    response: express.Response,
    status: number,
    message: string,
  ): void => {
    try {
      limitAddress(addresses, request)
      throw new HttpError(status, null, message)
    } catch (refusal) {
      fail(refusal, request, response)
    }
  }

  const answer = async (route: Route, request: express.Request, response: express.Response) => {
    try {
      const caller = callerOf(request, credentialHeader)
      await admission.during(request, caller, () => route.handle(request, response))
    } catch (error) {
      fail(error, request, response)
    }
  }

  const placeOf = placesOf(settings.routes)
  app.use(async (request, response) => {
    try {
      const found = placeOf(request.path)
      if (!found) {
        if (request.method === 'OPTIONS' && request.url === '*') sendEmpty(response, 204)
        else refuseUnknown(request, response, 404, 'There is no such path on this host')
        return
      }
      const { place, params } = found
      if (!params) {
        refuseUnknown(request, response, 400, 'The request path cannot be read')
        return
      }
      const route = place.routes.get(request.method === 'HEAD' ? 'GET' : request.method)
      if (!route) {
        response.setHeader('Allow', place.allow)
        refuseUnknown(request, response, 405, `This path takes ${place.allow}`)
        return
      }
      response.locals.route = place.path
      request.params = params
      if (route.isProbe) await route.handle(request, response)
      else await tracedRequest(request, response, route.path, () => answer(route, request, response))
    } catch (error) {
      fail(error, request, response)
    }
  })
  return app
}

/** Answers a request as the first step of the service in a trace, which is the caller's where it names one. */
function tracedRequest(
  request: express.Request,
  response: express.Response,
  route: string,
  answer: () => Promise<void>,
): Promise<void> {
  const { method, headers } = request
  const step: Step = {
    name: `${method} ${route}`,
    kind: 'server',
    causedBy: headerOf(headers, 'traceparent'),
    mayBegin: true,
    attributes: { 'http.request.method': method, 'http.route': route, correlation_id: requestIdOf(response) },
  }
  return traced(step, async (tell) => {
    response.locals.traceparent = traceparent()
    await answer()
    const { statusCode } = response
    tell({
      'http.response.status_code': statusCode,
      'error.type': statusCode >= 500 ? String(statusCode) : null,
      caller_id: callerIdOf(response),
    })
  })
}

/** What a host has at one path. */
interface Place {
  readonly path: string
  /** By method. */
  readonly routes: ReadonlyMap<string, Route>
  /** Value of `Allow`. */
  readonly allow: string
}

/**
 * Prepares to find the place of a path with its parameters, which are null where their percent-encoding is malformed. One
 * slash may follow at the end. A path is compared as it was sent, and a name goes before a parameter.
 */
function placesOf(
  routes: readonly Route[],
): (path: string) => { readonly place: Place; readonly params: Record<string, string> | null } | null {
  const lookup = findMyWay({ ignoreTrailingSlash: true, maxParamLength: MAX_HEADER_BYTES })
  for (const path of new Set(routes.map((route) => route.path))) {
    const here = new Map<string, Route>()
    for (const route of routes) if (route.path === path) here.set(route.method, route)
    const allow = [...here.keys(), ...(here.has('GET') ? ['HEAD'] : [])].join(', ')
    lookup.on('GET', path, () => undefined, { path, routes: here, allow } satisfies Place)
  }
  return (path) => {
    // `*` is no path
    if (!path.startsWith('/')) return null
    // the lookup would decode names, too
    const found = lookup.find('GET', path.replaceAll('%', '%25'))
    if (!found) return null
    const place: Place = found.store
    const params = found.params as Record<string, string>
    try {
      for (const name in params) {
        if (params[name] === '') return null
        params[name] = decodeURIComponent(params[name]!)
      }
      return { place, params }
    } catch {
      return { place, params: null }
    }
  }
}

/** The query parameters of a request. @throws HttpError 400 for one that is repeated, like a key of a body. */
export function queryOf(request: Pick<IncomingMessage, 'url'>): ReadonlyMap<string, string> {
  const { url = '' } = request
  const at = url.indexOf('?')
  const query = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(at < 0 ? '' : url.slice(at + 1))) {
    if (query.has(name)) {
      const field = name.slice(0, 60)
      throw new HttpError(400, null, `${field} is given more than once`, { code: 'field_invalid', field })
    }
    // like texts that are stored: PostgreSQL takes no NUL
    query.set(name, value.replaceAll('\0', '\ufffd'))
  }
  return query
}

/** A host that listens. */
export interface Listener {
  /** `http://address:port` with the real port. */
  readonly url: string
  readonly port: number
  /** Stops accepting and closes, see {@link closeGracefully}. */
  close(limits?: Partial<CloseLimits>): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 60_000
const KEEP_ALIVE_MS = 30_000
const MAX_HEADER_BYTES = 16 * 1024
/** Requests that may wait for answers on one connection: what comes in one packet is taken in one go. */
const MAX_PIPELINED = 32
/** Real milliseconds in which a caller has to take something of an answer that waits for it. */
const UNREAD_ANSWER_MS = 30_000

interface ListenOptions {
  readonly takesStreams?: boolean
  readonly unreadAnswerMs?: number
}

/**
 * Binds a host to an address.
 * @param port 0 picks a free one.
 * @param takesStreams whether a request may take its time where its endpoint takes a stream, see {@link limitReceipt}.
 * @param unreadAnswerMs how long an answer waits for a caller that takes nothing of it, before the connection is cut.
 * @throws the server's error when the address cannot be bound.
 */
export async function listen(
  app: RequestListener,
  host: string,
  port: number,
  { takesStreams = false, unreadAnswerMs = UNREAD_ANSWER_MS }: ListenOptions = {},
): Promise<Listener> {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: takesStreams ? 0 : REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (request, response) => {
      const { socket } = request
      if (socket.destroyed) return
      if (unanswered(socket) > MAX_PIPELINED) socket.destroy()
      else app(request, response)
    },
  )
  const unanswered = followAnswers(server)
  server.on('clientError', refuseUnreadable)
  server.prependListener('request', ({ socket }, response) => {
    if (!socket.destroyed) cutUnread(response, unreadAnswerMs)
  })
  if (takesStreams) limitReceipt(server, REQUEST_TIMEOUT_MS)
  const traffic = followTraffic(server)
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
    close(limits = {}) {
      closing ??= closeGracefully(server, traffic, limits)
      return closing
    },
  }
}

/**
 * Tells every answer when its connection closes. Node tells the one that is being written only: those to requests that
 * were sent behind it on the same connection would never close, and the wait for that would keep them for ever.
 * @returns how many requests of a connection have no answer yet.
 */
function followAnswers(server: Server): (socket: Socket) => number {
  const unfinished = new WeakMap<Socket, Set<ServerResponse>>()
  server.on('connection', (socket) => {
    const responses = new Set<ServerResponse>()
    unfinished.set(socket, responses)
    socket.once('close', () => {
      for (const response of responses) {
        if (response.socket !== null || response.writableFinished) continue
        response.destroy()
        response.emit('close')
      }
    })
  })
  server.prependListener('request', ({ socket }, response) => {
    if (socket.destroyed) return
    const responses = unfinished.get(socket)
    responses?.add(response)
    response.once('close', () => responses?.delete(response))
  })
  return (socket) => unfinished.get(socket)?.size ?? 0
}

/** Cuts the connection of a caller that does not take its answer; one whose answer is still being made waits on. */
function cutUnread(response: ServerResponse, afterMs: number): void {
  response.setTimeout(afterMs, () => {
    const { socket } = response
    if (socket && socket.writableLength > 0) socket.destroy()
    else socket?.setTimeout(afterMs)
  })
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
